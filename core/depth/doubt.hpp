// Doubt: finds the pixels of a depth map that lie on no surface. These are flying pixels, which mix
// the depths of two surfaces, slivers between a jump and a hole, and pixels that few neighbours
// agree with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/multiversion.hpp"
#include "base/threads.hpp"
#include "depth/jump.hpp"

namespace bilateral {

// A pixel is doubted if fewer of its neighbours agree with it than this fraction of the known ones,
// of which there are taken to be at least `least_neighbours`.
inline constexpr float doubt_support = 0.2f, least_neighbours = 6;
// The same for pixels between nearer and farther ones.
inline constexpr float doubt_support_between = 0.4f;
// A ramp is a slanted surface, not a flying pixel, if its slopes differ by less than this fraction.
inline constexpr float doubt_slant = 0.5f;

// A pixel is not doubted if it lies on a line of so many pixels with an even slope. Flying pixels
// in a row across an edge are fewer or less even.
inline constexpr int line_pixels = 7;
// Flying pixels in a row along an edge are even, too. So where fewer neighbours agree than this
// fraction, the line must be steep: jumps per pixel.
inline constexpr float line_support = 0.4f, line_steep = 0.5f;

namespace detail {

// The farthest neighbour: two steps of two pixels.
inline constexpr std::size_t doubt_reach = 4;

struct Offset {
  std::ptrdiff_t y, x;
};
// Opposite neighbours lie on both sides along these lines, at one and at two pixels.
inline constexpr Offset doubt_lines[] = {{0, 1}, {1, 0}, {1, 1}, {1, -1},
                                         {0, 2}, {2, 0}, {2, 2}, {2, -2}};

// Marks the doubted pixels of one row of `n` pixels. `center` has `doubt_reach` pixels more on both
// sides, and rows above and below it at the distance `pitch`.
BILATERAL_INLINE void doubt_row_body(const float* center, std::ptrdiff_t pitch, std::size_t n,
                                     Jump jump, float* __restrict ramp, float* __restrict same,
                                     float* __restrict near, float* __restrict nearer,
                                     float* __restrict farther) {
  std::fill_n(ramp, n, 0.0f);
  std::fill_n(same, n, 0.0f);
  std::fill_n(near, n, 0.0f);
  std::fill_n(nearer, n, 0.0f);
  std::fill_n(farther, n, 0.0f);
  for (const Offset& line : doubt_lines) {
    const std::ptrdiff_t o = line.y * pitch + line.x;
    const float steps = static_cast<float>(std::max(line.y, std::abs(line.x)));
    const float* __restrict z = center;
    const float* __restrict p1 = center + o;
    const float* __restrict p2 = center + 2 * o;
    const float* __restrict m1 = center - o;
    const float* __restrict m2 = center - 2 * o;
    for (std::size_t i = 0; i < n; ++i) {
      const float unit = jump(z[i]);
      const float d = p1[i] - z[i], e = z[i] - m1[i];
      const float least = std::min(d, e), most = std::max(d, e);
      const float slack = 0.5f * doubt_slant * std::abs(d + e);
      // Numbers and '&' instead of bools and '&&': without branches the loop is vectorized.
      const int slanted = (std::abs(d - e) < slack ? 1 : 0) &
                          (std::abs(p2[i] - p1[i] - d) < slack ? 1 : 0) &
                          (std::abs(m1[i] - m2[i] - e) < slack ? 1 : 0);
      const int known_d = d == d ? 1 : 0, known_e = e == e ? 1 : 0;
      const int steep = (least > unit ? 1 : 0) | (most < -unit ? 1 : 0);
      const int beside_hole = ((1 - known_d) & (std::abs(e) > unit ? 1 : 0)) |
                              ((1 - known_e) & (std::abs(d) > unit ? 1 : 0));
      const int hit = (known_d & known_e & steep & (1 - slanted)) | beside_hole;
      ramp[i] = hit ? 1.0f : ramp[i];
      same[i] +=
          (std::abs(d) < steps * unit ? 1.0f : 0.0f) + (std::abs(e) < steps * unit ? 1.0f : 0.0f);
      nearer[i] = (d < -unit ? 1 : 0) | (e > unit ? 1 : 0) ? 1.0f : nearer[i];
      farther[i] = (d > unit ? 1 : 0) | (e < -unit ? 1 : 0) ? 1.0f : farther[i];
      near[i] += (known_d ? 1.0f : 0.0f) + (known_e ? 1.0f : 0.0f);
    }
  }
}

// Whether a pixel lies on a line of `line_pixels` pixels with even slopes of at least `least` jumps
// per pixel.
inline bool on_even_line(const float* z, std::size_t height, std::size_t width, std::size_t y,
                         std::size_t x, const Jump& jump, float least) {
  constexpr int reach = line_pixels - 1;
  const auto rows = static_cast<std::ptrdiff_t>(height);
  const auto columns = static_cast<std::ptrdiff_t>(width);
  for (const Offset& line : {doubt_lines[0], doubt_lines[1], doubt_lines[2], doubt_lines[3]}) {
    // The pixels along the line; NaN beyond the border.
    const auto at = [&](int k) {
      const std::ptrdiff_t v = static_cast<std::ptrdiff_t>(y) + k * line.y;
      const std::ptrdiff_t u = static_cast<std::ptrdiff_t>(x) + k * line.x;
      const bool inside = v >= 0 && v < rows && u >= 0 && u < columns;
      return inside ? z[v * columns + u] : std::numeric_limits<float>::quiet_NaN();
    };
    const auto even = [&](int k) { return jump.even(at(k - 1), at(k), at(k + 1), least); };
    // Pixels in a row with an even slope, on both sides of the pixel beside it that has one.
    for (const int side : {-1, 1}) {
      if (!even(side)) continue;
      int count = 1;
      for (int k = side + 1; k < reach && even(k); ++k) ++count;
      for (int k = side - 1; k > -reach && even(k); --k) ++count;
      if (count >= line_pixels - 2) return true;
    }
  }
  return false;
}

}  // namespace detail

// Writes whether each known pixel is doubted; false for unknown pixels, which are NaN. Beyond its
// border the map continues with its border pixels.
inline void find_doubt(const float* z, std::size_t height, std::size_t width, const Jump& jump,
                       bool* out, int threads) {
  using namespace detail;
  constexpr std::size_t reach = doubt_reach, band = 32;
  const std::size_t pitch = width + 2 * reach, bands = (height + band - 1) / band;
  struct Scratch {
    std::vector<float> rows, sums;
  };
  const int team = team_size(threads, height * width, 32768);
  std::vector<Scratch> scratch(static_cast<std::size_t>(team));
  parallel_for(team, bands, [&](std::size_t item, std::size_t rank) {
    auto& [rows, sums] = scratch[rank];
    rows.resize((band + 2 * reach) * pitch);
    sums.resize(5 * width);
    const std::size_t top = item * band, bottom = std::min(top + band, height);
    for (std::size_t r = 0; r < bottom - top + 2 * reach; ++r) {
      const std::size_t y = std::min(std::max(top + r, reach) - reach, height - 1);
      const float* from = z + y * width;
      float* to = rows.data() + r * pitch;
      std::fill_n(to, reach, from[0]);
      std::copy_n(from, width, to + reach);
      std::fill_n(to + reach + width, reach, from[width - 1]);
    }
    for (std::size_t y = top; y < bottom; ++y) {
      float *ramp = sums.data(), *same = ramp + width, *near = same + width;
      float *nearer = near + width, *farther = nearer + width;
      multiversion<doubt_row_body>(rows.data() + (y - top + reach) * pitch + reach,
                                   static_cast<std::ptrdiff_t>(pitch), width, jump, ramp, same,
                                   near, nearer, farther);
      for (std::size_t x = 0; x < width; ++x) {
        const bool between = nearer[x] > 0 && farther[x] > 0;
        const float support = between ? doubt_support_between : doubt_support;
        const bool lone = same[x] < support * std::max(near[x], least_neighbours);
        const bool doubted = z[y * width + x] == z[y * width + x] && (ramp[x] > 0 || lone);
        const bool few = same[x] < line_support * std::max(near[x], least_neighbours);
        out[y * width + x] =
            doubted && !on_even_line(z, height, width, y, x, jump, few ? line_steep : 0.0f);
      }
    }
  });
}

}  // namespace bilateral
