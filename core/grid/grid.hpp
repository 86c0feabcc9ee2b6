// The simplified bilateral grid: the vertex of each pixel, and the edges between neighbouring
// vertices.
//
// A tile is a spatial cell. Vertices of different tiles never coincide, so every tile finds its own
// distinct colours, independently of all other tiles. Vertices are numbered by row of tiles, then
// by tile, then by colour within the tile. A row of tiles lies along x: images have one row for
// each cell along y, videos and volumes have one for each pair of cells along y and t.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "base/buffer.hpp"
#include "grid/keys.hpp"
#include "grid/reference.hpp"

namespace bilateral {

// The pixels [first, first + length) of an axis of `total` pixels.
struct PixelSpan {
  std::size_t first, length, total;
};

// The cells along one spatial axis. Cell i holds the items [start[i], start[i + 1]), which are
// pixels or the cells of the finer level, and lies at coordinate[i]. Cells smaller than a pixel
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

  static Axis of_pixels(const PixelSpan& span, double sigma, double edge_guard) {
    const double inverse = std::min(1 / sigma, coordinate_limit / static_cast<double>(span.total));
    Axis axis;
    for (std::size_t i = 0; i < span.length; ++i) {
      const auto x = static_cast<double>(span.first + i);
      axis.append(i, static_cast<std::int64_t>(x * inverse + edge_guard));
    }
    axis.start.push_back(span.length);
    return axis;
  }

  Axis halved() const {
    Axis axis;
    for (std::size_t i = 0; i < cells(); ++i) axis.append(i, coordinate[i] / 2);
    axis.start.push_back(cells());
    return axis;
  }
};

// The rows of tiles of one level. Row r lies at cell[r] and holds the rows [start[r], start[r + 1])
// of the finer level. Rows are in Morton order of their cells, so that the finer rows are
// contiguous at every level.
struct TileRows {
  struct Cell {
    std::int64_t y, t;
    bool operator==(const Cell&) const = default;
  };
  std::vector<Cell> cell;
  std::vector<std::size_t> start;

  std::size_t count() const { return cell.size(); }

  // Morton order: compares the highest bit in which two cells differ, the bit of t before that of
  // y.
  static bool before(const Cell& a, const Cell& b) {
    const auto y = static_cast<std::uint64_t>(a.y ^ b.y), t = static_cast<std::uint64_t>(a.t ^ b.t);
    const bool y_is_higher = t < y && t < (t ^ y);
    return y_is_higher ? a.y < b.y : a.t < b.t;
  }

  TileRows halved() const {
    TileRows coarse;
    for (std::size_t r = 0; r < count(); ++r) {
      const Cell half{cell[r].y / 2, cell[r].t / 2};
      if (r > 0 && coarse.cell.back() == half) continue;
      coarse.cell.push_back(half);
      coarse.start.push_back(r);
    }
    coarse.start.push_back(count());
    return coarse;
  }
};

// The vertices of one level by tile. Tile (row, column) holds the vertices
// [first[row * columns + column], first[row * columns + column + 1]), sorted by key.
template <class Key>
struct Tiles {
  Axis x;
  TileRows row;
  Buffer<std::uint32_t> first;
  Buffer<Key> keys;

  std::size_t columns() const { return x.cells(); }
  std::size_t rows() const { return row.count(); }
  std::uint32_t row_first(std::size_t r) const { return first[r * columns()]; }
};

using AnyTiles = std::variant<Tiles<NarrowKey>, Tiles<WideKey>>;

// The parent of each vertex of a level: the vertex of the next coarser level that contains it.
struct Level {
  Buffer<std::uint32_t> parent;
  // The vertices [band[i], band[i + 1]) have parents in [parent_band[i], parent_band[i + 1]).
  std::vector<std::uint32_t> band, parent_band;
  Buffer<double> size;  // number of level-0 vertices below each parent: P(1)
};

// Neighbouring vertices: b follows a along some dimension. Both are counted from the first vertex
// of their band, so that 16 bits are enough unless a band has more than 65,536 vertices.
template <class Index>
struct Edge {
  Index a, b;
};

// The ends of an edge that lie in the current band.
enum class Ends { both, only_a, only_b };

