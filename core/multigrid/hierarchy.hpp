// Hierarchy: the multigrid levels of a grid, from the grid to a graph without edges. It is built
// once per grid: smoothness and confidence enter only the diagonals.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/thread_pool.hpp"
#include "multigrid/aggregation.hpp"
#include "multigrid/coarsening.hpp"
#include "multigrid/graph.hpp"
#include "multigrid/grid_graph.hpp"

namespace bilateral {

// Numbers that weigh smoothness against confidence on the levels.
struct LevelWeights {
  double stiffness;       // level k has the smoothness lambda stiffness^-k
  double faint_epsilons;  // least weight of a component, relative to lambda L, in units of rounding
};

// Level 0 is the grid.
template <class T>
struct Hierarchy {
  LevelWeights weights;
  GridGraph<T> fine;                // level 0
  std::vector<Graph<T>> coarse;     // [k] is level k + 1
  std::vector<Transfer> transfers;  // [k] connects the levels k and k + 1
  Columns colour0_members;          // transfers[0].members of colour 0
  // [k] has one number per row of level k + 1. A row without neighbours stands for a whole
  // component of the grid: the sum of the degrees of the component's vertices. Other rows: 0.
  std::vector<Buffer<T>> component_degree;

  // Number of coarse levels.
  std::size_t depth() const { return coarse.size(); }

  Hierarchy(const Grid& grid, const T* n, const LevelWeights& level_weights, int threads)
      : Hierarchy(grid, n, level_weights, NoGeometry{}, threads) {}

  static constexpr std::size_t all_levels = std::numeric_limits<std::size_t>::max();

  // Also builds the geometry of the levels, such as PlaneGeometry, which must be new. At most
  // `max_depth` levels are built above the grid.
  template <class Geometry>
  Hierarchy(const Grid& grid, const T* n, const LevelWeights& level_weights, Geometry&& geometry,
            int threads, std::size_t max_depth = all_levels)
      : weights(level_weights) {
    ThreadPool::run(team_size(threads, grid.vertices, 4096), [&](ThreadPool& pool) {
      fine = grid_graph(grid, n, pool);
      geometry.place_grid(grid, fine, pool);
      for (std::size_t size = grid.vertices; size > 0 && depth() < max_depth;)
        size = add_level(size, geometry, pool);
      geometry.finish();
      sum_components(pool);
    });
  }

 private:
  // Coarsens the last level, which has `size` vertices. Returns the number of vertices of the new
  // level, or 0 if the last level has nothing left to aggregate.
  template <class Geometry>
  std::size_t add_level(std::size_t size, Geometry& geometry, ThreadPool& pool) {
    const Graph<T>& last = coarse.empty() ? fine : coarse.back();
    const Aggregates aggregates = aggregate(last, pool);
    if (aggregates.count == size || aggregates.count == 0) return 0;
    auto [graph, transfer] = coarsen(last, aggregates, geometry, pool);
    if (coarse.empty())
      colour0_members = numbers_below(transfer.members, fine.colour[1],
                                      static_cast<std::uint32_t>(fine.rows), pool);
    coarse.push_back(std::move(graph));
    transfers.push_back(std::move(transfer));
    return aggregates.count;
  }

  void sum_components(ThreadPool& pool) {
    Buffer<T> previous;  // degrees of the grid, summed below each row of the previous level
    for (std::size_t k = 0; k < depth(); ++k) {
      const Columns& members = transfers[k].members;
      const T* below = k == 0 ? fine.degree.data() : previous.data();
      Buffer<T> sums(coarse[k].rows + 1);
      sums[coarse[k].rows] = T{0};  // the padding of the next level's members reads it
      component_degree.emplace_back(coarse[k].rows);
      each_slice(coarse[k].slices(), pool, [&](std::size_t s) {
        std::array<T, slice_rows> sum{};
        for (std::size_t c = members.first[s]; c < members.first[s + 1]; ++c)
          for (std::size_t i = 0; i < slice_rows; ++i)
            sum[i] += below[members.to[c * slice_rows + i]];
        for (std::size_t i = 0; i < slice_rows; ++i) {
          const std::size_t row = s * slice_rows + i;
          sums[row] = sum[i];
          component_degree[k][row] = coarse[k].degree[row] > T{0} ? T{0} : sum[i];
        }
      });
      previous = std::move(sums);
    }
  }
};

}  // namespace bilateral
