// Save a grid as plain arrays, and build the same grid from them.
//
// The arrays hold only the vertices and the vertex of each pixel. Edges, bands and mass follow from
// them. The arrays may come from a damaged file, so grid_of checks everything that the rest of the
// core relies on.
#pragma once

#include <algorithm>
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

#include "base/buffer.hpp"
#include "base/threads.hpp"
#include "grid/build.hpp"
#include "grid/grid.hpp"
#include "grid/keys.hpp"
#include "grid/splat.hpp"

namespace bilateral {

// The rank of a pixel is the number of its vertex within its tile.
template <class Rank>
struct RankArrays {
  Buffer<Rank> last;   // the largest rank of each tile, by row of tiles
  Buffer<Rank> pixel;  // the rank of each pixel
};

using AnyRanks =
    std::variant<RankArrays<std::uint8_t>, RankArrays<std::uint16_t>, RankArrays<std::uint32_t>>;
using AnyKeys = std::variant<Buffer<NarrowKey>, Buffer<WideKey>>;

struct GridState {
  std::size_t space_dimensions = 0;                  // 2: x and y, 3: x, y and t
  std::array<double, 3> blur{};                      // weights of B-bar: centre, space, range
  std::vector<int> key_bits;                         // of each range coordinate in a key
  std::vector<std::int64_t> x_cell, y_cell, t_cell;  // of each column, line and frame of pixels
  AnyRanks ranks;
  AnyKeys keys;  // of each vertex, sorted within a tile
};

namespace detail {

inline void check_state(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

inline std::vector<std::int64_t> cells_of(const Axis& axis) {
  std::vector<std::int64_t> cells;
  for (std::size_t i = 0; i < axis.cells(); ++i)
    cells.resize(axis.start[i + 1], axis.coordinate[i]);
  return cells;
}

inline Axis axis_of(const std::vector<std::int64_t>& cells) {
  check_state(!cells.empty(), "there must be a pixel");
  Axis axis;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    check_state(cells[i] >= last, "cells must not be negative and must not decrease");
    axis.append(i, last = cells[i]);
  }
  check_state(static_cast<double>(last) <= coordinate_limit, "cells must not exceed 2^40");
  axis.start.push_back(cells.size());
  return axis;
}

// Calls f(first_pixel) for each line of pixels of a row of tiles.
template <class F>
void each_line(const Grid& grid, std::size_t row, F&& f) {
  each_pixel_run(grid, row, [&](std::size_t begin, std::size_t end) {
    for (std::size_t p = begin; p < end; p += grid.width) f(p);
  });
}

// The column of tiles of each column of pixels.
inline std::vector<std::uint32_t> tile_columns(const Axis& x) {
  std::vector<std::uint32_t> columns;
  for (std::size_t i = 0; i < x.cells(); ++i)
    columns.resize(x.start[i + 1], static_cast<std::uint32_t>(i));
  return columns;
}

template <class Rank, class Key>
RankArrays<Rank> ranks_of(const Grid& grid, const Tiles<Key>& tiles, int threads) {
  RankArrays<Rank> ranks{Buffer<Rank>(tiles.first.size() - 1), Buffer<Rank>(grid.pixels())};
  for (std::size_t i = 0; i < ranks.last.size(); ++i)
    ranks.last[i] = static_cast<Rank>(tiles.first[i + 1] - tiles.first[i] - 1);
  const std::vector<std::uint32_t> column = tile_columns(tiles.x);
  each_row(grid, threads, [&](std::size_t row, const auto* index) {
    const std::uint32_t* first = tiles.first.data() + row * tiles.columns();
    each_line(grid, row, [&](std::size_t p) {
      for (std::size_t x = 0; x < grid.width; ++x)
        ranks.pixel[p + x] = static_cast<Rank>(index[p + x] - (first[column[x]] - first[0]));
    });
  });
  return ranks;
}

template <class Key>
AnyRanks any_ranks_of(const Grid& grid, const Tiles<Key>& tiles, int threads) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i + 1 < tiles.first.size(); ++i)
    largest = std::max(largest, tiles.first[i + 1] - tiles.first[i] - 1);
  if (largest <= 0xff) return ranks_of<std::uint8_t>(grid, tiles, threads);
  if (largest <= 0xffff) return ranks_of<std::uint16_t>(grid, tiles, threads);
  return ranks_of<std::uint32_t>(grid, tiles, threads);
}

