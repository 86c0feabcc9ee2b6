// A weighted graph by rows, in the order in which Gauss-Seidel visits them. Its Laplacian is
// (L x)_i = sum_j w_ij (x_i - x_j).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "buffer.hpp"
#include "edges.hpp"
#include "grid.hpp"
#include "threads.hpp"

namespace bilateral {

inline constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();

// Rows lie colour by colour; no two vertices of a colour are neighbours. A row's entries lead to
// earlier colours first, then to later ones. Rows with equally many entries lie together as far as
// locality allows, so that their loops are predictable.
template <class T>
struct Graph {
  std::size_t vertices = 0;
  std::vector<std::uint32_t> colour;  // first row of each colour, and the end
  Buffer<std::uint32_t> vertex;       // of each row; empty: a row's number is its vertex
  Buffer<std::uint32_t> first;        // of each row's entries, and the end
  Buffer<std::uint32_t> middle;       // where a row's later colours begin
  Buffer<std::uint32_t> neighbour;    // the vertex each entry leads to
  Buffer<T> weight;                   // of each entry
  Buffer<T> degree;                   // of each vertex: sum of its weights
  std::uint32_t rows_end(std::size_t row) const { return first[row + 1]; }
  std::size_t colours() const { return colour.size() - 1; }
};

// The grid as a graph of two colours: neighbours differ in the parity of their coordinate sum.
template <class T>
struct GridGraph : Graph<T> {
  std::array<std::vector<std::uint32_t>, 2> band_row;  // of each colour: each band's first row, end
  Buffer<std::uint8_t> parity;                         // of each vertex: its colour
};

namespace detail {

inline Buffer<std::uint8_t> parities(const Grid& grid, int threads) {
  Buffer<std::uint8_t> parity(grid.vertices);
  std::visit(
      [&]<class Key>(const Tiles<Key>& tiles) {
        Key lowest = 0;
        for (std::size_t k = 0; k < grid.layout.channels; ++k)
          lowest = static_cast<Key>(lowest | grid.layout.unit<Key>(k));
        parallel_for(team_size(threads, grid.vertices, 32768), tiles.rows(),
                     [&](std::size_t row, std::size_t) {
                       for (std::size_t i = 0; i < tiles.columns(); ++i) {
                         const std::size_t tile = row * tiles.columns() + i;
                         const std::int64_t cell = tiles.x.coordinate[i] + tiles.y.coordinate[row];
                         for (std::size_t v = tiles.first[tile]; v < tiles.first[tile + 1]; ++v) {
                           const Key bits = static_cast<Key>(tiles.keys[v] & lowest);
                           int count = static_cast<int>(cell & 1);
                           for (std::size_t k = 0; k < grid.layout.channels; ++k)
                             count += static_cast<int>((bits >> grid.layout.shift[k]) & 1);
                           parity[v] = static_cast<std::uint8_t>(count & 1);
                         }
                       }
                     });
      },
      grid.tiles);
  return parity;
}

// B-bar's weight of a kind of edges.
inline double kind_weight(const Grid& grid, std::size_t kind) {
  return kind == range_edges ? grid.range : grid.space;
}

// f(e, a, b, ends) for all edges with an end in the band and a weight.
template <class F>
void each_weighted_edge(const Grid& grid, std::size_t band, F&& f) {
  for (std::size_t kind = 0; kind < edge_kinds; ++kind)
    if (const double weight = kind_weight(grid, kind); weight > 0)
      each_edge(grid, band, kind, [&](std::size_t, std::size_t a, std::size_t b, auto ends) {
        f(weight, static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b), ends);
      });
}

}  // namespace detail

