// Surface sizes: finds the connected surfaces of a depth map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "depth/jump.hpp"
#include "labels/regions.hpp"

namespace bilateral {

// Writes the number of pixels of each pixel's surface; 0 for doubted and unknown pixels. The eight
// neighbours are connected if both are known (not NaN), not doubted, and no jump is between them,
// or if the slope from one to the other goes on evenly behind one of them: a steep surface.
//
// Runs of connected pixels in a row are found first, then joined to those of the row above: there
// are far fewer runs than pixels.
inline void surface_sizes(const float* z, const bool* doubt, std::size_t height, std::size_t width,
                          const Jump& jump, std::int32_t* out) {
  // A known pixel without doubt, or NaN.
  const auto at = [&](std::ptrdiff_t y, std::ptrdiff_t x) {
    if (y < 0 || x < 0 || y >= static_cast<std::ptrdiff_t>(height) ||
        x >= static_cast<std::ptrdiff_t>(width))
      return std::numeric_limits<float>::quiet_NaN();
    const std::size_t p = static_cast<std::size_t>(y) * width + static_cast<std::size_t>(x);
    return doubt[p] ? std::numeric_limits<float>::quiet_NaN() : z[p];
  };
  // Whether the pixel (y, x) and its neighbour at a step, both undoubted, are on one surface.
  const auto joins = [&](std::size_t y, std::size_t x, std::ptrdiff_t dy, std::ptrdiff_t dx) {
    const auto v = static_cast<std::ptrdiff_t>(y), u = static_cast<std::ptrdiff_t>(x);
    const float* from = z + y * width + x;
    const float a = *from, b = from[dy * static_cast<std::ptrdiff_t>(width) + dx];
    return jump.joins(a, b) || jump.even(at(v - dy, u - dx), a, b) ||
           jump.even(a, b, at(v + 2 * dy, u + 2 * dx));
  };
  std::vector<std::int32_t> run(height * width);  // of each pixel; -1 outside the surfaces
  std::int32_t runs = 0;
  for (std::size_t y = 0; y < height; ++y) {
    const std::size_t row = y * width;
    for (std::size_t x = 0; x < width; ++x) {
      const std::size_t p = row + x;
      if (z[p] != z[p] || doubt[p])
        run[p] = -1;
      else
        run[p] = x > 0 && run[p - 1] >= 0 && joins(y, x, 0, -1) ? run[p - 1] : runs++;
    }
  }
  detail::DisjointSets sets(static_cast<std::size_t>(runs));
  std::int32_t last[] = {-1, -1};  // pair of runs joined last
  const auto join = [&](std::size_t y, std::size_t x, std::ptrdiff_t dx) {
    const std::size_t p = y * width + x;
    const std::int32_t a = run[p], b = run[p - width + static_cast<std::size_t>(dx)];
    if (a < 0 || b < 0 || !joins(y, x, -1, dx)) return false;
    if (a != last[0] || b != last[1]) sets.join(last[0] = a, last[1] = b);
    return true;
  };
  for (std::size_t y = 1; y < height; ++y)
    for (std::size_t x = 0; x < width; ++x) {
      const std::size_t p = y * width + x, above = p - width;
      if (run[p] < 0) continue;
      // Pixels of the run above are joined already.
      const std::int32_t joined = join(y, x, 0) ? run[above] : -1;
      if (x > 0 && run[above - 1] != joined) join(y, x, -1);
      if (x + 1 < width && run[above + 1] != joined) join(y, x, 1);
    }
  std::vector<std::int32_t> size(static_cast<std::size_t>(runs));
  std::vector<std::int32_t> root(static_cast<std::size_t>(runs));
  for (std::int32_t r = 0; r < runs; ++r) root[static_cast<std::size_t>(r)] = sets.root(r);
  for (const std::int32_t r : run)
    if (r >= 0) ++size[static_cast<std::size_t>(root[static_cast<std::size_t>(r)])];
  for (std::int32_t r = 0; r < runs; ++r) {
    const auto at = static_cast<std::size_t>(r);
    size[at] = size[static_cast<std::size_t>(root[at])];
  }
  for (std::size_t p = 0; p < height * width; ++p)
    out[p] = run[p] < 0 ? 0 : size[static_cast<std::size_t>(run[p])];
}

}  // namespace bilateral