// The edges [begin, end) of a list; a and b are counted from first_a and first_b.
struct EdgeRun {
  Ends ends;
  std::size_t first_a, first_b, begin, end;
};

// Edges in the order of a, and the runs of edges that have an end in each band: band i has the
// runs [band_run[i], band_run[i + 1]).
struct EdgeList {
  std::variant<Buffer<Edge<std::uint16_t>>, Buffer<Edge<std::uint32_t>>> edge;
  std::vector<EdgeRun> runs;
  std::vector<std::size_t> band_run;

  std::size_t size() const {
    return std::visit([](const auto& list) { return list.size(); }, edge);
  }
};

// Edges within a tile along the range dimensions, and edges to the next tile along x, y and t.
enum EdgeKind : std::size_t { range_edges, x_edges, y_edges, t_edges, edge_kinds };

// The neighbours of 16 consecutive vertices as places in windows of 32 consecutive vertices: two
// SIMD registers, in which one instruction finds all 16 (neighbours.hpp).
struct NeighbourBlock {
  static constexpr std::size_t rows = 16, window = 32;
  static constexpr std::size_t space = 4;  // directions: before and next along x, and along y
  static constexpr std::size_t range = 6;  // most range neighbours of a vertex, in any order

  // The vertices that have a neighbour: one bit per vertex.
  std::array<std::uint16_t, space> has_space;
  std::array<std::uint16_t, range> has_range;
  // The first vertex of the window of each spatial direction. Range neighbours share one window
  // around the block.
  std::array<std::uint32_t, space> first;
  std::array<std::array<std::uint8_t, rows>, space> space_place;
  std::array<std::array<std::uint8_t, rows>, range> range_place;
};

// A neighbour that has no place in a window.
struct FarNeighbour {
  std::uint32_t vertex, neighbour;
  bool along_range;
};

// The neighbours of all vertices, for processors with AVX-512; empty on others, and for grids that
// it does not suit. Band i has the blocks from first_block[i] and the far neighbours from
// first_far[i].
struct NeighbourTable {
  Buffer<NeighbourBlock> block;
  std::vector<FarNeighbour> far;
  std::vector<std::size_t> first_block, first_far;

  bool empty() const { return block.size() == 0; }
};

// The vertex of each pixel, counted from the first vertex of its row of tiles. 16 bits are enough
// unless a row of tiles has more than 65,536 vertices.
using PixelMap = std::variant<Buffer<std::uint16_t>, Buffer<std::uint32_t>>;

// The pixels of a row of tiles: one run of `size` pixels per frame, `stride` pixels apart.
struct PixelRuns {
  std::size_t first, size, frames, stride;
};

// The least number of vertices of a band. A band is a run of rows of tiles: the unit of parallel
// work and of summation. Bands must not depend on the number of threads.
inline constexpr std::uint32_t smallest_band = 2048;

struct Grid {
  std::size_t frames = 0, height = 0, width = 0;
  std::size_t space_dimensions = 0;  // 2: x and y, 3: x, y and t
  std::size_t vertices = 0;
  KeyLayout layout;
  Axis y, t;  // of lines and frames of pixels; `tiles` has the axis of columns
  AnyTiles tiles;
  std::vector<PixelRuns> row_pixels;      // pixels of each row of tiles
  std::vector<std::uint32_t> row_vertex;  // first vertex of each row of tiles, and the end
  PixelMap pixel;
  std::array<EdgeList, edge_kinds> edges;
  NeighbourTable neighbours;
  Buffer<float> mass;                       // number of pixels of each vertex: S 1
  double centre = 0, space = 0, range = 0;  // weights of B-bar
  std::vector<Level> levels;                // the pyramid, finest first
  std::vector<std::size_t> band_row;        // first row of tiles of each band, and the end
  std::vector<std::uint32_t> band_vertex;   // first vertex of each band, and the end

  std::size_t pixels() const { return frames * height * width; }
  std::size_t dimensions() const { return space_dimensions + layout.channels; }
  std::size_t rows() const { return row_pixels.size(); }
  std::size_t bands() const { return band_row.size() - 1; }

  // Whether the grid knows the vertex of each pixel. A grid joined from blocks does not.
  bool has_pixels() const {
    return std::visit([&](const auto& index) { return index.size() == pixels(); }, pixel);
  }
};

}  // namespace bilateral