// Sets the first vertex of each tile.
template <class Rank, class Key>
void number_tiles(const RankArrays<Rank>& ranks, Tiles<Key>& tiles) {
  const std::size_t count = tiles.rows() * tiles.columns();
  check_state(ranks.last.size() == count, "there must be one last rank per tile");
  tiles.first = Buffer<std::uint32_t>(count + 1);
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < count; ++i) {
    tiles.first[i] = static_cast<std::uint32_t>(first);
    first += std::uint64_t{ranks.last[i]} + 1;
    check_state(first < 0xffffffffu, "the grid has more than 2^32 - 2 vertices");
  }
  tiles.first[count] = static_cast<std::uint32_t>(first);
  check_state(first == tiles.keys.size(), "there must be one key per vertex");
}

// Whether the keys of a tile are distinct, sorted, and within the fields of the layout.
template <class Key>
bool are_valid(const Key* keys, std::size_t count, const KeyLayout& layout) {
  for (std::size_t i = 0; i < count; ++i) {
    if (keys[i] < Key{0} || (keys[i] >> layout.total_bits()) != Key{0}) return false;
    if (i > 0 && !(keys[i - 1] < keys[i])) return false;
    for (std::size_t k = 0; k < layout.channels; ++k)
      if (layout.coordinate(keys[i], k) + 1 == std::int64_t{1} << layout.bits[k]) return false;
  }
  return true;
}

// Sets the vertex of each pixel and the mass of each vertex.
template <class Index, class Rank, class Key>
void number_pixels(const RankArrays<Rank>& ranks, const Tiles<Key>& tiles, Grid& grid,
                   int threads) {
  Buffer<Index> pixel(grid.pixels());
  grid.mass = Buffer<float>(grid.vertices);
  const std::vector<std::uint32_t> column = tile_columns(tiles.x);
  std::atomic<bool> keys_are_valid{true}, ranks_are_valid{true};
  parallel_for(
      team_size(threads, grid.pixels(), 65536), tiles.rows(), [&](std::size_t row, std::size_t) {
        const std::size_t columns = tiles.columns();
        const std::uint32_t* first = tiles.first.data() + row * columns;
        const Rank* last = ranks.last.data() + row * columns;
        for (std::size_t i = 0; i < columns; ++i)
          if (!are_valid(tiles.keys.data() + first[i], first[i + 1] - first[i], grid.layout))
            keys_are_valid = false;
        std::vector<std::uint32_t> pixels(first[columns] - first[0], 0);
        each_line(grid, row, [&](std::size_t p) {
          for (std::size_t x = 0; x < grid.width; ++x) {
            const Rank rank = ranks.pixel[p + x];
            if (rank > last[column[x]]) {
              ranks_are_valid = false;
              return;
            }
            const std::uint32_t vertex = first[column[x]] - first[0] + rank;
            pixel[p + x] = static_cast<Index>(vertex);
            ++pixels[vertex];
          }
        });
        if (std::find(pixels.begin(), pixels.end(), 0u) != pixels.end()) ranks_are_valid = false;
        std::copy(pixels.begin(), pixels.end(), grid.mass.data() + first[0]);
      });
  check_state(keys_are_valid, "the keys of a tile must be sorted and fit their fields");
  check_state(ranks_are_valid, "the ranks of a tile must be all numbers up to its last rank");
  grid.pixel = std::move(pixel);
}

template <class Key>
inline constexpr int most_bits = sizeof(Key) == sizeof(NarrowKey) ? 31 : most_key_bits;

inline KeyLayout layout_of(const std::vector<int>& bits, int limit) {
  check_state(bits.size() <= max_channels, "a key has at most 8 fields");
  std::vector<std::uint64_t> largest;
  for (const int field : bits) {
    check_state(field >= 1 && field <= 62, "a field of a key must have 1 to 62 bits");
    largest.push_back((std::uint64_t{1} << field) - 2);
  }
  const KeyLayout layout = KeyLayout::of(largest);
  check_state(layout.total_bits() <= limit, "the fields must fit into a key");
  return layout;
}

