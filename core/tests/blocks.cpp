// Test blocks of an image: their vertices and sums, the grid that they join to, their keys.
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "grid/bistochastize.hpp"
#include "grid/block.hpp"
#include "grid/splat.hpp"
#include "grid/state.hpp"
#include "tests/check.hpp"
#include "tests/random_image.hpp"

namespace bilateral {

namespace {

// Blocks of whole tiles have the keys, ranks and sums of the whole image, and their vertices join
// to its grid.
void test_joined_blocks(Random& random) {
  for (const double sigma : {4.0, 7.3}) {
    const Image image(random, 50, 61, 3, 80);
    Grid whole = make_grid(image, sigma, 12, 2);
    whole.centre = 1;
    const GridState state = state_of(whole, 2);
    const auto& tiles = std::get<Tiles<NarrowKey>>(whole.tiles);
    std::vector<float> target(whole.pixels());
    for (float& t : target) t = static_cast<float>(below(random, 1000)) / 7;
    std::vector<double> weight(whole.vertices), weighted(whole.vertices);
    const float* none = nullptr;
    splat_target(whole, target.data(), none, 1, weight.data(), weighted.data(), 2);
    JoinedVertices joined{Buffer<std::uint32_t>(tiles.first.size() - 1),
                          Buffer<NarrowKey>(whole.vertices), Buffer<float>(whole.vertices)};
    auto& keys = std::get<Buffer<NarrowKey>>(joined.keys);
    bool right = true;
    const std::size_t cut_y = tiles.row.count() / 2, cut_x = tiles.columns() / 3;
    for (const auto& [row, row_end] : {std::pair(std::size_t{0}, cut_y), {cut_y, tiles.rows()}})
      for (const auto& [column, column_end] :
           {std::pair(std::size_t{0}, cut_x), {cut_x, tiles.columns()}}) {
        const std::size_t y = whole.y.start[row], x = tiles.x.start[column];
        const std::size_t height = whole.y.start[row_end] - y,
                          width = tiles.x.start[column_end] - x;
        std::vector<std::uint8_t> pixels;
        std::vector<float> block_target;
        for (std::size_t j = y; j < y + height; ++j) {
          const std::size_t p = j * image.width + x;
          pixels.insert(pixels.end(), image.pixels.begin() + std::ptrdiff_t(3 * p),
                        image.pixels.begin() + std::ptrdiff_t(3 * (p + width)));
          block_target.insert(block_target.end(), target.begin() + std::ptrdiff_t(p),
                              target.begin() + std::ptrdiff_t(p + width));
        }
        Reference<std::uint8_t> reference = image.reference(12);
        reference.data = pixels.data();
        reference.height = height;
        reference.width = width;
        const Grid built = build_block(reference, {y, height, image.height},
                                       {x, width, image.width}, {2, sigma, sigma}, edge_guard, 2);
        const Grid block = block_of(state_of(built, 2), 2);
        std::vector<double> w(block.vertices), wt(block.vertices);
        splat_target(block, block_target.data(), none, 1, w.data(), wt.data(), 2);
        const auto& own = std::get<Tiles<NarrowKey>>(block.tiles);
        for (std::size_t r = row, at = 0, i = 0; r < row_end; ++r)
          for (std::size_t c = column; c < column_end; ++c, ++i) {
            const std::size_t tile = r * tiles.columns() + c;
            joined.counts[tile] = own.first[i + 1] - own.first[i];
            right = right && joined.counts[tile] == tiles.first[tile + 1] - tiles.first[tile];
            for (std::size_t v = tiles.first[tile]; right && v < tiles.first[tile + 1]; ++v, ++at) {
              right = own.keys[at] == tiles.keys[v] && block.mass[at] == whole.mass[v] &&
                      w[at] == weight[v] && wt[at] == weighted[v];
              keys[v] = own.keys[at];
              joined.mass[v] = block.mass[at];
            }
          }
      }
    CHECK(right);
    const Grid grid = join_blocks(std::move(joined), image.height, image.width, {2, sigma, sigma},
                                  edge_guard, state.key_bits, state.blur, 2);
    CHECK(grid.vertices == whole.vertices && !grid.has_pixels() && whole.has_pixels());
    CHECK(grid.band_vertex == whole.band_vertex && coordinates(grid) == coordinates(whole));
    std::vector<double> a(grid.vertices), b(grid.vertices);
    blur(grid, weighted.data(), 1, a.data(), 2);
    blur(whole, weighted.data(), 1, b.data(), 2);
    CHECK(a == b);
  }
}

// Keys in another layout stand for the same coordinates, and wide keys for those of narrow ones.
void test_repacked_keys(Random& random) {
  KeyLayout from = KeyLayout::of({30, 7}), to = KeyLayout::of({100, 40});
  from.low = {-3, 2};
  to.low = {-9, -1};
  std::vector<NarrowKey> keys(100), narrow(100);
  std::vector<WideKey> wide(100);
  for (NarrowKey& key : keys)
    key = static_cast<NarrowKey>((below(random, 31) << from.shift[0]) | below(random, 8));
  repack_keys(keys.data(), keys.size(), from, to, narrow.data());
  repack_keys(keys.data(), keys.size(), from, to, wide.data());
  bool right = true;
  for (std::size_t i = 0; i < keys.size(); ++i)
    for (std::size_t k = 0; k < 2; ++k) {
      const std::int64_t cell = from.coordinate(keys[i], k) + from.low[k] - to.low[k];
      right = right && to.coordinate(narrow[i], k) == cell && to.coordinate(wide[i], k) == cell;
    }
  CHECK(right);
}

}  // namespace

void test_blocks(Random& random) {
  test_joined_blocks(random);
  test_repacked_keys(random);
}

}  // namespace bilateral
