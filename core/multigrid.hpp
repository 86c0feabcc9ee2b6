// The multigrid hierarchy of a grid, made once: graphs from the grid to one without edges. It
// depends neither on the smoothness nor on the confidence, which only enter the diagonals.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "aggregation.hpp"
#include "coarsening.hpp"
#include "graph.hpp"
#include "grid_graph.hpp"

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

  Multigrid(const Grid& grid, const T* n, int threads) : fine(grid_graph(grid, n, threads)) {
    for (std::size_t size = grid.vertices; size > 0;) size = add_level(size, threads);
    sum_components();
  }

 private:
  // Returns the number of vertices, or 0 if there was nothing to join among the last level's.
  std::size_t add_level(std::size_t last_size, int threads) {
    const Graph<T>& last = coarse.empty() ? fine : coarse.back();
    const Aggregates aggregates = aggregate(last, threads);
    if (aggregates.count == last_size) return 0;
    if (aggregates.count == 0) return 0;
    detail::Coarsening<T> coarsening(last, aggregates, threads);
    auto [next, way] = coarsening.run();
    if (coarse.empty()) first_colour = coarsening.children(fine.colour[1]);
    coarse.push_back(std::move(next));
    transfer.push_back(std::move(way));
    return aggregates.count;
  }

  void sum_components() {
    std::vector<T> below(fine.degree.data(), fine.degree.data() + fine.rows);
    for (std::size_t k = 0; k < depth(); ++k) {
      const Columns& children = transfer[k].children;
      below.resize(below.size() + 1, T{0});  // where the children's padding leads
      std::vector<T> sums(coarse[k].rows, T{0});
      for (std::size_t s = 0; s < coarse[k].slices(); ++s)
        for (std::size_t e = children.first[s] * slice_rows; e < children.first[s + 1] * slice_rows;
             ++e)
          sums[s * slice_rows + e % slice_rows] += below[children.to[e]];
      within.emplace_back(coarse[k].rows);
      for (std::size_t i = 0; i < coarse[k].rows; ++i)
        within[k][i] = coarse[k].degree[i] > T{0} ? T{0} : sums[i];
      below = std::move(sums);
    }
  }
};

}  // namespace bilateral
