// The multigrid hierarchy of a grid, made once: graphs from the grid to one without edges. It
// depends neither on the smoothness nor on the confidence, which only enter the diagonals.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/thread_pool.hpp"
#include "multigrid/aggregation.hpp"
#include "multigrid/coarsening.hpp"
#include "multigrid/graph.hpp"
#include "multigrid/grid_graph.hpp"

namespace bilateral {

template <class T>
struct Multigrid {
  GridGraph<T> fine;
  std::vector<Graph<T>> coarse;    // level k + 1 at [k]
  std::vector<Transfer> transfer;  // from level k to k + 1 at [k]
  Columns first_colour;            // transfer[0].children, those of colour 0 only
  // Of level k + 1 at [k], per row without neighbours: the degrees of the grid's vertices below it,
  // summed up. Such a row stands for a whole component of the grid. 0 for other rows.
  std::vector<Buffer<T>> within;

  std::size_t depth() const { return coarse.size(); }

  Multigrid(const Grid& grid, const T* n, int threads) {
    Crew::run(team_size(threads, grid.vertices, 4096), [&](Crew& crew) {
      fine = grid_graph(grid, n, crew);
      for (std::size_t size = grid.vertices; size > 0;) size = add_level(size, crew);
      sum_components(crew);
    });
  }

 private:
  // Returns the number of vertices, or 0 if there was nothing to join among the last level's.
  std::size_t add_level(std::size_t last_size, Crew& crew) {
    const Graph<T>& last = coarse.empty() ? fine : coarse.back();
    const Aggregates aggregates = aggregate(last, crew);
    if (aggregates.count == last_size) return 0;
    if (aggregates.count == 0) return 0;
    detail::Coarsening<T> coarsening(last, aggregates, crew);
    auto [next, way] = coarsening.run();
    if (coarse.empty())
      first_colour = detail::numbers_below(way.children, fine.colour[1],
                                           static_cast<std::uint32_t>(fine.rows), crew);
    coarse.push_back(std::move(next));
    transfer.push_back(std::move(way));
    return aggregates.count;
  }

  void sum_components(Crew& crew) {
    Buffer<T> below;
    for (std::size_t k = 0; k < depth(); ++k) {
      const Columns& children = transfer[k].children;
      const T* from = k == 0 ? fine.degree.data() : below.data();
      Buffer<T> sums(coarse[k].rows + 1);
      sums[coarse[k].rows] = T{0};  // where the next children's padding leads
      within.emplace_back(coarse[k].rows);
      each_slice(coarse[k].slices(), crew, [&](std::size_t s) {
        std::array<T, slice_rows> sum{};
        for (std::size_t c = children.first[s]; c < children.first[s + 1]; ++c)
          for (std::size_t i = 0; i < slice_rows; ++i)
            sum[i] += from[children.to[c * slice_rows + i]];
        for (std::size_t i = 0; i < slice_rows; ++i) {
          const std::size_t row = s * slice_rows + i;
          sums[row] = sum[i];
          within[k][row] = coarse[k].degree[row] > T{0} ? T{0} : sum[i];
        }
      });
      below = std::move(sums);
    }
  }
};

}  // namespace bilateral
