// Local planes: fits a plane to the surface around each of many pixels of a depth map. Windows of
// pixels are summed in SIMD vectors.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/lanes.hpp"
#include "base/multiversion.hpp"
#include "depth/jump.hpp"

namespace bilateral {

namespace detail {

// The inverse of a depth, or the depth itself: planes of the world are affine in the inverse.
struct PlaneUnit {
  bool inverse;
  float operator()(float z) const { return inverse ? 1 / z : z; }
};

// A pixel.
struct Place {
  std::size_t x, y;
};

// The plane of a surface at a pixel: its value in the planes' unit, and its slopes per pixel.
struct LocalPlane {
  float value, slope_x, slope_y, x, y;
};

// The kept pixels of a depth map.
struct KeptDepths {
  const float* z;
  const bool* kept;
  std::size_t height, width;
};

using PlaneLanes = Lanes<float, 8>;

inline constexpr std::size_t window_radius = 4, window_side = 2 * window_radius + 1;
inline constexpr std::size_t window_samples = window_side * window_side;
inline constexpr std::size_t window_size = (window_samples + 7) / 8 * 8;  // whole vectors

// One number for each sample of a window of 9 x 9, row by row, and zeros to fill the last vector.
struct alignas(sizeof(PlaneLanes)) Window {
  std::array<float, window_size> values;
};

// What samples of a window have in common for all pixels.
struct WindowShape {
  Window dx, dy, xx, xy, yy;                     // steps from the middle, and their products
  Window steps, half_steps;                      // distance from the middle, at least 1; half of it
  std::array<std::uint8_t, window_size> middle;  // the sample half-way to the middle

