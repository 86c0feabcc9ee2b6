// Interpolate between scattered known pixels: linear in Delaunay triangles, nearest outside of
// them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "points/delaunay.hpp"
#include "points/nearest.hpp"

namespace bilateral {

namespace detail {

struct Corner {
  double x, y, value;
};

// Writes the plane through three corners to the pixels between them, borders included.
inline void fill_triangle(const Corner (&corner)[3], std::size_t width, float* out) {
  const auto& [a, b, c] = corner;
  const double area = (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
  const double slope_x =
      ((b.value - a.value) * (c.y - a.y) - (c.value - a.value) * (b.y - a.y)) / area;
  const double slope_y =
      ((c.value - a.value) * (b.x - a.x) - (b.value - a.value) * (c.x - a.x)) / area;
  const double low = std::min({a.value, b.value, c.value});
  const double high = std::max({a.value, b.value, c.value});
  const auto top = static_cast<std::size_t>(std::min({a.y, b.y, c.y}));
  const auto bottom = static_cast<std::size_t>(std::max({a.y, b.y, c.y}));
  for (std::size_t row = top; row <= bottom; ++row) {
    const auto y = static_cast<double>(row);
    double left = std::numeric_limits<double>::max(), right = -1;
    for (int i = 0; i < 3; ++i) {
      const Corner &p = corner[i], &q = corner[(i + 1) % 3];
      if (std::min(p.y, q.y) > y || std::max(p.y, q.y) < y) continue;
      const double x = p.y == q.y ? p.x : p.x + (y - p.y) * (q.x - p.x) / (q.y - p.y);
      left = std::min(left, x);
      right = std::max(right, p.y == q.y ? std::max(x, q.x) : x);
      if (p.y == q.y) left = std::min(left, q.x);
    }
    constexpr double rounding = 1e-9;
    const auto first = static_cast<std::size_t>(std::ceil(left - rounding));
    const auto last = static_cast<std::ptrdiff_t>(std::floor(right + rounding));
    for (std::size_t column = first; static_cast<std::ptrdiff_t>(column) <= last; ++column) {
      const double v =
          a.value + slope_x * (static_cast<double>(column) - a.x) + slope_y * (y - a.y);
      out[row * width + column] = static_cast<float>(std::clamp(v, low, high));
    }
  }
}

}  // namespace detail

// Fills the unknown pixels (NaN) of a map, of which at least one is known; known ones stay. Also
// writes the index of each pixel's nearest known pixel.
inline void interpolate_points(const float* z, std::size_t height, std::size_t width, float* out,
                               std::uint32_t* nearest) {
  nearest_known(z, height, width, nearest);
  for (std::size_t p = 0; p < height * width; ++p) out[p] = z[nearest[p]];
  std::vector<PointPixel> points;
  for (std::size_t x = 0; x < width; ++x)
    for (std::size_t y = 0; y < height; ++y)
      if (z[y * width + x] == z[y * width + x])
        points.push_back({static_cast<std::int32_t>(x), static_cast<std::int32_t>(y)});
  if (points.size() < 3) return;
  const detail::Delaunay triangulation(points);
  const auto corner = [&](std::uint32_t i) {
    const auto [x, y] = points[i];
    const double value = z[static_cast<std::size_t>(y) * width + static_cast<std::size_t>(x)];
    return detail::Corner{static_cast<double>(x), static_cast<double>(y), value};
  };
  triangulation.edges().for_each_triangle(
      points, [&](std::uint32_t i, std::uint32_t j, std::uint32_t k) {
        const detail::Corner corners[] = {corner(i), corner(j), corner(k)};
        detail::fill_triangle(corners, width, out);
      });
  // Planes round: give known pixels their own values again.
  for (const auto [x, y] : points) {
    const std::size_t p = static_cast<std::size_t>(y) * width + static_cast<std::size_t>(x);
    out[p] = z[p];
  }
}

}  // namespace bilateral
