// Moving vectors up and down the pyramid (P and P^T), band by band, and the paper's start.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "edges.hpp"
#include "grid.hpp"
#include "threads.hpp"

namespace bilateral {

// One level up, the parents of one band: sums of K channels over children.
template <std::size_t K, class T>
void lift_band(const Level& level, std::size_t band, const T* fine, T* coarse) {
  std::fill(coarse + level.parent_band[band] * K, coarse + level.parent_band[band + 1] * K, T{0});
  const std::uint32_t* parent = level.parent.data();
  in_turns(level.band[band], level.band[band + 1], [=](std::size_t i) {
    for (std::size_t k = 0; k < K; ++k) coarse[parent[i] * K + k] += fine[i * K + k];
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
  const std::size_t depth = grid.levels.size();
  auto up = pyramid_vector<double>(grid, 2);  // weight and one channel side by side
  const int team = team_size(threads, grid.vertices, 16384);
  for (std::size_t channel = 0; channel < channels; ++channel)
    run_team(team, [&](const Worker& worker) {
      for (std::size_t k = 0; k < depth; ++k) {
        const Level& level = grid.levels[k];
        const Share share(level.band, worker);
        for (std::size_t band = share.begin; band < share.end; ++band) {
          if (k > 0) {
            lift_band<2>(level, band, up[k - 1].data(), up[k].data());
            continue;
          }
          std::fill(up[0].data() + 2 * level.parent_band[band],
                    up[0].data() + 2 * level.parent_band[band + 1], 0.0);
          for (std::size_t i = level.band[band]; i < level.band[band + 1]; ++i) {
            up[0][2 * level.parent[i]] += static_cast<double>(weight[i]);
            up[0][2 * level.parent[i] + 1] += static_cast<double>(weighted[i * channels + channel]);
          }
        }
        worker.barrier.wait();
      }
      for (std::size_t k = depth; k-- > 0;) {
        // Values of level k + 1: scaled by 4^-(k + 1) / P(1), plus what came from above.
        const double scale = std::pow(4.0, -static_cast<double>(k + 1));
        const std::size_t count = up[k].size() / 2;
        const auto part = [&](int rank) {
          return count * static_cast<std::size_t>(rank) / static_cast<std::size_t>(worker.size);
        };
        for (std::size_t i = part(worker.rank); i < part(worker.rank + 1); ++i) {
          const double factor = scale / grid.levels[k].size[i];
          const std::size_t j = k + 1 < depth ? 2 * grid.levels[k + 1].parent[i] : 0;
          for (std::size_t c = 0; c < 2; ++c)
            up[k][2 * i + c] = factor * up[k][2 * i + c] + (k + 1 < depth ? up[k + 1][j + c] : 0);
        }
        worker.barrier.wait();
      }
      const auto part = [&](int rank) {
        return grid.vertices * static_cast<std::size_t>(rank) /
               static_cast<std::size_t>(worker.size);
      };
      for (std::size_t i = part(worker.rank); i < part(worker.rank + 1); ++i) {
        double below = static_cast<double>(weight[i]);
        double above = static_cast<double>(weighted[i * channels + channel]);
        if (depth > 0) {
          below += up[0][2 * grid.levels[0].parent[i]];
          above += up[0][2 * grid.levels[0].parent[i] + 1];
        }
        x[i * channels + channel] = static_cast<T>(above / below);
      }
    });
}

}  // namespace bilateral
