// Count the pixels whose vertices lack data, as all neighbours of these vertices do.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/threads.hpp"
#include "grid/edges.hpp"
#include "grid/grid.hpp"

namespace bilateral {

// Returns the number of pixels of loose vertices. A vertex lacks weight if it has less than `least`
// per pixel. It is loose if it has neighbours, and these all lack weight, too: the errors of such
// vertices vanish slowly.
template <class T>
double count_loose(const Grid& grid, const T* weight, double least, int threads) {
  enum : std::uint8_t { linked = 1, near_data = 2 };
  std::vector<std::uint8_t> lacking(grid.vertices), ties(grid.vertices, 0);
  for (std::size_t v = 0; v < grid.vertices; ++v)
    lacking[v] = static_cast<double>(weight[v]) < least * static_cast<double>(grid.mass[v]);
  if (std::find(lacking.begin(), lacking.end(), 1) == lacking.end()) return 0;
  std::vector<double> loose(grid.bands(), 0.0);
  parallel_for(
      team_size(threads, grid.vertices, 16384), grid.bands(), [&](std::size_t band, std::size_t) {
        const auto meet = [&](std::size_t v, std::size_t neighbour) {
          ties[v] |= lacking[neighbour] ? linked : linked | near_data;
        };
        for (std::size_t kind = 0; kind < edge_kinds; ++kind) {
          if ((kind == range_edges ? grid.range : grid.space) == 0) continue;
          each_edge(grid, band, kind, [&](std::size_t, std::size_t a, std::size_t b, auto ends) {
            if constexpr (ends != Ends::only_b) meet(a, b);
            if constexpr (ends != Ends::only_a) meet(b, a);
          });
        }
        const Band rows(grid, band);
        for (std::size_t v = rows.first; v < rows.last; ++v)
          if (lacking[v] && ties[v] == linked) loose[band] += static_cast<double>(grid.mass[v]);
      });
  return std::accumulate(loose.begin(), loose.end(), 0.0);
}

}  // namespace bilateral
