// Change of depth between two frames of a moving camera, and noise in time, both by robust
// estimates over a regular sample of pixels.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/multiversion.hpp"
#include "base/vector_loops.hpp"
#include "video/flow_model.hpp"
#include "video/noise.hpp"
#include "video/small_solve.hpp"

namespace bilateral {

inline constexpr std::size_t change_parameters = 4;

// Depth now - depth before = c0 + (c1 x + c2 y + c3) * depth now, exact for a rigid scene.
struct DepthChange {
  std::array<double, change_parameters> c{};
  double noise_factor = 1;  // noise in time relative to noise in space
  std::size_t samples = 0;
};

namespace detail {

inline constexpr std::size_t change_stride = 4;  // one pixel in 4 x 4 is a sample

// Samples as columns: the four basis functions and the difference, both in units of noise.
struct ChangeSamples {
  std::vector<float> basis[change_parameters], difference, weight;
};

BILATERAL_INLINE void weigh_samples_body(const float* const* basis, const float* difference,
                                         const float* c, float spread, float* __restrict weight,
                                         std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    float e = difference[i];
    for (std::size_t k = 0; k < change_parameters; ++k) e -= c[k] * basis[k][i];
    e *= 1 / spread;
    const float root = 1 / (1 + e * e);
    weight[i] = root * root;
  }
}

BILATERAL_INLINE double weighted_dot_body(const float* a, const float* b, const float* w,
                                          std::size_t n) {
  return eight_sums(
      n, [=](std::size_t i) __attribute__((always_inline)) { return w[i] * a[i] * b[i]; });
}

// Fits c by a few rounds of reweighted least squares.
inline void fit_change(ChangeSamples& samples, DepthChange& change) {
  constexpr int rounds = 6;
  constexpr float spread = 2;  // units of noise
  constexpr double ridge = 1e-6;
  const std::size_t n = samples.difference.size();
  const float* basis[change_parameters];
  for (std::size_t k = 0; k < change_parameters; ++k) basis[k] = samples.basis[k].data();
  for (int round = 0; round < rounds; ++round) {
    float c[change_parameters];
    for (std::size_t k = 0; k < change_parameters; ++k) c[k] = static_cast<float>(change.c[k]);
    multiversion<weigh_samples_body>(basis, samples.difference.data(), c, spread,
                                     samples.weight.data(), n);
    double A[change_parameters][change_parameters] = {}, b[change_parameters], x[change_parameters];
    for (std::size_t i = 0; i < change_parameters; ++i) {
      for (std::size_t j = i; j < change_parameters; ++j)
        A[i][j] = multiversion<weighted_dot_body>(basis[i], basis[j], samples.weight.data(), n);
      b[i] = multiversion<weighted_dot_body>(basis[i], samples.difference.data(),
                                             samples.weight.data(), n);
    }
    if (!solve_symmetric<change_parameters>(A, b, ridge, x)) return;
    std::copy_n(x, change_parameters, change.c.begin());
  }
}

// Median of |difference| after the change, in units of noise.
inline double median_change(const ChangeSamples& samples, const DepthChange& change) {
  std::vector<float> sizes(samples.difference.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    float e = samples.difference[i];
    for (std::size_t k = 0; k < change_parameters; ++k)
      e -= static_cast<float>(change.c[k]) * samples.basis[k][i];
    sizes[i] = std::abs(e);
  }
  const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  return static_cast<double>(*middle);
}

}  // namespace detail

// `z` is the depth measured now (NaN where unknown), `x` the refined depth, `before` the moved past
// and `count` its number of frames (0: outside). Too few samples: no change, factor 1.
inline DepthChange depth_change(const float* z, const float* x, const float* before,
                                const std::uint8_t* count, const FlowModel& model,
                                const DepthNoise& noise, std::size_t height, std::size_t width,
                                bool moving) {
  using namespace detail;
  constexpr std::size_t least_samples = 64;
  ChangeSamples samples;
  const std::size_t most = (height / change_stride + 1) * (width / change_stride + 1);
  for (auto& column : samples.basis) column.reserve(most);
  samples.difference.reserve(most);
  for (std::size_t y = change_stride / 2; y < height; y += change_stride)
    for (std::size_t column = change_stride / 2; column < width; column += change_stride) {
      const std::size_t i = y * width + column;
      const float unit = noise.at(x[i]), difference = z[i] - before[i];
      // A comparison with NaN is false.
      if (count[i] == 0 || !(std::abs(difference) < 8 * unit + 0.03f * std::abs(x[i]))) continue;
      const float X = (static_cast<float>(column) - model.centre_x) * model.scale;
      const float Y = (static_cast<float>(y) - model.centre_y) * model.scale;
      const float per_unit = 1 / unit;
      samples.basis[0].push_back(per_unit);
      samples.basis[1].push_back(X * x[i] * per_unit);
      samples.basis[2].push_back(Y * x[i] * per_unit);
      samples.basis[3].push_back(x[i] * per_unit);
      samples.difference.push_back(difference * per_unit);
    }
  DepthChange change;
  change.samples = samples.difference.size();
  if (change.samples < least_samples) return change;
  samples.weight.resize(change.samples);
  if (moving) fit_change(samples, change);
  change.noise_factor = 1.4826 * median_change(samples, change);
  return change;
}

}  // namespace bilateral
