// A y = b for any number of channels: which parts have data, the start, and PCG in groups.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "bistochastize.hpp"
#include "grid.hpp"
#include "hierarchy.hpp"
#include "pcg.hpp"
#include "vectors.hpp"

namespace bilateral {

// Connected components of the grid, as the smallest vertex of each vertex's component.
inline std::vector<std::uint32_t> components(const Grid& grid) {
  std::vector<std::uint32_t> root(grid.vertices);
  std::iota(root.begin(), root.end(), 0u);
  auto find = [&](std::uint32_t v) {
    while (root[v] != v) v = root[v] = root[root[v]];
    return v;
  };
  for (std::size_t kind = 0; kind < edge_kinds; ++kind) {
    if ((kind == range_edges ? grid.range : grid.space) == 0) continue;
    for (std::size_t band = 0; band < grid.bands(); ++band)
      each_edge(grid, band, kind, [&](std::size_t, std::size_t a, std::size_t b, auto ends) {
        if constexpr (ends != Ends::only_b) {
          const std::uint32_t one = find(static_cast<std::uint32_t>(a));
          const std::uint32_t two = find(static_cast<std::uint32_t>(b));
          root[std::max(one, two)] = std::min(one, two);
        }
      });
  }
  for (std::uint32_t v = 0; v < grid.vertices; ++v) root[v] = find(v);
  return root;
}

// Per vertex, whether its component holds data.
template <class T>
std::vector<std::uint8_t> with_data(const std::vector<std::uint32_t>& root, const T* weight) {
  std::vector<std::uint8_t> any(root.size(), 0), out(root.size());
  for (std::size_t v = 0; v < root.size(); ++v) any[root[v]] |= weight[v] > T{0};
  for (std::size_t v = 0; v < root.size(); ++v) out[v] = any[root[v]];
  return out;
}

// The paper's starts. Flat: each vertex's own mean, where it has data.
template <class T>
void flat_start(const Grid& grid, const T* weight, const T* weighted, std::size_t channels, T* x,
                int threads) {
  pyramid_start(grid, weight, weighted, channels, x, threads);
  for (std::size_t v = 0; v < grid.vertices; ++v)
    if (weight[v] > T{0})
      for (std::size_t k = 0; k < channels; ++k)
        x[v * channels + k] = weighted[v * channels + k] / weight[v];
}

namespace detail {

// Channels [first, first + count) of a vertex array with `channels` channels, padded to K.
template <std::size_t K, class T>
Buffer<T> take(const T* from, std::size_t vertices, std::size_t channels, std::size_t first,
               std::size_t count) {
  Buffer<T> out(vertices * K);
  for (std::size_t v = 0; v < vertices; ++v)
    for (std::size_t k = 0; k < K; ++k)
      out[v * K + k] = k < count ? from[v * channels + first + k] : T{0};
  return out;
}

// Shifts each component by a constant so that its residuals sum to 0: since L 1 = 0, that sum is
// sum c (t - x) exactly, and the shift removes the one error that large smoothness makes invisible
// to conjugate gradients. Returns whether that was a shift by more than `tolerance` (RMS over the
// image, relative to scale) and by more than rounding makes it.
template <std::size_t K, class T>
bool shift_components(const Grid& grid, const std::vector<std::uint32_t>& root, const T* weight,
                      const T* b, const std::array<double, K>& scale, double tolerance, T* x) {
  struct Sum {
    double weight = 0, mass = 0;
    std::array<double, K> residual{};
  };
  std::vector<Sum> sums(root.size());
  for (std::size_t v = 0; v < root.size(); ++v) {
    Sum& sum = sums[root[v]];
    sum.weight += static_cast<double>(weight[v]);
    sum.mass += static_cast<double>(grid.mass[v]);
    for (std::size_t k = 0; k < K; ++k)
      sum.residual[k] += static_cast<double>(b[v * K + k]) -
                         static_cast<double>(weight[v]) * static_cast<double>(x[v * K + k]);
  }
  std::array<double, K> moved{};
  for (Sum& sum : sums)
    for (std::size_t k = 0; k < K; ++k) {
      const double shift = sum.weight > 0 ? sum.residual[k] / sum.weight : 0;
      sum.residual[k] = shift;
      moved[k] += sum.mass * shift * shift;
    }
  std::array<double, K> size{};
  for (std::size_t v = 0; v < root.size(); ++v)
    for (std::size_t k = 0; k < K; ++k) {
      const double value = static_cast<double>(x[v * K + k]) + sums[root[v]].residual[k];
      x[v * K + k] = static_cast<T>(value);
      size[k] = std::max(size[k], std::abs(value));
    }
  constexpr auto epsilon = static_cast<double>(std::numeric_limits<T>::epsilon());
  bool shifted = false;
  for (std::size_t k = 0; k < K; ++k) {
    const double rms = std::sqrt(moved[k] / static_cast<double>(grid.pixels()));
    shifted = shifted || rms > std::max(tolerance * scale[k], 8 * epsilon * (size[k] + scale[k]));
  }
  return shifted;
}

// What all channels of a system share.
template <class T>
struct Shared {
  const Grid& grid;
  const T* n;
  const T* weight;
  std::vector<std::uint32_t> root;   // components, where they matter
  std::vector<std::uint8_t> active;  // empty: everywhere
  bool stiff;                        // so that constants must be looked after, see shift_components
};

template <std::size_t K, class T>
PcgResult solve_channels(const Shared<T>& shared, const T* b, const std::array<double, K>& scale,
                         T* x, PcgOptions options) {
  PcgResult all;
  const int most = options.most_steps;
  const auto after_step = options.after_step;
  options.after_step = [&](int step, double residual) {
    return after_step && after_step(static_cast<int>(all.residuals.size()) + step, residual);
  };
  const std::uint8_t* active = shared.active.empty() ? nullptr : shared.active.data();
  Pcg<T, K> pcg(shared.grid, shared.n, shared.weight, active, options);
  for (bool done = false; !done;) {
    options.most_steps = most - static_cast<int>(all.residuals.size());
    const PcgResult part = pcg.run(b, x, scale);
    all.residuals.insert(all.residuals.end(), part.residuals.begin(), part.residuals.end());
    all.converged = part.converged;
    all.cancelled = part.cancelled;
    done = !shared.stiff || !part.converged || part.cancelled ||
           !shift_components<K>(shared.grid, shared.root, shared.weight, b, scale,
                                options.tolerance, x);
    if (!done && static_cast<int>(all.residuals.size()) >= most) {
      all.converged = false;
      done = true;
    }
  }
  return all;
}

template <std::size_t K, class T>
PcgResult solve_group(const Shared<T>& shared, const T* weighted, std::size_t channels,
                      std::size_t first, std::size_t count, const double* scale, T* x,
                      const PcgOptions& options) {
  const std::size_t vertices = shared.grid.vertices;
  std::array<double, K> group_scale;
  group_scale.fill(1);
  std::copy_n(scale + first, count, group_scale.begin());
  if (channels == K) return solve_channels<K>(shared, weighted, group_scale, x, options);
  const Buffer<T> b = take<K>(weighted, vertices, channels, first, count);
  Buffer<T> y = take<K>(x, vertices, channels, first, count);
  PcgResult result = solve_channels<K>(shared, b.data(), group_scale, y.data(), options);
  for (std::size_t v = 0; v < vertices; ++v)
    for (std::size_t k = 0; k < count; ++k) x[v * channels + first + k] = y[v * K + k];
  return result;
}

}  // namespace detail

// Solves A y = b for all channels. x holds the start on entry and the solution on return; parts of
// the grid without data get the pyramid start. n comes from bistochastize; `scale` is the size of
// the answer per channel.
template <class T>
PcgResult solve_system(const Grid& grid, const T* n, const T* weight, const T* weighted,
                       std::size_t channels, const double* scale, T* x, const PcgOptions& options) {
  detail::Shared<T> shared{grid, n, weight, {}, {}, false};
  const T* end = weight + grid.vertices;
  const double total = detail::eight_sums(grid.vertices, [=](std::size_t i) { return weight[i]; });
  shared.stiff = options.tolerance >= 0 &&
                 options.smoothness * static_cast<double>(grid.pixels()) > 100 * total;
  const bool gaps = std::any_of(weight, end, [](T w) { return !(w > T{0}); });
  if (gaps || shared.stiff) shared.root = components(grid);
  if (gaps) shared.active = with_data(shared.root, weight);
  if (std::find(shared.active.begin(), shared.active.end(), 0) != shared.active.end()) {
    Buffer<T> start(grid.vertices * channels);
    pyramid_start(grid, weight, weighted, channels, start.data(), options.threads);
    for (std::size_t v = 0; v < grid.vertices; ++v)
      if (!shared.active[v]) std::copy_n(start.data() + v * channels, channels, x + v * channels);
  } else {
    shared.active.clear();
  }
  PcgResult all;
  all.converged = true;
  for (std::size_t first = 0; first < channels && !all.cancelled;) {
    const std::size_t left = channels - first;
    const std::size_t count = left > 4 ? std::min<std::size_t>(left, 8) : left;
    const auto group = [&]<std::size_t K>() {
      return detail::solve_group<K>(shared, weighted, channels, first, count, scale, x, options);
    };
    const PcgResult result = count > 4   ? group.template operator()<8>()
                             : count > 1 ? group.template operator()<4>()
                                         : group.template operator()<1>();
    all.converged = all.converged && result.converged;
    all.cancelled = result.cancelled;
    if (all.residuals.size() < result.residuals.size())
      all.residuals.resize(result.residuals.size(), 0.0);
    for (std::size_t i = 0; i < result.residuals.size(); ++i)
      all.residuals[i] = std::max(all.residuals[i], result.residuals[i]);
    first += count;
  }
  return all;
}

}  // namespace bilateral
