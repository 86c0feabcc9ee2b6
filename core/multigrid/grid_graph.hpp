// Grid graph: level 0 of the hierarchy, the graph of the grid's vertices. It has two colours, since
// neighbours differ in the parity of their coordinate sum.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "base/thread_pool.hpp"
#include "grid/edges.hpp"
#include "grid/grid.hpp"
#include "multigrid/graph.hpp"

namespace bilateral {

template <class T>
struct GridGraph : Graph<T> {
  Buffer<std::uint32_t> vertex;                        // of each row, or nowhere
  std::array<std::vector<std::uint32_t>, 2> band_row;  // per colour: first row of each band, end
};

namespace detail {

// Returns the parity of each vertex's coordinate sum.
inline Buffer<std::uint8_t> parities(const Grid& grid, ThreadPool& pool) {
  Buffer<std::uint8_t> parity(grid.vertices);
  std::visit(
      [&]<class Key>(const Tiles<Key>& tiles) {
        pool.each(team_size(pool.size(), grid.vertices, 8192), tiles.rows(),
                  [&](std::size_t row, std::size_t) {
                    for (std::size_t i = 0; i < tiles.columns(); ++i) {
                      const std::size_t tile = row * tiles.columns() + i;
                      const std::int64_t cell =
                          tiles.x.coordinate[i] + tiles.row.cell[row].y + tiles.row.cell[row].t;
                      for (std::size_t v = tiles.first[tile]; v < tiles.first[tile + 1]; ++v) {
                        int sum = static_cast<int>(cell & 1);
                        for (std::size_t k = 0; k < grid.layout.channels; ++k)
                          sum += static_cast<int>((tiles.keys[v] >> grid.layout.shift[k]) & 1);
                        parity[v] = static_cast<std::uint8_t>(sum & 1);
                      }
                    }
                  });
      },
      grid.tiles);
  return parity;
}

// Calls f(weight, a, b, ends) for each edge with an end in the band, with its weight in the blur B.
// Skips kinds of edges that have weight 0.
template <class F>
void each_weighted_edge(const Grid& grid, std::size_t band, F&& f) {
  for (std::size_t kind = 0; kind < edge_kinds; ++kind)
    if (const double weight = kind == range_edges ? grid.range : grid.space; weight > 0)
      each_edge(grid, band, kind, [&](std::size_t, std::size_t a, std::size_t b, auto ends) {
        f(weight, a, b, ends);
      });
}

template <class T>
class GridGraphBuilder {
 public:
  GridGraphBuilder(const Grid& grid, const T* n, ThreadPool& pool)
      : grid_(grid),
        n_(n),
        pool_(pool),
        parity_(parities(grid, pool)),
        count_(grid.vertices),
        row_(grid.vertices),
        next_(grid.vertices) {}

  GridGraph<T> build() {
    for (auto& rows : graph_.band_row) rows.assign(grid_.bands() + 1, 0);
    each_band([&](std::size_t band) { count_neighbours(band); });
    std::uint32_t row = 0;
    for (auto& rows : graph_.band_row) {
      graph_.colour.push_back(row);
      rows[0] = row;
      for (std::size_t band = 0; band < grid_.bands(); ++band) rows[band + 1] += rows[band];
      row = rows.back();
    }
    graph_.colour.push_back(row);
    graph_.rows = row;
    graph_.vertex = Buffer<std::uint32_t>(row);
    graph_.entry.first = Buffer<std::uint32_t>(graph_.slices() + 1);
    graph_.entry.first[0] = 0;
    graph_.first_later = Buffer<std::uint32_t>(graph_.slices());
    each_band([&](std::size_t band) { order_rows(band); });
    graph_.allocate_entries();
    each_band([&](std::size_t band) { fill_entries(band); });
    return std::move(graph_);
  }

 private:
  template <class F>
  void each_band(F&& f) {
    pool_.each(team_size(pool_.size(), grid_.vertices, 4096), grid_.bands(),
               [&](std::size_t band, std::size_t) { f(band); });
  }

  // Counts the neighbours of each vertex of a band, and the band's rows of each colour.
  void count_neighbours(std::size_t band) {
    const Band here(grid_, band);
    std::fill(count_.data() + here.first, count_.data() + here.last, std::uint8_t{0});
    each_weighted_edge(grid_, band, [&](double, std::size_t a, std::size_t b, auto ends) {
      if constexpr (ends != Ends::only_b) ++count_[a];
      if constexpr (ends != Ends::only_a) ++count_[b];
    });
    std::array<std::size_t, 2> rows{};
    for (std::size_t v = here.first; v < here.last; ++v) ++rows[parity_[v]];
    for (std::size_t c = 0; c < 2; ++c)
      graph_.band_row[c][band + 1] = static_cast<std::uint32_t>(whole_slices(rows[c]));
  }

