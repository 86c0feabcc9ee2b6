// A y = b for any number of channels: which parts have data, the start, and PCG in groups.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "bistochastize.hpp"
#include "grid.hpp"
#include "hierarchy.hpp"
#include "pcg.hpp"

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

// 1 where a vertex's component holds data; empty when every vertex has data of its own.
template <class T>
std::vector<std::uint8_t> vertices_with_data(const Grid& grid, const T* weight) {
  const T* end = weight + grid.vertices;
  if (std::all_of(weight, end, [](T w) { return w > T{0}; })) return {};
  const auto root = components(grid);
  std::vector<std::uint8_t> any(grid.vertices, 0), out(grid.vertices);
  for (std::size_t v = 0; v < grid.vertices; ++v) any[root[v]] |= weight[v] > T{0};
  for (std::size_t v = 0; v < grid.vertices; ++v) out[v] = any[root[v]];
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

template <std::size_t K, class T>
PcgResult solve_group(const Grid& grid, const T* n, const T* weight, const T* weighted,
                      std::size_t channels, std::size_t first, std::size_t count,
                      const std::uint8_t* active, const double* scale, T* x,
                      const PcgOptions& options) {
  std::array<double, K> group_scale;
  group_scale.fill(1);
  std::copy_n(scale + first, count, group_scale.begin());
  Pcg<T, K> pcg(grid, n, weight, active, options);
  if (channels == K) return pcg.run(weighted, x, group_scale);
  const Buffer<T> b = take<K>(weighted, grid.vertices, channels, first, count);
  Buffer<T> y = take<K>(x, grid.vertices, channels, first, count);
  PcgResult result = pcg.run(b.data(), y.data(), group_scale);
  for (std::size_t v = 0; v < grid.vertices; ++v)
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
  const auto active = vertices_with_data(grid, weight);
  if (std::find(active.begin(), active.end(), 0) != active.end()) {
    Buffer<T> start(grid.vertices * channels);
    pyramid_start(grid, weight, weighted, channels, start.data(), options.threads);
    for (std::size_t v = 0; v < grid.vertices; ++v)
      if (!active[v]) std::copy_n(start.data() + v * channels, channels, x + v * channels);
  }
  const std::uint8_t* mask = active.empty() ? nullptr : active.data();
  PcgResult all;
  all.converged = true;
  for (std::size_t first = 0; first < channels && !all.cancelled;) {
    const std::size_t left = channels - first;
    const std::size_t count = left > 4 ? std::min<std::size_t>(left, 8) : left;
    const auto group = [&]<std::size_t K>() {
      return detail::solve_group<K>(grid, n, weight, weighted, channels, first, count, mask, scale,
                                    x, options);
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
