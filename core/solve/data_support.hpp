// Count the pixels whose vertices have little data of their own, or of their neighbours.
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

// A vertex is faint if its weight is less than `least` times its number of pixels. It is loose if
// it has neighbours and these are all faint, too: the error of such vertices vanishes slowly.
struct DataSupport {
  double faint = 0, loose = 0;  // number of pixels
};

template <class T>
DataSupport data_support(const Grid& grid, const T* weight, double least, int threads) {
  enum : std::uint8_t { linked = 1, near_data = 2 };
  std::vector<std::uint8_t> faint(grid.vertices), ties(grid.vertices, 0);
  DataSupport support;
  for (std::size_t v = 0; v < grid.vertices; ++v) {
    const auto pixels = static_cast<double>(grid.mass[v]);
    faint[v] = static_cast<double>(weight[v]) < least * pixels;
    if (faint[v]) support.faint += pixels;
  }
  if (support.faint == 0) return support;
  std::vector<double> loose(grid.bands(), 0.0);
  parallel_for(
      team_size(threads, grid.vertices, 16384), grid.bands(), [&](std::size_t band, std::size_t) {
        const auto meet = [&](std::size_t v, std::size_t neighbour) {
          ties[v] |= faint[neighbour] ? linked : linked | near_data;
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
          if (faint[v] && ties[v] == linked) loose[band] += static_cast<double>(grid.mass[v]);
      });
  support.loose = std::accumulate(loose.begin(), loose.end(), 0.0);
  return support;
}

}  // namespace bilateral
