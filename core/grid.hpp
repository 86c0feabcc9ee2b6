// The simplified bilateral grid: which vertex each pixel belongs to, and which vertices are
// neighbours.
//
// Vertices of different spatial cells never coincide, so every cell ("tile") finds its own
// distinct colours, independently of all others. Vertices are numbered tile by tile, row of tiles
// by row of tiles, and by colour within a tile.
#pragma once

#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include "buffer.hpp"
#include "keys.hpp"
#include "lanes.hpp"
#include "multiversion.hpp"
#include "reference.hpp"
#include "threads.hpp"

namespace bilateral {

// The cells along one spatial axis: cell i holds the items [start[i], start[i + 1]) below it
// (pixels, or the cells of the finer level) and lies at coordinate[i]. Cells below one pixel
// leave gaps between coordinates.
struct Axis {
  std::vector<std::size_t> start;
  std::vector<std::int64_t> coordinate;

  std::size_t cells() const { return coordinate.size(); }
  std::size_t size(std::size_t i) const { return start[i + 1] - start[i]; }
  bool adjacent(std::size_t i) const {
    return i + 1 < cells() && coordinate[i + 1] == coordinate[i] + 1;
  }

  void append(std::size_t item, std::int64_t at) {
    if (coordinate.empty() || coordinate.back() != at) {
      start.push_back(item);
      coordinate.push_back(at);
    }
  }

  static Axis of_pixels(std::size_t length, double sigma) {
    const double inverse = std::min(1 / sigma, coordinate_limit / static_cast<double>(length));
    Axis axis;
    for (std::size_t x = 0; x < length; ++x)
      axis.append(x, static_cast<std::int64_t>(static_cast<double>(x) * inverse + edge_guard));
    axis.start.push_back(length);
    return axis;
  }

  Axis halved() const {
    Axis axis;
    for (std::size_t i = 0; i < cells(); ++i) axis.append(i, coordinate[i] / 2);
    axis.start.push_back(cells());
    return axis;
  }
};

// The vertices of one level by tile: tile (row, column) holds the vertices
// [first[row * columns + column], first[... + 1]), sorted by key.
template <class Key>
struct Tiles {
  Axis x, y;
  Buffer<std::uint32_t> first;
  Buffer<Key> keys;

  std::size_t columns() const { return x.cells(); }
  std::size_t rows() const { return y.cells(); }
  std::uint32_t row_first(std::size_t row) const { return first[row * columns()]; }
};

using AnyTiles = std::variant<Tiles<NarrowKey>, Tiles<WideKey>>;

// From each vertex of a level to the vertex of the next coarser one it belongs to.
struct Level {
  Buffer<std::uint32_t> parent;
  std::vector<std::uint32_t> band;         // vertices [band[i], band[i + 1]) have their parents
  std::vector<std::uint32_t> parent_band;  // in [parent_band[i], parent_band[i + 1])
  Buffer<double> size;                     // level-0 vertices below each parent: P(1)
};

// Neighbouring vertices: b is the next one after a along some dimension.
struct Edge {
  std::uint32_t a, b;
};

// Edges by the row of tiles that holds a: row r's are [row[r], row[r + 1]).
struct EdgeList {
  Buffer<Edge> edge;
  std::vector<std::size_t> row;
};

// Three kinds: within a tile along the range dimensions, and to the next tile along x and y. Only
// along y does an edge leave its row of tiles.
enum EdgeKind : std::size_t { range_edges, x_edges, y_edges, edge_kinds };

// 16 bits are enough unless a row of tiles has more than 65,536 vertices.
using PixelMap = std::variant<Buffer<std::uint16_t>, Buffer<std::uint32_t>>;

struct Grid {
  std::size_t height = 0, width = 0;
  std::size_t vertices = 0;
  std::size_t dimensions = 0;  // 2 + range channels
  KeyLayout layout;
  AnyTiles tiles;
  std::vector<std::size_t> row_pixel;     // first pixel row of each row of tiles, and the end
  std::vector<std::uint32_t> row_vertex;  // first vertex of each row of tiles, and the end
  PixelMap pixel;                         // vertex of each pixel, counted from its row's first
  std::array<EdgeList, edge_kinds> edges;
  Buffer<float> mass;                       // pixels per vertex: S 1
  double centre = 0, space = 0, range = 0;  // B-bar's weights
  std::vector<Level> levels;                // the pyramid, finest first
  std::vector<std::size_t> band_row;        // first row of tiles of each band, and the end
  std::vector<std::uint32_t> band_vertex;   // first vertex of each band, and the end

