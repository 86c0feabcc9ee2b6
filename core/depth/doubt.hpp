// Doubt: finds the pixels of a depth map that lie on no surface. These are flying pixels, which mix
// the depths of two surfaces, slivers between a jump and a hole, and pixels that few neighbours
// agree with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
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
// The same if one side alone continues the slope over three steps, within this part of a jump and
// of the slope. Skirts between two surfaces are shorter, or steeper than `doubt_steepest` jumps.
inline constexpr float doubt_bend = 0.5f, doubt_bend_slope = 0.15f, doubt_steepest = 3;

namespace detail {

// The farthest neighbour: three steps of two pixels.
inline constexpr std::size_t doubt_reach = 6;

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
    const float* __restrict p3 = center + 3 * o;
    const float* __restrict m1 = center - o;
    const float* __restrict m2 = center - 2 * o;
    const float* __restrict m3 = center - 3 * o;
    // Arithmetic instead of conditions lets the compiler use vectors. Unknown depths make sums NaN.
    for (std::size_t i = 0; i < n; ++i) {
      const float unit = jump(z[i]), d = p1[i] - z[i], e = z[i] - m1[i];
      const float size_d = std::abs(d), size_e = std::abs(e);
      const float known_d = d == d ? 1.0f : 0.0f, known_e = e == e ? 1.0f : 0.0f;
      const float far_d = size_d > unit ? 1.0f : 0.0f, far_e = size_e > unit ? 1.0f : 0.0f;
      const float least = std::min(d, e), most = std::max(d, e);
      const float steep = std::max(least, -most) > unit ? known_d * known_e : 0.0f;
      const float bend_d = std::abs(p2[i] - p1[i] - d), bend_e = std::abs(m1[i] - m2[i] - e);
      const float bends = std::max(std::max(bend_d, bend_e), std::abs(d - e));
      const float slack = 0.5f * doubt_slant * std::abs(d + e);
      const float slanted = bends + 0.0f * (bend_d + bend_e) < slack ? 1.0f : 0.0f;
      // Whether one side continues the slope; the first argument of std::max may be NaN.
      const float off_d = std::max(std::abs(p3[i] - p2[i] - d), bend_d) - doubt_bend * unit;
      const float off_e = std::max(std::abs(m2[i] - m3[i] - e), bend_e) - doubt_bend * unit;
      const float steepest = doubt_steepest * unit;
      const float ends_d = std::max(off_d - doubt_bend_slope * size_d, size_d - steepest);
      const float ends_e = std::max(off_e - doubt_bend_slope * size_e, size_e - steepest);
      const float joins = (ends_d < 0 ? 1.0f : 0.0f) + (ends_e < 0 ? 1.0f : 0.0f);
      const float flying = slanted + joins > 0 ? 0.0f : steep;
      const float sliver = (1 - known_d) * far_e + (1 - known_e) * far_d;
      ramp[i] = std::max(ramp[i], flying + sliver);
      same[i] += (size_d < steps * unit ? 1.0f : 0.0f) + (size_e < steps * unit ? 1.0f : 0.0f);
      nearer[i] += (d < -unit ? 1.0f : 0.0f) + (e > unit ? 1.0f : 0.0f);
      farther[i] += (d > unit ? 1.0f : 0.0f) + (e < -unit ? 1.0f : 0.0f);
      near[i] += known_d + known_e;
    }
  }
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
        out[y * width + x] = z[y * width + x] == z[y * width + x] && (ramp[x] > 0 || lone);
      }
    }
  });
}

}  // namespace bilateral