// With n from bistochastize: w_ij = n_i B_ij n_j.
template <class T>
GridGraph<T> grid_graph(const Grid& grid, const T* n, int threads) {
  const std::size_t vertices = grid.vertices, bands = grid.bands();
  const int team = team_size(threads, vertices, 8192);
  GridGraph<T> graph;
  graph.vertices = vertices;
  graph.parity = detail::parities(grid, threads);
  const std::uint8_t* parity = graph.parity.data();
  Buffer<std::uint32_t> count(vertices), cursor(vertices);
  for (auto& rows : graph.band_row) rows.assign(bands + 1, 0);
  std::vector<std::size_t> entries(bands);
  parallel_for(team, bands, [&](std::size_t band, std::size_t) {
    const Band here(grid, band);
    std::fill(count.data() + here.first, count.data() + here.last, 0u);
    detail::each_weighted_edge(grid, band,
                               [&](double, std::uint32_t a, std::uint32_t b, auto ends) {
                                 if constexpr (ends != Ends::only_b) ++count[a];
                                 if constexpr (ends != Ends::only_a) ++count[b];
                               });
    for (std::size_t v = here.first; v < here.last; ++v) {
      ++graph.band_row[parity[v]][band + 1];
      entries[band] += count[v];
    }
  });
  std::size_t row = 0;
  for (auto& rows : graph.band_row) {
    graph.colour.push_back(static_cast<std::uint32_t>(row));
    rows[0] = static_cast<std::uint32_t>(row);
    for (std::size_t band = 0; band < bands; ++band) rows[band + 1] += rows[band];
    row = rows[bands];
  }
  graph.colour.push_back(static_cast<std::uint32_t>(vertices));
  std::size_t total = 0;
  for (const std::size_t number : entries) total += number;
  if (total >= nowhere) throw std::length_error("the grid has more than 2^31 - 1 edges");
  graph.vertex = Buffer<std::uint32_t>(vertices);
  graph.first = Buffer<std::uint32_t>(vertices + 1);
  graph.middle = Buffer<std::uint32_t>(vertices);
  graph.neighbour = Buffer<std::uint32_t>(total);
  graph.weight = Buffer<T>(total);
  graph.degree = Buffer<T>(vertices);
  // Rows of a band and colour by their number of entries.
  parallel_for(team, bands, [&](std::size_t band, std::size_t) {
    const Band here(grid, band);
    constexpr std::size_t most = 2 * (2 + max_channels) + 1;
    std::array<std::array<std::uint32_t, most + 1>, 2> at{};
    for (std::size_t v = here.first; v < here.last; ++v) ++at[parity[v]][count[v] + 1];
    for (std::size_t c = 0; c < 2; ++c) {
      at[c][0] = graph.band_row[c][band];
      for (std::size_t k = 0; k < most; ++k) at[c][k + 1] += at[c][k];
    }
    for (std::size_t v = here.first; v < here.last; ++v)
      graph.vertex[at[parity[v]][count[v]]++] = static_cast<std::uint32_t>(v);
  });
  std::uint32_t entry = 0;
  for (std::size_t i = 0; i < vertices; ++i) {
    graph.first[i] = entry;
    entry += count[graph.vertex[i]];
  }
  graph.first[vertices] = entry;
  parallel_for(team, bands, [&](std::size_t band, std::size_t) {
    for (std::size_t c = 0; c < 2; ++c)
      for (std::size_t i = graph.band_row[c][band]; i < graph.band_row[c][band + 1]; ++i) {
        graph.middle[i] = graph.first[i + c];
        cursor[graph.vertex[i]] = graph.first[i];
        graph.degree[graph.vertex[i]] = T{0};
      }
    detail::each_weighted_edge(grid, band,
                               [&](double factor, std::uint32_t a, std::uint32_t b, auto ends) {
                                 const T weight = static_cast<T>(factor) * n[a] * n[b];
                                 const auto add = [&](std::uint32_t from, std::uint32_t to) {
                                   const std::uint32_t e = cursor[from]++;
                                   graph.neighbour[e] = to;
                                   graph.weight[e] = weight;
                                   graph.degree[from] += weight;
                                 };
                                 if constexpr (ends != Ends::only_b) add(a, b);
                                 if constexpr (ends != Ends::only_a) add(b, a);
                               });
  });
  return graph;
}

}  // namespace bilateral
