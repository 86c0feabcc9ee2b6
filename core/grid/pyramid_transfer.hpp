// Transfer vectors up and down the pyramid (P and P^T), and compute the paper's starts.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/pack.hpp"
#include "base/threads.hpp"
#include "grid/edges.hpp"
#include "grid/grid.hpp"

namespace bilateral {

// P for one level and one band: sums K channels over the children of each parent.
template <std::size_t K, class T>
void lift_band(const Level& level, std::size_t band, const T* fine, T* coarse) {
  std::fill(coarse + level.parent_band[band] * K, coarse + level.parent_band[band + 1] * K, T{0});
  const std::uint32_t* parent = level.parent.data();
  in_turns(level.band[band], level.band[band + 1], [=](std::size_t i) {
    T* to = coarse + parent[i] * K;
    put<K>(to, get<K>(to) + get<K>(fine + i * K));
  });
}

// Vectors for all levels above the grid: level k + 1 at [k].
template <class T>
std::vector<Buffer<T>> pyramid_vector(const Grid& grid, std::size_t channels) {
  std::vector<Buffer<T>> out;
  for (const Level& level : grid.levels)
    out.emplace_back(static_cast<std::size_t>(level.parent_band.back()) * channels);
  return out;
}

// H v = v + sum_k 4^-k (the mean of v over each vertex of level k), which is (alpha, beta) = (4, 0)
// in the paper. H is symmetric. For C vectors at once: `value(i)` returns their values at vertex i,
// and `store(i, sums)` receives the result.
template <std::size_t C, class Value, class Store>
void push_pull(const Grid& grid, Value&& value, Store&& store, int threads) {
  using Sums = std::array<double, C>;
  const std::size_t depth = grid.levels.size();
  auto up = pyramid_vector<double>(grid, C);
  const auto each_band = [&](const std::vector<std::uint32_t>& band, auto&& f) {
    parallel_for(team_size(threads, band.back(), 16384), band.size() - 1,
                 [&](std::size_t i, std::size_t) { f(i); });
  };
  const auto above = [&](std::size_t k,
                         std::size_t i) {  // the sums of the parent of vertex i of level k
    Sums sums{};
    if (k < depth) std::copy_n(up[k].data() + C * grid.levels[k].parent[i], C, sums.begin());
    return sums;
  };
  if (depth > 0)
    each_band(grid.levels[0].band, [&](std::size_t band) {
      const Level& level = grid.levels[0];
      double* to = up[0].data();
      std::fill(to + C * level.parent_band[band], to + C * level.parent_band[band + 1], 0.0);
      for (std::size_t i = level.band[band]; i < level.band[band + 1]; ++i) {
        const Sums values = value(i);
        for (std::size_t c = 0; c < C; ++c) to[C * level.parent[i] + c] += values[c];
      }
    });
  for (std::size_t k = 1; k < depth; ++k)
    each_band(grid.levels[k].band, [&](std::size_t band) {
      lift_band<C>(grid.levels[k], band, up[k - 1].data(), up[k].data());
    });
  const std::vector<std::uint32_t> top{0, 1};
  for (std::size_t k = depth; k-- > 0;) {
    const double scale = std::pow(4.0, -static_cast<double>(k + 1));
    const auto& bands = k + 1 < depth ? grid.levels[k + 1].band : top;
    each_band(bands, [&](std::size_t band) {
      for (std::size_t i = bands[band]; i < bands[band + 1]; ++i) {
        const double factor = scale / grid.levels[k].size[i];
        const Sums more = above(k + 1, i);
        for (std::size_t c = 0; c < C; ++c) up[k][C * i + c] = factor * up[k][C * i + c] + more[c];
      }
    });
  }
  each_band(grid.band_vertex, [&](std::size_t band) {
    for (std::size_t i = grid.band_vertex[band]; i < grid.band_vertex[band + 1]; ++i) {
      Sums sums = value(i);
      const Sums more = above(0, i);
      for (std::size_t c = 0; c < C; ++c) sums[c] += more[c];
      store(i, sums);
    }
  });
}

// The paper's hierarchical start: H weighted / H weight.
template <class T>
void pyramid_start(const Grid& grid, const T* weight, const T* weighted, std::size_t channels, T* x,
                   int threads) {
  using Sums = std::array<double, 2>;  // weight and one channel
  for (std::size_t k = 0; k < channels; ++k)
    push_pull<2>(
        grid,
        [=](std::size_t i) {
          return Sums{static_cast<double>(weight[i]),
                      static_cast<double>(weighted[i * channels + k])};
        },
        [=](std::size_t i, const Sums& sums) {
          x[i * channels + k] = static_cast<T>(sums[1] / sums[0]);
        },
        threads);
}

// Whether a vertex has no data.
template <class T>
bool has_gaps(const T* weight, std::size_t vertices) {
  return std::any_of(weight, weight + vertices, [](T w) { return !(w > T{0}); });
}

// Writes the mean of each vertex that has data: the paper's flat start, where the others hold the
// pyramid start.
template <class T>
void means_of_vertices(const T* weight, const T* weighted, std::size_t vertices,
                       std::size_t channels, T* x) {
  for (std::size_t v = 0; v < vertices; ++v)
    if (weight[v] > T{0})
      for (std::size_t k = 0; k < channels; ++k)
        x[v * channels + k] = weighted[v * channels + k] / weight[v];
}

// out = H v.
template <class T>
void push_pull_values(const Grid& grid, const T* v, std::size_t channels, T* out, int threads) {
  using Sums = std::array<double, 1>;
  for (std::size_t k = 0; k < channels; ++k)
    push_pull<1>(
        grid, [=](std::size_t i) { return Sums{static_cast<double>(v[i * channels + k])}; },
        [=](std::size_t i, const Sums& sums) { out[i * channels + k] = static_cast<T>(sums[0]); },
        threads);
}

}  // namespace bilateral