  std::size_t pixels() const { return height * width; }
  std::size_t rows() const { return row_pixel.size() - 1; }
  std::size_t bands() const { return band_row.size() - 1; }
};

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

// Appends to `out` an edge wherever a key of the sorted list [at.a, end.a), plus shift, is in the
// sorted list [at.b, end.b). `out` has room for one edge more than can be found.
template <class Key>
Edge* join(const Key* keys, Edge at, Edge end, Key shift, Edge* out) {
  while (at.a < end.a && at.b < end.b) {
    const Key next = static_cast<Key>(keys[at.a] + shift), other = keys[at.b];
    *out = at;
    out += next == other;
    at.a += next <= other;
    at.b += other <= next;
  }
  return out;
}

// The same for short lists of narrow keys: place each key of the first list, eight at a time, by
// counting the keys of the second that are smaller. Reads, but does not use, keys past the end.
inline constexpr std::uint32_t short_list = 32;

BILATERAL_MULTIVERSION
inline Edge* join_short(const NarrowKey* keys, Edge at, Edge end, NarrowKey shift, Edge* out) {
  using Keys = Lanes<NarrowKey, 8>;
  for (std::uint32_t a = at.a; a < end.a; a += 8) {
    const Keys next = load_lanes<Keys>(keys + a) + shift;
    Keys place = {};
    for (std::uint32_t b = at.b; b < end.b; ++b) place -= keys[b] < next;
    NarrowKey wanted[8], found[8];
    store_lanes(wanted, next);
    store_lanes(found, place);
    const std::uint32_t count = std::min(end.a - a, 8u);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t b = at.b + static_cast<std::uint32_t>(found[i]);
      *out = {a + i, b};
      out += (b < end.b) & (keys[b] == wanted[i]);
    }
  }
  return out;
}

inline Edge* join(const NarrowKey* keys, Edge at, Edge end, NarrowKey shift, Edge* out) {
  if (end.a - at.a <= short_list && end.b - at.b <= short_list)
    return join_short(keys, at, end, shift, out);
  return join<NarrowKey>(keys, at, end, shift, out);
}

template <class Key>
void find_edges(Grid& grid, const Tiles<Key>& tiles, int threads) {
  const std::size_t columns = tiles.columns(), rows = tiles.rows();
  const Key* keys = tiles.keys.data();
  std::array<std::vector<std::vector<Edge>>, edge_kinds> found;
  for (auto& list : found) list.resize(rows);
  const int team = team_size(threads, grid.vertices, 8192);
  std::vector<std::vector<Edge>> scratch(static_cast<std::size_t>(team));
  parallel_for(team, rows, [&](std::size_t r, std::size_t rank) {
    const auto span = [&](std::size_t tile) {
      return Edge{tiles.first[tile], tiles.first[tile + 1]};
    };
    const Edge row{tiles.first[r * columns], tiles.first[(r + 1) * columns]};
    auto& room = scratch[rank];
    room.resize(std::max(room.size(),
                         (row.b - row.a) * std::max<std::size_t>(1, grid.layout.channels) + 1));
    const auto collect = [&](EdgeKind kind, auto&& search) {
      Edge* end = room.data();
      for (std::size_t i = 0; i < columns; ++i) end = search(i, r * columns + i, end);
      found[kind][r].assign(room.data(), end);
    };
    collect(range_edges, [&](std::size_t, std::size_t tile, Edge* end) {
      const Edge own = span(tile);
      for (std::size_t k = 0; k < grid.layout.channels; ++k)
        end = join(keys, {own.a, own.a}, {own.b, own.b}, grid.layout.unit<Key>(k), end);
      return end;
    });
    collect(x_edges, [&](std::size_t i, std::size_t tile, Edge* end) {
      if (!tiles.x.adjacent(i)) return end;
      const Edge own = span(tile), next = span(tile + 1);
      return join(keys, {own.a, next.a}, {own.b, next.b}, Key{0}, end);
    });
    collect(y_edges, [&](std::size_t, std::size_t tile, Edge* end) {
      if (!tiles.y.adjacent(r)) return end;
      const Edge own = span(tile), next = span(tile + columns);
      return join(keys, {own.a, next.a}, {own.b, next.b}, Key{0}, end);
    });
  });
  for (std::size_t kind = 0; kind < edge_kinds; ++kind) {
    EdgeList& list = grid.edges[kind];
    list.row.assign(1, 0);
    for (const auto& row : found[kind]) list.row.push_back(list.row.back() + row.size());
    list.edge = Buffer<Edge>(list.row.back());
  }
  parallel_for(team, rows, [&](std::size_t r, std::size_t) {
    for (std::size_t kind = 0; kind < edge_kinds; ++kind)
      std::copy(found[kind][r].begin(), found[kind][r].end(),
                grid.edges[kind].edge.data() + grid.edges[kind].row[r]);
  });
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
