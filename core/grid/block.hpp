// Blocks of an image: find the vertices of a rectangle of whole tiles alone, and join the vertices
// of all blocks into the grid of the image.
//
// Vertices of different tiles never coincide, so the vertices of a block, their order and their
// sums are those of the whole image. A block is a grid without edges; a joined grid has no pixels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/buffer.hpp"
#include "grid/build.hpp"
#include "grid/grid.hpp"
#include "grid/keys.hpp"
#include "grid/reference.hpp"
#include "grid/state.hpp"

namespace bilateral {

namespace detail {

inline constexpr auto keep_as_block = []<class Key>(Grid& grid, Tiles<Key> tiles) {
  number_rows(grid, tiles);
  grid.tiles = std::move(tiles);
};

}  // namespace detail

// The vertices of a block at the rows `y` and the columns `x` of an image.
template <class T>
Grid build_block(const Reference<T>& reference, const PixelSpan& y, const PixelSpan& x,
                 const SpaceSigmas& sigma, double edge_guard, int threads) {
  Grid grid;
  const Binning bins = make_binning(reference, edge_guard, threads);
  grid.frames = 1;
  grid.height = y.length;
  grid.width = x.length;
  grid.space_dimensions = 2;
  grid.layout = bins.layout;
  detail::with_line_keys(reference, bins, [&]<class Key>(const detail::LineKeys<Key>& line_keys) {
    detail::keep_as_block(
        grid, detail::find_tiles<Key>(line_keys, Axis::of_pixels(x, sigma.x, edge_guard),
                                      Axis::of_pixels(y, sigma.y, edge_guard),
                                      Axis::of_pixels({0, 1, 1}, 1, edge_guard), grid, threads));
  });
  return grid;
}

// The block of a state. Throws std::invalid_argument if the state is not that of a block.
inline Grid block_of(GridState state, int threads) {
  return detail::restore_grid(std::move(state), threads, detail::keep_as_block);
}

// Moves keys to another layout, whose fields hold the coordinates of the old one.
template <class From, class To>
void repack_keys(const From* keys, std::size_t n, const KeyLayout& from, const KeyLayout& to,
                 To* out) {
  for (std::size_t k = 0; k < from.channels; ++k) {
    const std::int64_t shift = from.low[k] - to.low[k];
    const std::int64_t room = (std::int64_t{1} << to.bits[k]) - (std::int64_t{1} << from.bits[k]);
    detail::check_state(shift >= 0 && shift <= room,
                        "the new fields must hold the old coordinates");
  }
  for (std::size_t i = 0; i < n; ++i) {
    To key = 0;
    for (std::size_t k = 0; k < from.channels; ++k) {
      const std::int64_t field = from.coordinate(keys[i], k) + from.low[k] - to.low[k];
      key = static_cast<To>(key | static_cast<To>(static_cast<To>(field) << to.shift[k]));
    }
    out[i] = key;
  }
}

// The vertices of a whole image: the number of vertices of each tile by rows of tiles, the key and
// the number of pixels of each vertex.
struct JoinedVertices {
  Buffer<std::uint32_t> counts;
  AnyKeys keys;
  Buffer<float> mass;
};

// The grid of an image from the vertices of all its blocks, without its pyramid. It has no pixels.
inline Grid join_blocks(JoinedVertices vertices, std::size_t height, std::size_t width,
                        const SpaceSigmas& sigma, double edge_guard,
                        const std::vector<int>& key_bits, const std::array<double, 3>& blur,
                        int threads) {
  using detail::check_state;
  Grid grid;
  grid.frames = 1;
  grid.height = height;
  grid.width = width;
  grid.space_dimensions = 2;
  detail::set_blur(grid, blur);
  grid.y = Axis::of_pixels({0, height, height}, sigma.y, edge_guard);
  grid.t = Axis::of_pixels({0, 1, 1}, 1, edge_guard);
  std::visit(
      [&]<class Key>(Buffer<Key>& keys) {
        grid.layout = detail::layout_of(key_bits, detail::most_bits<Key>);
        Tiles<Key> tiles;
        tiles.x = Axis::of_pixels({0, width, width}, sigma.x, edge_guard);
        tiles.row = detail::make_rows(grid);
        const std::size_t count = tiles.rows() * tiles.columns();
        check_state(vertices.counts.size() == count, "there must be one count per tile");
        tiles.first = Buffer<std::uint32_t>(count + 1);
        std::uint64_t first = 0;
        for (std::size_t i = 0; i < count; ++i) {
          tiles.first[i] = static_cast<std::uint32_t>(first);
          check_state(vertices.counts[i] > 0, "a tile of no block has no vertices");
          first += vertices.counts[i];
          check_state(first < 0xffffffffu, "the grid has more than 2^32 - 2 vertices");
        }
        tiles.first[count] = static_cast<std::uint32_t>(first);
        check_state(first == keys.size() && first == vertices.mass.size(),
                    "there must be one key and one mass per vertex");
        for (std::size_t i = 0; i < count; ++i)
          check_state(
              detail::are_valid(keys.data() + tiles.first[i], vertices.counts[i], grid.layout),
              "the keys of a tile must be sorted and fit their fields");
        tiles.keys = std::move(keys);
        grid.vertices = first;
        grid.mass = std::move(vertices.mass);
        detail::connect(grid, std::move(tiles), threads);
      },
      vertices.keys);
  return grid;
}

}  // namespace bilateral
