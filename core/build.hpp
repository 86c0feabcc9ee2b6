// Building the grid: each tile finds its distinct colours by itself, then vertices get numbers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "find_edges.hpp"
#include "grid.hpp"
#include "keys.hpp"
#include "reference.hpp"
#include "threads.hpp"

namespace bilateral {

namespace detail {

// The vertices of one row of tiles, before they have global numbers.
template <class Key>
struct TileRow {
  std::vector<Key> keys;
  std::vector<std::uint32_t> counts;
};

// Numbers the vertices of all rows and puts them into `tiles`. On entry tiles.first[t + 1] holds
// tile t's number of vertices.
template <class Key>
void number_vertices(std::vector<TileRow<Key>>& rows, Tiles<Key>& tiles, int threads) {
  std::uint64_t total = 0;
  for (const auto& row : rows) total += row.keys.size();
  if (total >= 0xffffffffu) throw std::length_error("the grid has more than 2^32 - 2 vertices");
  tiles.first[0] = 0;
  for (std::size_t t = 1; t < tiles.first.size(); ++t) tiles.first[t] += tiles.first[t - 1];
  tiles.keys = Buffer<Key>(total);
  parallel_for(team_size(threads, total, 65536), rows.size(), [&](std::size_t r, std::size_t) {
    std::copy(rows[r].keys.begin(), rows[r].keys.end(), tiles.keys.data() + tiles.row_first(r));
    rows[r].keys = {};
  });
}

// False when a row of tiles has more vertices than Index can count.
template <class Index, class T, class Key>
bool find_vertices(const Reference<T>& reference, const Binning& bins, Grid& grid,
                   Tiles<Key>& tiles, int threads) {
  struct Scratch {
    std::vector<Key> row, keys;
    std::vector<std::uint32_t> ranks;
    Ranker<Key> ranker;
  };
  const std::size_t width = reference.width, columns = tiles.columns();
  std::vector<Scratch> scratch(static_cast<std::size_t>(std::max(threads, 1)));
  std::vector<TileRow<Key>> rows(tiles.rows());
  tiles.first = Buffer<std::uint32_t>(tiles.rows() * columns + 1);
  Buffer<Index> pixel(reference.height * width);
  std::atomic<bool> overflow{false};
  parallel_for(threads, tiles.rows(), [&](std::size_t r, std::size_t rank) {
    Scratch& mine = scratch[rank];
    const std::size_t top = tiles.y.start[r], height = tiles.y.size(r);
    mine.row.resize(width);
    mine.keys.resize(width * height);
    mine.ranks.resize(width * height);
    for (std::size_t j = 0; j < height; ++j) {
      row_keys(reference.data + (top + j) * width * reference.channels, width, bins,
               mine.row.data());
      for (std::size_t i = 0; i < columns; ++i) {
        const std::size_t left = tiles.x.start[i], w = tiles.x.size(i);
        std::copy_n(mine.row.data() + left, w, mine.keys.data() + left * height + j * w);
      }
    }
    TileRow<Key>& found = rows[r];
    found.keys.reserve(columns * 4);
    found.counts.reserve(columns * 4);
    for (std::size_t i = 0; i < columns; ++i) {
      const std::size_t left = tiles.x.start[i], w = tiles.x.size(i);
      std::uint32_t* ranks = mine.ranks.data();
      const std::size_t distinct =
          mine.ranker.rank(mine.keys.data() + left * height, w * height, ranks);
      const auto base = static_cast<std::uint32_t>(found.keys.size());
      for (std::size_t j = 0; j < height; ++j) {
        Index* out = pixel.data() + (top + j) * width + left;
        for (std::size_t k = 0; k < w; ++k) out[k] = static_cast<Index>(base + ranks[j * w + k]);
      }
      const auto end = static_cast<std::ptrdiff_t>(distinct);
      found.keys.insert(found.keys.end(), mine.ranker.distinct.begin(),
                        mine.ranker.distinct.begin() + end);
      found.counts.insert(found.counts.end(), mine.ranker.counts.begin(),
                          mine.ranker.counts.begin() + end);
      tiles.first[r * columns + i + 1] = static_cast<std::uint32_t>(distinct);
    }
    if (found.keys.size() > std::size_t{std::numeric_limits<Index>::max()} + 1) overflow = true;
  });
  if (overflow) return false;
  number_vertices(rows, tiles, threads);
  grid.pixel = std::move(pixel);
  grid.vertices = tiles.keys.size();
  grid.mass = Buffer<float>(grid.vertices);
  for (std::size_t r = 0; r < rows.size(); ++r)
    std::copy(rows[r].counts.begin(), rows[r].counts.end(), grid.mass.data() + tiles.row_first(r));
  return true;
}

// Rows of tiles that share a coarser row stay together (the pyramid is lifted band by band), and
// a band has at least `smallest_band` vertices.
template <class Key>
void make_bands(Grid& grid, const Tiles<Key>& tiles) {
  const Axis coarser = tiles.y.halved();
  grid.band_row.assign(1, 0);
  for (std::size_t r = 1; r <= coarser.cells(); ++r) {
    const std::size_t row = coarser.start[r];
    const std::uint32_t size = grid.row_vertex[row] - grid.row_vertex[grid.band_row.back()];
    if (size >= smallest_band || r == coarser.cells()) grid.band_row.push_back(row);
  }
  for (const std::size_t row : grid.band_row) grid.band_vertex.push_back(grid.row_vertex[row]);
}

template <class T, class Key>
void build(const Reference<T>& reference, const Binning& bins, double sigma_xy, Grid& grid,
           int threads) {
  Tiles<Key> tiles;
  tiles.x = Axis::of_pixels(reference.width, sigma_xy);
  tiles.y = Axis::of_pixels(reference.height, sigma_xy);
  if (!find_vertices<std::uint16_t>(reference, bins, grid, tiles, threads))
    find_vertices<std::uint32_t>(reference, bins, grid, tiles, threads);
  grid.row_pixel = tiles.y.start;
  for (std::size_t r = 0; r <= tiles.rows(); ++r) grid.row_vertex.push_back(tiles.row_first(r));
  make_bands(grid, tiles);
  find_edges(grid, tiles, threads);
  grid.tiles = std::move(tiles);
}

}  // namespace detail

template <class T>
Grid build_grid(const Reference<T>& reference, double sigma_xy, int threads) {
  Grid grid;
  const Binning bins = make_binning(reference, threads);
  grid.height = reference.height;
  grid.width = reference.width;
  grid.dimensions = 2 + reference.channels;
  grid.layout = bins.layout;
  if (bins.layout.total_bits() <= 31 && !bins.clamp)
    detail::build<T, NarrowKey>(reference, bins, sigma_xy, grid, threads);
  else
    detail::build<T, WideKey>(reference, bins, sigma_xy, grid, threads);
  return grid;
}

// Coordinates of all vertices, `dimensions` per vertex: x, y, range...
inline std::vector<std::int64_t> coordinates(const Grid& grid) {
  std::vector<std::int64_t> out;
  out.reserve(grid.vertices * grid.dimensions);
  std::visit(
      [&](const auto& tiles) {
        for (std::size_t r = 0; r < tiles.rows(); ++r)
          for (std::size_t i = 0; i < tiles.columns(); ++i)
            for (std::size_t v = tiles.first[r * tiles.columns() + i];
                 v < tiles.first[r * tiles.columns() + i + 1]; ++v) {
              out.push_back(tiles.x.coordinate[i]);
              out.push_back(tiles.y.coordinate[r]);
              for (std::size_t k = 0; k + 2 < grid.dimensions; ++k)
                out.push_back(grid.layout.coordinate(tiles.keys[v], k));
            }
      },
      grid.tiles);
  return out;
}

}  // namespace bilateral
