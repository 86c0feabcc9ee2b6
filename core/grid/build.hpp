// Build the grid: each tile finds its distinct colours, then all vertices get numbers.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/threads.hpp"
#include "grid/find_edges.hpp"
#include "grid/grid.hpp"
#include "grid/keys.hpp"
#include "grid/neighbours.hpp"
#include "grid/reference.hpp"

namespace bilateral {

// The size of a cell in pixels along each axis. Images have only the dimensions x and y.
struct SpaceSigmas {
  std::size_t dimensions;
  double x, y, t = 1;
};

namespace detail {

// The vertices of one row of tiles, before they get global numbers.
template <class Key>
struct TileRow {
  std::vector<Key> keys;
  std::vector<std::uint32_t> counts;
};

// Numbers the vertices of all rows and moves them to `tiles`. On entry tiles.first[t + 1] holds the
// number of vertices of tile t.
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

// Writes the keys of one line of pixels, given its first pixel. A function, so that the rest of the
// build is compiled once for all types of pixels.
template <class Key>
using LineKeys = std::function<void(std::size_t first_pixel, Key* keys)>;

// Finds the vertices of all tiles, the vertex of each pixel and the mass of each vertex. Returns
// false if a row of tiles has more vertices than Index can count.
template <class Index, class Key>
bool find_vertices(const LineKeys<Key>& line_keys, Grid& grid, Tiles<Key>& tiles, int threads) {
  struct Scratch {
    std::vector<std::size_t> lines;  // the first pixel of each line of a row of tiles
    std::vector<Key> line, keys;     // keys of one line, and of all lines tile by tile
    std::vector<std::uint32_t> ranks;
    Ranker<Key> ranker;
  };
  const std::size_t width = grid.width, columns = tiles.columns();
  std::vector<Scratch> scratch(static_cast<std::size_t>(std::max(threads, 1)));
  std::vector<TileRow<Key>> rows(tiles.rows());
  tiles.first = Buffer<std::uint32_t>(tiles.rows() * columns + 1);
  Buffer<Index> pixel(grid.pixels());
  std::atomic<bool> overflow{false};
  parallel_for(threads, tiles.rows(), [&](std::size_t r, std::size_t rank) {
    Scratch& mine = scratch[rank];
    const PixelRuns& runs = grid.row_pixels[r];
    mine.lines.clear();
    for (std::size_t i = 0; i < runs.frames; ++i)
      for (std::size_t p = 0; p < runs.size; p += width)
        mine.lines.push_back(runs.first + i * runs.stride + p);
    const std::size_t height = mine.lines.size();
    mine.line.resize(width);
    mine.keys.resize(width * height);
    mine.ranks.resize(width * height);
    for (std::size_t j = 0; j < height; ++j) {
      line_keys(mine.lines[j], mine.line.data());
      for (std::size_t i = 0; i < columns; ++i) {
        const std::size_t left = tiles.x.start[i], w = tiles.x.size(i);
        std::copy_n(mine.line.data() + left, w, mine.keys.data() + left * height + j * w);
      }
    }
    TileRow<Key>& row = rows[r];
    row.keys.reserve(columns * 4);
    row.counts.reserve(columns * 4);
    for (std::size_t i = 0; i < columns; ++i) {
      const std::size_t left = tiles.x.start[i], w = tiles.x.size(i);
      std::uint32_t* ranks = mine.ranks.data();
      const std::size_t distinct =
          mine.ranker.rank(mine.keys.data() + left * height, w * height, ranks);
      const auto base = static_cast<std::uint32_t>(row.keys.size());
      for (std::size_t j = 0; j < height; ++j) {
        Index* out = pixel.data() + mine.lines[j] + left;
        for (std::size_t k = 0; k < w; ++k) out[k] = static_cast<Index>(base + ranks[j * w + k]);
      }
      const auto end = static_cast<std::ptrdiff_t>(distinct);
      row.keys.insert(row.keys.end(), mine.ranker.distinct.begin(),
                      mine.ranker.distinct.begin() + end);
      row.counts.insert(row.counts.end(), mine.ranker.counts.begin(),
                        mine.ranker.counts.begin() + end);
      tiles.first[r * columns + i + 1] = static_cast<std::uint32_t>(distinct);
    }
    if (row.keys.size() > std::size_t{std::numeric_limits<Index>::max()} + 1) overflow = true;
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

// Divides the rows of tiles into bands of at least `smallest_band` vertices. Rows that share a
// coarser row stay together, since the pyramid is lifted band by band.
template <class Key>
void make_bands(Grid& grid, const Tiles<Key>& tiles) {
  const TileRows coarser = tiles.row.halved();
  grid.band_row.assign(1, 0);
  for (std::size_t r = 1; r <= coarser.count(); ++r) {
    const std::size_t row = coarser.start[r];
    const std::uint32_t size = grid.row_vertex[row] - grid.row_vertex[grid.band_row.back()];
    if (size >= smallest_band || r == coarser.count()) grid.band_row.push_back(row);
  }
  for (const std::size_t row : grid.band_row) grid.band_vertex.push_back(grid.row_vertex[row]);
}

// Finds the rows of tiles of the axes y and t, and sets the pixels of each row in the grid.
inline TileRows make_rows(Grid& grid) {
  const Axis &y = grid.y, &t = grid.t;
  using Row = std::pair<TileRows::Cell, PixelRuns>;
  std::vector<Row> rows;
  const std::size_t frame = grid.height * grid.width;
  for (std::size_t k = 0; k < t.cells(); ++k)
    for (std::size_t j = 0; j < y.cells(); ++j)
      rows.push_back({{y.coordinate[j], t.coordinate[k]},
                      {t.start[k] * frame + y.start[j] * grid.width, y.size(j) * grid.width,
                       t.size(k), frame}});
  std::sort(rows.begin(), rows.end(),
            [](const Row& a, const Row& b) { return TileRows::before(a.first, b.first); });
  TileRows tile_rows;
  for (const auto& [cell, pixels] : rows) {
    tile_rows.cell.push_back(cell);
    grid.row_pixels.push_back(pixels);
  }
  return tile_rows;
}

template <class Key>
void number_rows(Grid& grid, const Tiles<Key>& tiles) {
  for (std::size_t r = 0; r <= tiles.rows(); ++r) grid.row_vertex.push_back(tiles.row_first(r));
}

// Divides the numbered vertices into bands, and finds the edges between them.
template <class Key>
void connect(Grid& grid, Tiles<Key> tiles, int threads) {
  number_rows(grid, tiles);
  make_bands(grid, tiles);
  find_edges(grid, tiles, threads);
  find_neighbours(grid, threads);
  grid.tiles = std::move(tiles);
}

// Finds the vertices of all tiles. Sets everything of the grid that does not need edges.
template <class Key>
Tiles<Key> find_tiles(const LineKeys<Key>& line_keys, Axis x, Axis y, Axis t, Grid& grid,
                      int threads) {
  Tiles<Key> tiles;
  tiles.x = std::move(x);
  grid.y = std::move(y);
  grid.t = std::move(t);
  tiles.row = make_rows(grid);
  if (!find_vertices<std::uint16_t>(line_keys, grid, tiles, threads) &&
      !find_vertices<std::uint32_t>(line_keys, grid, tiles, threads))
    throw std::length_error("the grid has more than 2^32 - 2 vertices");
  return tiles;
}

// Calls f(line_keys) with a function that writes the narrow or wide keys of lines of a reference.
template <class T, class F>
void with_line_keys(const Reference<T>& reference, const Binning& bins, F&& f) {
  const auto call = [&]<class Key>(Key) {
    f(LineKeys<Key>([&](std::size_t first_pixel, Key* keys) {
      row_keys(reference.data + first_pixel * reference.channels, reference.width, bins, keys);
    }));
  };
  if (bins.layout.total_bits() > 31) return call(WideKey{});
  if constexpr (std::is_same_v<T, std::uint8_t>)
    if (!bins.mixed && bins.channels > 1) {
      const KeyTables tables(bins);
      return f(LineKeys<NarrowKey>([&](std::size_t first_pixel, NarrowKey* keys) {
        tables.row(reference.data + first_pixel * reference.channels, reference.width, keys);
      }));
    }
  call(NarrowKey{});
}

}  // namespace detail

// The grid of a reference, without its pyramid and without weights of B-bar. For `edge_guard` see
// make_binning.
template <class T>
Grid build_grid(const Reference<T>& reference, const SpaceSigmas& sigma, double edge_guard,
                int threads) {
  Grid grid;
  const Binning bins = make_binning(reference, edge_guard, threads);
  grid.frames = reference.frames;
  grid.height = reference.height;
  grid.width = reference.width;
  grid.space_dimensions = sigma.dimensions;
  grid.layout = bins.layout;
  const auto axis = [&](std::size_t length, double cell) {
    return Axis::of_pixels({0, length, length}, cell, edge_guard);
  };
  Axis x = axis(grid.width, sigma.x), y = axis(grid.height, sigma.y),
       t = axis(grid.frames, sigma.t);
  detail::with_line_keys(reference, bins, [&]<class Key>(const detail::LineKeys<Key>& line_keys) {
    detail::connect(
        grid,
        detail::find_tiles<Key>(line_keys, std::move(x), std::move(y), std::move(t), grid, threads),
        threads);
  });
  return grid;
}

// The coordinates of all vertices: x, y, t of a video or volume, then the range coordinates.
inline std::vector<std::int64_t> coordinates(const Grid& grid) {
  std::vector<std::int64_t> out;
  out.reserve(grid.vertices * grid.dimensions());
  std::visit(
      [&](const auto& tiles) {
        for (std::size_t r = 0; r < tiles.rows(); ++r)
          for (std::size_t i = 0; i < tiles.columns(); ++i)
            for (std::size_t v = tiles.first[r * tiles.columns() + i];
                 v < tiles.first[r * tiles.columns() + i + 1]; ++v) {
              out.push_back(tiles.x.coordinate[i]);
              out.push_back(tiles.row.cell[r].y);
              if (grid.space_dimensions == 3) out.push_back(tiles.row.cell[r].t);
              for (std::size_t k = 0; k < grid.layout.channels; ++k)
                out.push_back(grid.layout.coordinate(tiles.keys[v], k));
            }
      },
      grid.tiles);
  return out;
}

}  // namespace bilateral