template <class Key>
Tiles<Key> restore(const AnyRanks& any_ranks, Buffer<Key> keys, Axis x, Grid& grid, int threads) {
  Tiles<Key> tiles;
  tiles.x = std::move(x);
  tiles.row = make_rows(grid);
  tiles.keys = std::move(keys);
  grid.vertices = tiles.keys.size();
  std::visit(
      [&](const auto& ranks) {
        number_tiles(ranks, tiles);
        std::uint32_t largest = 0;  // of all rows of tiles
        for (std::size_t r = 0; r < tiles.rows(); ++r)
          largest = std::max(largest, tiles.row_first(r + 1) - tiles.row_first(r));
        if (largest <= 65536)
          number_pixels<std::uint16_t>(ranks, tiles, grid, threads);
        else
          number_pixels<std::uint32_t>(ranks, tiles, grid, threads);
      },
      any_ranks);
  return tiles;
}

// Restores everything of a grid that does not need edges, then calls f(grid, tiles).
template <class F>
Grid restore_grid(GridState state, int threads, F&& f) {
  Grid grid;
  Axis x = axis_of(state.x_cell);
  grid.y = axis_of(state.y_cell);
  grid.t = axis_of(state.t_cell);
  grid.width = state.x_cell.size();
  grid.height = state.y_cell.size();
  grid.frames = state.t_cell.size();
  grid.space_dimensions = state.space_dimensions;
  check_state(state.space_dimensions == 3 ||
                  (state.space_dimensions == 2 && state.t_cell == std::vector<std::int64_t>{0}),
              "an image has one frame, in cell 0");
  const std::size_t pixels =
      std::visit([](const auto& ranks) { return ranks.pixel.size(); }, state.ranks);
  check_state(grid.width <= pixels && grid.height <= pixels / grid.width &&
                  grid.frames <= pixels / grid.width / grid.height && grid.pixels() == pixels,
              "there must be one rank per pixel");
  std::visit(
      [&]<class Key>(Buffer<Key>& keys) {
        grid.layout = layout_of(state.key_bits, most_bits<Key>);
        f(grid, restore(state.ranks, std::move(keys), std::move(x), grid, threads));
      },
      state.keys);
  return grid;
}

// Checks the weights of B-bar, centre, space and range, and sets them.
inline void set_blur(Grid& grid, const std::array<double, 3>& blur) {
  for (const double weight : blur)
    check_state(weight >= 0 && weight <= 1, "the weights of the blur must be between 0 and 1");
  check_state(blur[0] > 0, "the centre weight of the blur must be positive");
  grid.centre = blur[0];
  grid.space = blur[1];
  grid.range = blur[2];
}

}  // namespace detail

inline GridState state_of(const Grid& grid, int threads) {
  GridState state;
  state.space_dimensions = grid.space_dimensions;
  state.blur = {grid.centre, grid.space, grid.range};
  state.key_bits.assign(grid.layout.bits.begin(),
                        grid.layout.bits.begin() + std::ptrdiff_t(grid.layout.channels));
  state.y_cell = detail::cells_of(grid.y);
  state.t_cell = detail::cells_of(grid.t);
  std::visit(
      [&]<class Key>(const Tiles<Key>& tiles) {
        state.x_cell = detail::cells_of(tiles.x);
        state.ranks = detail::any_ranks_of(grid, tiles, threads);
        Buffer<Key> keys(grid.vertices);
        std::copy_n(tiles.keys.data(), grid.vertices, keys.data());
        state.keys = std::move(keys);
      },
      grid.tiles);
  return state;
}

// The grid of a state, without its pyramid. Throws std::invalid_argument if the state is not that
// of a grid.
inline Grid grid_of(GridState state, int threads) {
  const std::array<double, 3> blur = state.blur;
  Grid grid = detail::restore_grid(std::move(state), threads,
                                   [&]<class Key>(Grid& restored, Tiles<Key> tiles) {
                                     detail::connect(restored, std::move(tiles), threads);
                                   });
  detail::set_blur(grid, blur);
  return grid;
}

}  // namespace bilateral
