// Moving vectors up and down the pyramid (P and P^T), band by band, and the paper's start.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "edges.hpp"
#include "grid.hpp"
#include "pack.hpp"
#include "threads.hpp"

namespace bilateral {

// One level up, the parents of one band: sums of K channels over children.
template <std::size_t K, class T>
void lift_band(const Level& level, std::size_t band, const T* fine, T* coarse) {
  std::fill(coarse + level.parent_band[band] * K, coarse + level.parent_band[band + 1] * K, T{0});
  const std::uint32_t* parent = level.parent.data();
  in_turns(level.band[band], level.band[band + 1], [=](std::size_t i) {
    T* to = coarse + parent[i] * K;
    put<K>(to, get<K>(to) + get<K>(fine + i * K));
  });
}

// Every level of a pyramid vector, coarser than the grid itself; level k + 1 at [k].
template <class T>
std::vector<Buffer<T>> pyramid_vector(const Grid& grid, std::size_t channels) {
  std::vector<Buffer<T>> out;
  for (const Level& level : grid.levels)
    out.emplace_back(static_cast<std::size_t>(level.parent_band.back()) * channels);
  return out;
}

// The paper's hierarchical start: a push-pull of weighted / weight with (alpha, beta) = (4, 0).
template <class T>
void pyramid_start(const Grid& grid, const T* weight, const T* weighted, std::size_t channels, T* x,
                   int threads) {
  using Sum = std::array<double, 2>;  // weight and one channel side by side
  const std::size_t depth = grid.levels.size();
  auto up = pyramid_vector<double>(grid, 2);  // of level k + 1 at [k]
  const auto each_band = [&](const std::vector<std::uint32_t>& band, auto&& f) {
    parallel_for(team_size(threads, band.back(), 16384), band.size() - 1,
                 [&](std::size_t i, std::size_t) { f(i); });
  };
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const auto own = [&](std::size_t i) {
      return Sum{static_cast<double>(weight[i]),
                 static_cast<double>(weighted[i * channels + channel])};
    };
    const auto above = [&](std::size_t k, std::size_t i) {  // what vertex i of level k gets
      if (k == depth) return Sum{0, 0};
      const double* from = up[k].data() + 2 * grid.levels[k].parent[i];
      return Sum{from[0], from[1]};
    };
    if (depth > 0)
      each_band(grid.levels[0].band, [&](std::size_t band) {
        const Level& level = grid.levels[0];
        double* to = up[0].data();
        std::fill(to + 2 * level.parent_band[band], to + 2 * level.parent_band[band + 1], 0.0);
        for (std::size_t i = level.band[band]; i < level.band[band + 1]; ++i) {
          to[2 * level.parent[i]] += own(i)[0];
          to[2 * level.parent[i] + 1] += own(i)[1];
        }
      });
    for (std::size_t k = 1; k < depth; ++k)
      each_band(grid.levels[k].band, [&](std::size_t band) {
        lift_band<2>(grid.levels[k], band, up[k - 1].data(), up[k].data());
      });
    const std::vector<std::uint32_t> top{0, 1};
    for (std::size_t k = depth; k-- > 0;) {
      const double scale = std::pow(4.0, -static_cast<double>(k + 1));
      const auto& bands = k + 1 < depth ? grid.levels[k + 1].band : top;
      each_band(bands, [&](std::size_t band) {
        for (std::size_t i = bands[band]; i < bands[band + 1]; ++i) {
          const double factor = scale / grid.levels[k].size[i];
          const Sum more = above(k + 1, i);
          for (std::size_t c = 0; c < 2; ++c)
            up[k][2 * i + c] = factor * up[k][2 * i + c] + more[c];
        }
      });
    }
    each_band(grid.band_vertex, [&](std::size_t band) {
      for (std::size_t i = grid.band_vertex[band]; i < grid.band_vertex[band + 1]; ++i) {
        const Sum mine = own(i), more = above(0, i);
        x[i * channels + channel] = static_cast<T>((mine[1] + more[1]) / (mine[0] + more[0]));
      }
    });
  }
}

}  // namespace bilateral
