// The multigrid hierarchy of a grid, made once: graphs from the grid to one without edges. It
// depends neither on the smoothness nor on the confidence, which only enter the diagonals.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "aggregation.hpp"
#include "coarsening.hpp"
#include "edges.hpp"
#include "graph.hpp"
#include "threads.hpp"

namespace bilateral {

template <class T>
struct Multigrid {
  GridGraph<T> fine;
  std::vector<Graph<T>> coarse;    // level k + 1 at [k]
  std::vector<Transfer> transfer;  // from level k to k + 1 at [k]

  static constexpr std::size_t deepest = 40;
  std::size_t depth() const { return coarse.size(); }

  Multigrid(const Grid& grid, const T* n, int threads) : fine(grid_graph(grid, n, threads)) {
    Buffer<std::uint32_t> row(grid.vertices);
    for (std::size_t i = 0; i < grid.vertices; ++i)
      row[fine.vertex[i]] = static_cast<std::uint32_t>(i);
    const auto first_colour = [&](std::size_t v) { return fine.parity[v] == 0; };
    add(fine, row.data(), first_colour, threads);
    while (!coarse.empty() && depth() < deepest)
      if (!add(coarse.back(), nullptr, [](std::size_t) { return true; }, threads)) break;
  }

 private:
  static std::size_t edges(const Graph<T>& graph) { return graph.first[graph.vertices]; }

  template <class Early>
  bool add(const Graph<T>& graph, const std::uint32_t* row_of, Early&& early, int threads) {
    if (edges(graph) == 0) return false;
    const Aggregates aggregates = aggregate(graph, threads);
    if (aggregates.count == 0 || aggregates.count == graph.vertices) return false;
    auto [next, way] = coarsen(graph, row_of, aggregates, early, threads);
    coarse.push_back(std::move(next));
    transfer.push_back(std::move(way));
    return true;
  }
};

}  // namespace bilateral
