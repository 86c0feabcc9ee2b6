// The simplified bilateral grid: which vertex each pixel belongs to, and which vertices are
// neighbours.
//
// Vertices of different spatial cells never coincide, so every cell ("tile") finds its own
// distinct colours, independently of all others. Vertices are numbered tile by tile, row of tiles
// by row of tiles, and by colour within a tile.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "buffer.hpp"
#include "keys.hpp"
#include "reference.hpp"

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

// Neighbouring vertices: b is the next one after a along some dimension. Each is counted from the
// first vertex of its band, so that 16 bits are enough unless a band has more than 65,536 vertices.
template <class Index>
struct Edge {
  Index a, b;
};

// Edges by the row of tiles that holds a: row r's are [row[r], row[r + 1]).
struct EdgeList {
  std::variant<Buffer<Edge<std::uint16_t>>, Buffer<Edge<std::uint32_t>>> edge;
  std::vector<std::size_t> row;

  std::size_t size() const { return row.back(); }
};

// Three kinds: within a tile along the range dimensions, and to the next tile along x and y. Only
// along y does an edge leave its row of tiles.
enum EdgeKind : std::size_t { range_edges, x_edges, y_edges, edge_kinds };

// 16 bits are enough unless a row of tiles has more than 65,536 vertices.
using PixelMap = std::variant<Buffer<std::uint16_t>, Buffer<std::uint32_t>>;

// Bands are runs of rows of tiles: the units of parallel work and of summation. They must not
// depend on the number of threads.
inline constexpr std::uint32_t smallest_band = 2048;

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

}  // namespace bilateral