  // Orders the rows of a band and colour. Within short runs of vertices, rows are sorted by their
  // number of neighbours: slices need little padding, and vectors are read almost in order.
  void order_rows(std::size_t band) {
    const Band here(grid_, band);
    auto next_row = std::array{graph_.band_row[0][band], graph_.band_row[1][band]};
    for (std::size_t first = here.first; first < here.last; first += run)
      next_row = order_run(first, std::min(here.last, first + run), next_row);
    for (std::size_t c = 0; c < 2; ++c) {
      const std::size_t last = graph_.band_row[c][band + 1];
      std::fill(graph_.vertex.data() + next_row[c], graph_.vertex.data() + last, nowhere);
      for (std::size_t row = graph_.band_row[c][band]; row < last; row += slice_rows) {
        std::uint32_t columns = 0;
        for (std::size_t i = row; i < std::min<std::size_t>(row + slice_rows, next_row[c]); ++i)
          columns = std::max<std::uint32_t>(columns, count_[graph_.vertex[i]]);
        graph_.entry.first[row / slice_rows + 1] = columns;
        graph_.first_later[row / slice_rows] = c == 0 ? 0 : columns;
      }
    }
  }

  // Assigns rows to the vertices [begin, end), by counting sort, from row first_row[colour] on.
  // Returns the first row after them of each colour.
  std::array<std::uint32_t, 2> order_run(std::size_t begin, std::size_t end,
                                         std::array<std::uint32_t, 2> first_row) {
    constexpr std::size_t keys = max_neighbours + 1;
    std::array<std::uint32_t, 2 * keys> next_row{};
    for (std::size_t v = begin; v < end; ++v) ++next_row[parity_[v] * keys + count_[v]];
    for (std::size_t c = 0; c < 2; ++c)
      for (std::size_t k = 0; k < keys; ++k)
        first_row[c] += std::exchange(next_row[c * keys + k], first_row[c]);
    for (std::size_t v = begin; v < end; ++v) {
      const std::uint32_t row = next_row[parity_[v] * keys + count_[v]]++;
      row_[v] = row;
      graph_.vertex[row] = static_cast<std::uint32_t>(v);
    }
    return first_row;
  }

  // Writes the entries and degrees of a band's rows.
  void fill_entries(std::size_t band) {
    std::uint32_t* to = graph_.entry.to.data();
    T* weight = graph_.weight.data();
    for (std::size_t c = 0; c < 2; ++c)
      for (std::size_t row = graph_.band_row[c][band]; row < graph_.band_row[c][band + 1]; ++row) {
        const std::size_t s = row / slice_rows, lane = row % slice_rows;
        const std::size_t v = graph_.vertex[row];
        const std::uint32_t begin = graph_.entry.first[s] * slice_rows;
        const std::uint32_t count = v == nowhere ? 0 : count_[v];
        for (std::size_t e = begin + count * slice_rows; e < graph_.entry.first[s + 1] * slice_rows;
             e += slice_rows) {
          to[e + lane] = static_cast<std::uint32_t>(row);
          weight[e + lane] = T{0};
        }
        if (v != nowhere) next_[v] = begin + static_cast<std::uint32_t>(lane);
      }
    each_weighted_edge(grid_, band, [&](double blur, std::size_t a, std::size_t b, auto ends) {
      // Matching compares weights in float32. A weight that underflows there becomes padding, or
      // its vertex would have a neighbour but no aggregate.
      const T product = static_cast<T>(blur) * n_[a] * n_[b];
      const T w = static_cast<float>(product) > 0.0f ? product : T{0};
      const auto add = [&](std::size_t from, std::size_t neighbour) {
        const std::uint32_t e = next_[from];
        next_[from] = e + slice_rows;
        to[e] = row_[w > T{0} ? neighbour : from];
        weight[e] = w;
      };
      if constexpr (ends != Ends::only_b) add(a, b);
      if constexpr (ends != Ends::only_a) add(b, a);
    });
    for (std::size_t c = 0; c < 2; ++c)
      for (std::size_t s = graph_.band_row[c][band] / slice_rows;
           s < graph_.band_row[c][band + 1] / slice_rows; ++s)
        graph_.sum_degrees(s);
  }

  static constexpr std::size_t max_neighbours = 2 * (3 + max_channels);
  static constexpr std::size_t run = 256;  // vertices

  const Grid& grid_;
  const T* n_;
  ThreadPool& pool_;
  Buffer<std::uint8_t> parity_;  // of each vertex's coordinate sum: its colour
  Buffer<std::uint8_t> count_;   // neighbours of each vertex
  Buffer<std::uint32_t> row_;    // of each vertex
  Buffer<std::uint32_t> next_;   // place of each vertex's next entry
  GridGraph<T> graph_;
};

}  // namespace detail

// Builds the graph with the weights w_ij = n_i B_ij n_j, with n from bistochastize.
template <class T>
GridGraph<T> grid_graph(const Grid& grid, const T* n, ThreadPool& pool) {
  return detail::GridGraphBuilder<T>(grid, n, pool).build();
}

}  // namespace bilateral