  constexpr WindowShape() : dx{}, dy{}, xx{}, xy{}, yy{}, steps{}, half_steps{}, middle{} {
    constexpr int radius = static_cast<int>(window_radius), side = static_cast<int>(window_side);
    for (int y = -radius; y <= radius; ++y)
      for (int x = -radius; x <= radius; ++x) {
        const auto i = static_cast<std::size_t>((y + radius) * side + x + radius);
        const auto u = static_cast<float>(x), v = static_cast<float>(y);
        const int far = std::max({x, -x, y, -y, 1});
        dx.values[i] = u, dy.values[i] = v;
        xx.values[i] = u * u, xy.values[i] = u * v, yy.values[i] = v * v;
        steps.values[i] = static_cast<float>(far);
        half_steps.values[i] = std::max(0.5f * static_cast<float>(far), 1.0f);
        middle[i] = static_cast<std::uint8_t>((y / 2 + radius) * side + x / 2 + radius);
      }
  }
};
inline constexpr WindowShape window_shape;

// Reads the depths around a pixel, `stride` pixels apart; NaN where nothing is kept.
BILATERAL_INLINE void read_window(const KeptDepths& map, Place at, std::size_t stride,
                                  Window& window) {
  constexpr float none = std::numeric_limits<float>::quiet_NaN();
  const std::size_t reach = window_radius * stride;
  window.values.fill(none);
  if (at.x >= reach && at.y >= reach && at.x + reach < map.width && at.y + reach < map.height) {
    std::size_t from = (at.y - reach) * map.width + at.x - reach;
    float* to = window.values.data();
    for (std::size_t row = 0; row < window_side; ++row) {
      const float* z = map.z + from;
      const bool* kept = map.kept + from;
      for (std::size_t k = 0; k < window_side; ++k) to[k] = kept[k * stride] ? z[k * stride] : none;
      from += stride * map.width, to += window_side;
    }
    return;
  }
  for (std::size_t row = 0; row < window_side; ++row)
    for (std::size_t k = 0; k < window_side; ++k) {
      const std::size_t y = at.y + row * stride - reach, x = at.x + k * stride - reach;
      if (y >= map.height || x >= map.width) continue;  // also below 0, which wraps around
      const std::size_t p = y * map.width + x;
      if (map.kept[p]) window.values[row * window_side + k] = map.z[p];
    }
}

// Fits a plane a + b dx + c dy to the values of the samples with a weight of 1; others have 0. The
// ridge pulls slopes to 0 that few samples tell. Writes the number of samples.
BILATERAL_INLINE LocalPlane fit_window(const Window& value, const Window& weight, float ridge,
                                       float& count) {
  const WindowShape& shape = window_shape;
  PlaneLanes sums[9] = {};
  for (std::size_t i = 0; i < window_size; i += 8) {
    const auto at = [i](const Window& w) __attribute__((always_inline)) {
      return load_lanes<PlaneLanes>(w.values.data() + i);
    };
    const PlaneLanes w = at(weight), v = at(value), dx = at(shape.dx), dy = at(shape.dy);
    sums[0] += w, sums[1] += w * dx, sums[2] += w * dy;
    sums[3] += w * at(shape.xx), sums[4] += w * at(shape.xy), sums[5] += w * at(shape.yy);
    sums[6] += v, sums[7] += v * dx, sums[8] += v * dy;
  }
  float s[9];
  const auto add = [](auto a, auto b) __attribute__((always_inline)) { return a + b; };
  for (std::size_t k = 0; k < 9; ++k) s[k] = fold_lanes<float, 8>(sums[k], add);
  const auto [n, x, y, xx, xy, yy, v, xv, yv] = s;
  const float a = xx - x * x / n + ridge, b = xy - x * y / n, d = yy - y * y / n + ridge;
  const float det = a * d - b * b, p = xv - x * v / n, q = yv - y * v / n;
  const float slope_x = (p * d - q * b) / det, slope_y = (q * a - p * b) / det;
  count = n;
  return {(v - slope_x * x - slope_y * y) / n, slope_x, slope_y, 0, 0};
}

// Fits a plane to the kept pixels around a pixel that belong to its surface: first to those near
// it, then to all of a larger window that lie on that plane.
BILATERAL_INLINE LocalPlane fit_plane(const KeptDepths& map, Place at, Jump jump, PlaneUnit unit) {
  constexpr std::size_t wide_stride = 2;
  constexpr auto stride = static_cast<float>(wide_stride);
  // The slope of a sliver is unknown, so it is 0: a ridge of half a column of near pixels.
  constexpr float near_ridge = 30, wide_ridge = 10, least_count = 9;
  const WindowShape& shape = window_shape;
  const float center = map.z[at.y * map.width + at.x], origin = unit(center), step = jump(center);
  Window depth, jumps, value, weight;
  // In the planes' unit, from the middle.
  const auto planes_value = [&](std::size_t i) __attribute__((always_inline)) {
    return (unit.inverse ? 1 / depth.values[i] : depth.values[i]) - origin;
  };
  read_window(map, at, 1, depth);
  const float per_step = 1 / step;
  for (std::size_t i = 0; i < window_size; ++i)
    jumps.values[i] = std::abs(depth.values[i] - center) * per_step;
  Window halfway;
  for (std::size_t i = 0; i < window_size; ++i) halfway.values[i] = jumps.values[shape.middle[i]];
  for (std::size_t i = 0; i < window_size; ++i) {
    // Half-way, another surface would differ by too much already. Comparisons with NaN are false.
    const float off = jumps.values[i], half_off = halfway.values[i];
    const float most = shape.steps.values[i], half_most = shape.half_steps.values[i];
    const bool same = (off <= most) & (half_off <= half_most);
    weight.values[i] = same ? 1.0f : 0.0f;
    value.values[i] = same ? planes_value(i) : 0.0f;
  }
  float count;
  LocalPlane plane = fit_window(value, weight, near_ridge, count);
  const float tolerance = unit.inverse ? step / (center * center) : step;  // in the planes' unit
  read_window(map, at, wide_stride, depth);
  for (std::size_t i = 0; i < window_size; ++i) {
    const float found = planes_value(i);
    const float expected = plane.value + stride * (plane.slope_x * shape.dx.values[i] +
                                                   plane.slope_y * shape.dy.values[i]);
    const bool same = std::abs(found - expected) <= tolerance;
    weight.values[i] = same ? 1.0f : 0.0f;
    value.values[i] = same ? found : 0.0f;
  }
  // Steps of two pixels: slopes are per step, and the ridge is for them.
  const LocalPlane wide = fit_window(value, weight, wide_ridge / (stride * stride), count);
  if (count >= least_count)
    plane = {wide.value, wide.slope_x / stride, wide.slope_y / stride, 0, 0};
  plane.value += origin;
  plane.x = static_cast<float>(at.x), plane.y = static_cast<float>(at.y);
  return plane;
}

BILATERAL_INLINE void fit_planes_body(const KeptDepths& map, const std::uint32_t* pixels,
                                      std::size_t count, Jump jump, PlaneUnit unit,
                                      LocalPlane* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t p = pixels[i];
    out[i] = fit_plane(map, {p % map.width, p / map.width}, jump, unit);
  }
}
inline constexpr auto fit_planes = multiversion<fit_planes_body>;

}  // namespace detail

}  // namespace bilateral
