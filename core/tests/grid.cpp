// Test the grid: ranks of keys, vertices, edges, pyramid, bistochastization, splat, state.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "grid/bistochastize.hpp"
#include "grid/build.hpp"
#include "grid/edges.hpp"
#include "grid/keys.hpp"
#include "grid/pyramid.hpp"
#include "grid/splat.hpp"
#include "grid/state.hpp"
#include "tests/check.hpp"
#include "tests/failing_memory.hpp"
#include "tests/random_image.hpp"

namespace bilateral {

namespace {

template <class Key>
void test_ranker(Random& random) {
  Ranker<Key> ranker;
  for (const std::size_t n : {1u, 2u, 7u, 8u, 9u, 63u, 64u, 65u, 256u, 700u, 1024u, 1025u, 5000u})
    for (const std::size_t values : {1u, 3u, 30u, 2000u, 100000u}) {
      std::vector<Key> keys(n);
      for (Key& key : keys) key = static_cast<Key>(below(random, values) * 977);
      std::vector<std::uint32_t> ranks(n);
      const std::size_t count = ranker.rank(keys.data(), n, ranks.data());
      std::vector<Key> expected(keys);
      std::sort(expected.begin(), expected.end());
      expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
      CHECK(count == expected.size());
      CHECK(std::equal(expected.begin(), expected.end(), ranker.distinct.begin()));
      std::vector<std::uint32_t> counts(count, 0);
      bool right = true;
      for (std::size_t i = 0; i < n; ++i) {
        right = right && expected[ranks[i]] == keys[i];
        ++counts[ranks[i]];
      }
      CHECK(right);
      CHECK(std::equal(counts.begin(), counts.end(), ranker.counts.begin()));
    }
}

// The tables of 8-bit features against the features themselves.
void test_key_tables(Random& random) {
  for (const std::size_t channels : {1u, 2u, 3u, 5u}) {
    FeatureMap map;
    for (std::size_t k = 0; k < channels; ++k) {
      map.gain[k] = k % 2 == 0 ? 0.7 : -1.3;
      map.offset[k] = 3;
      map.sigma[k] = 40 + 9 * static_cast<double>(k);
    }
    const std::size_t height = 5, width = 70;
    std::vector<std::uint8_t> pixels(height * width * channels);
    for (auto& value : pixels) value = static_cast<std::uint8_t>(20 + below(random, 200));
    const Reference<std::uint8_t> reference{pixels.data(), 1,   height,      width,
                                            channels,      map, std::nullopt};
    const Binning bins = make_binning(reference, 1e-6, 2);
    std::vector<float> wide(pixels.begin(), pixels.end());  // takes the loop over all features
    const Binning same = make_binning(
        Reference<float>{wide.data(), 1, height, width, channels, map, std::nullopt}, 1e-6, 2);
    CHECK(bins.low == same.low && bins.high == same.high);
    std::vector<NarrowKey> keys(height * width), expected(keys);
    KeyTables(bins).row(pixels.data(), keys.size(), keys.data());
    row_keys(pixels.data(), keys.size(), bins, expected.data());
    CHECK(keys == expected);
  }
}

std::uint32_t vertex_of(const Grid& grid, std::size_t y, std::size_t x) {
  const std::size_t p = y * grid.width + x;
  std::size_t row = 0;
  for (std::size_t r = 0; r < grid.rows(); ++r)
    each_pixel_run(grid, r, [&](std::size_t begin, std::size_t end) {
      if (begin <= p && p < end) row = r;
    });
  return std::visit(
      [&](const auto& index) {
        return grid.row_vertex[row] + static_cast<std::uint32_t>(index[p]);
      },
      grid.pixel);
}

void test_structure(Random& random) {
  struct Case {
    std::size_t height, width, channels, noise;
    double sigma_xy, sigma;
    std::size_t frames = 1;
    double sigma_t = 1;
  };
  const Case cases[] = {{1, 1, 1, 9, 8, 8},
                        {1, 300, 1, 200, 3, 4},
                        {37, 1, 3, 40, 2.5, 8},
                        {40, 50, 3, 30, 8, 8},
                        {33, 47, 3, 250, 5.3, 6},
                        {20, 30, 1, 250, 0.6, 5},
                        {64, 64, 3, 250, 64, 2},
                        {30, 30, 3, 250, 4, 1e-4},
                        {1, 1, 0, 1, 8, 8},
                        {30, 40, 8, 90, 4, 60},
                        {6, 1, 1, 9, 2, 8, 6, 2},
                        {130, 60, 3, 250, 4, 20, 10, 2.5},
                        {200, 40, 1, 250, 2, 30, 5, 0.6},
                        {150, 50, 2, 250, 3, 40, 15, 1},
                        {90, 30, 0, 1, 1, 1, 9, 1}};
  for (const Case& c : cases) {
    const Image image(random, c.height, c.width, c.channels, c.noise);
    const Grid grid = make_grid(image, c.sigma_xy, c.sigma, 2, c.frames, c.sigma_t);
    const std::size_t frame = c.height / c.frames;
    std::map<std::vector<std::int64_t>, std::uint32_t> vertices;
    std::vector<float> mass(grid.vertices, 0);
    const auto all_coordinates = coordinates(grid);
    bool right = true;
    for (std::size_t y = 0; y < c.height; ++y)
      for (std::size_t x = 0; x < c.width; ++x) {
        std::vector<std::int64_t> cell{
            static_cast<std::int64_t>(static_cast<double>(x) / c.sigma_xy + edge_guard),
            static_cast<std::int64_t>(static_cast<double>(y % frame) / c.sigma_xy + edge_guard)};
        if (c.frames > 1)
          cell.push_back(
              static_cast<std::int64_t>(static_cast<double>(y / frame) / c.sigma_t + edge_guard));
        for (std::size_t k = 0; k < c.channels; ++k)
          cell.push_back(static_cast<std::int64_t>(
              image.pixels[(y * c.width + x) * c.channels + k] / c.sigma + edge_guard));
        const std::uint32_t vertex = vertex_of(grid, y, x);
        right = right && vertex < grid.vertices;
        right = right && vertices.emplace(cell, vertex).first->second == vertex;
        right = right && std::equal(cell.begin(), cell.end(),
                                    all_coordinates.begin() + std::ptrdiff_t(vertex * cell.size()));
        mass[vertex] += 1;
      }
    CHECK(right);
    CHECK(vertices.size() == grid.vertices);
    CHECK(std::equal(mass.begin(), mass.end(), grid.mass.data()));

    std::set<std::pair<std::uint32_t, std::uint32_t>> expected, edges;
    for (const auto& [cell, vertex] : vertices)
      for (std::size_t k = 0; k < cell.size(); ++k) {
        auto next = cell;
        ++next[k];
        const auto at = vertices.find(next);
        if (at != vertices.end()) expected.emplace(vertex, at->second);
      }
    std::size_t count = 0;
    for (std::size_t kind = 0; kind < edge_kinds; ++kind)
      for (std::size_t band = 0; band < grid.bands(); ++band)
        each_edge(grid, band, kind, [&](std::size_t, std::size_t a, std::size_t b, auto ends) {
          edges.emplace(static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b));
          if constexpr (ends != Ends::only_b) ++count;
        });
    CHECK(edges == expected);
    CHECK(count == expected.size());

    if (!grid.levels.empty()) CHECK(grid.levels[0].band == grid.band_vertex);
    std::size_t last = grid.vertices;
    for (const Level& level : grid.levels) {
      for (std::size_t band = 0; band + 1 < level.band.size(); ++band)
        CHECK(std::all_of(level.parent.data() + level.band[band],
                          level.parent.data() + level.band[band + 1], [&](std::uint32_t parent) {
                            return parent >= level.parent_band[band] &&
                                   parent < level.parent_band[band + 1];
                          }));
      CHECK(level.parent.size() == last);
      last = level.size.size();
      double total = 0;
      for (std::size_t i = 0; i < last; ++i) total += level.size[i];
      CHECK(total == static_cast<double>(grid.vertices));
      CHECK(level.band.back() == level.parent.size() && level.parent_band.back() == last);
    }
    CHECK(last == 1);
  }
}

template <class T>
void test_bistochastize(Random& random) {
  const Image image(random, 90, 110, 3, 30);
  const Grid grid = make_grid(image, 4, 8, 2);
  Buffer<T> n(grid.vertices, T{1});
  const int steps = bistochastize(grid, n, {1e-5, -0.98}, 2);
  CHECK(steps < 40);
  std::vector<T> blurred(grid.vertices);
  blur(grid, n.data(), 1, blurred.data(), 2);
  bool right = true;
  for (std::size_t i = 0; i < grid.vertices; ++i)
    right = right && std::abs(n[i] * blurred[i] / T(grid.mass[i]) - 1) < T(3e-5);
  CHECK(right);
}

// A coordinate may fill the 31 bits of a narrow key.
void test_largest_narrow_key() {
  const std::uint64_t largest = (std::uint64_t{1} << 31) - 2;
  const KeyLayout layout = KeyLayout::of({largest});
  CHECK(layout.total_bits() == 31);
  const auto key = static_cast<NarrowKey>(largest);
  CHECK(layout.coordinate(key, 0) == static_cast<std::int64_t>(largest));
  CHECK(layout.halving_mask<NarrowKey>() == (1 << 30) - 1);
  const std::vector<double> values{0, 1, static_cast<double>(largest), 5};
  FeatureMap map;
  map.gain.fill(1);
  map.sigma.fill(1);
  const Reference<double> reference{values.data(), 1, 1, values.size(), 1, map, std::nullopt};
  const Grid grid = build_grid(reference, {2, 8, 8}, edge_guard, 2);
  CHECK(std::holds_alternative<Tiles<NarrowKey>>(grid.tiles));
  CHECK(coordinates(grid) == std::vector<std::int64_t>({0, 0, 0, 0, 0, 1, 0, 0, 5, 0, 0,
                                                        static_cast<std::int64_t>(largest)}));
}

// Another thread may change a reference after its range was found: keys must stay in their fields.
template <class Key>
void test_changed_reference(Random& random, double sigma) {
  const double numbers[] = {0, 0.5, 1, -1, 3, 1e9, -1e9, 1e300, HUGE_VAL, -HUGE_VAL, std::nan("")};
  for (const std::size_t channels : {1u, 2u, 3u})
    for (const bool mixed : {false, true}) {
      if (mixed && channels != 3) continue;
      const std::size_t height = 30, width = 40;
      std::vector<double> before(height * width * channels, 0.5), after(before.size());
      for (double& value : after) value = numbers[below(random, std::size(numbers))];
      FeatureMap map;
      map.mixed = mixed;
      map.matrix = {{{1, 2, 3}, {-1, 1, 0}, {0, -1, 1}}};
      map.gain.fill(1);
      map.sigma.fill(sigma);
      const Reference<double> reference{before.data(), 1, height, width, channels, map, 1};
      const Binning bins = make_binning(reference, edge_guard, 2);
      Grid grid;
      grid.frames = 1;
      grid.height = height;
      grid.width = width;
      grid.space_dimensions = 2;
      grid.layout = bins.layout;
      const auto axis = [](std::size_t length) {
        return Axis::of_pixels({0, length, length}, 8, edge_guard);
      };
      const auto line_keys = [&](std::size_t first, Key* keys) {
        row_keys(after.data() + first * channels, width, bins, keys);
      };
      detail::connect(
          grid, detail::find_tiles<Key>(line_keys, axis(width), axis(height), axis(1), grid, 2), 2);
      build_pyramid(grid, 2);
      const auto cells = coordinates(grid);
      bool inside = !cells.empty();
      for (std::size_t i = 0; i < cells.size(); ++i)
        if (const std::size_t k = i % grid.dimensions(); k >= 2)
          inside = inside && static_cast<double>(cells[i]) <= bins.high[k - 2] - bins.low[k - 2];
      CHECK(inside);
      const double mass = std::accumulate(grid.mass.data(), grid.mass.data() + grid.vertices, 0.0);
      CHECK(mass == static_cast<double>(grid.pixels()));
    }
}

void test_invalid_confidence(Random& random) {
  const Image image(random, 21, 35, 1, 30);
  const Grid grid = make_grid(image, 8, 8, 2);
  const std::vector<float> target(grid.pixels(), 1.0f);
  std::vector<float> weight(grid.vertices), b(grid.vertices);
  for (const float bad :
       {-1.0f, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> confidence(grid.pixels(), 1.0f);
    confidence[500] = confidence[600] = bad;
    const InputStats stats =
        splat_target(grid, target.data(), confidence.data(), 1, weight.data(), b.data(), 2);
    CHECK(stats.invalid == 500);
  }
}

bool same_edges(const Grid& a, const Grid& b) {
  const auto edges = [](const Grid& grid) {
    std::vector<std::pair<std::size_t, std::size_t>> all;
    for (std::size_t kind = 0; kind < edge_kinds; ++kind)
      for (std::size_t band = 0; band < grid.bands(); ++band)
        each_edge(grid, band, kind,
                  [&](std::size_t, std::size_t v, std::size_t w, auto) { all.emplace_back(v, w); });
    return all;
  };
  return edges(a) == edges(b);
}

// Changes one number of a state.
void damage(Random& random, GridState& state) {
  const auto flip = [&](auto& values, std::size_t size) {
    if (size == 0) return;
    auto& value = values[below(random, size)];
    using Value = std::remove_reference_t<decltype(value)>;
    value = static_cast<Value>(value ^ (Value{1} << below(random, 8 * sizeof(Value) - 1)));
  };
  const auto change_cells = [&](std::vector<std::int64_t>& cells) {
    if (below(random, 2) == 0)
      flip(cells, cells.size());
    else
      cells.resize(below(random, 2 * cells.size() + 1));
  };
  switch (below(random, 7)) {
    case 0:
      return change_cells(state.x_cell);
    case 1:
      return change_cells(state.y_cell);
    case 2:
      return change_cells(state.t_cell);
    case 3:
      return flip(state.key_bits, state.key_bits.size());
    case 4:
      return std::visit([&](auto& keys) { flip(keys, keys.size()); }, state.keys);
    case 5:
      return std::visit([&](auto& ranks) { flip(ranks.last, ranks.last.size()); }, state.ranks);
    default:
      std::visit([&](auto& ranks) { flip(ranks.pixel, ranks.pixel.size()); }, state.ranks);
  }
}

void test_state(Random& random) {
  struct Case {
    std::size_t height, width, channels, noise;
    double sigma_xy, sigma;
    std::size_t frames = 1;
  };
  const Case cases[] = {{1, 1, 1, 9, 8, 8},      {33, 47, 3, 250, 5.3, 6},
                        {64, 64, 3, 250, 64, 2}, {30, 30, 3, 250, 4, 1e-4},
                        {20, 12, 0, 1, 3, 8},    {60, 20, 2, 250, 3, 40, 5}};
  for (const Case& c : cases) {
    const Image image(random, c.height, c.width, c.channels, c.noise);
    Grid grid = make_grid(image, c.sigma_xy, c.sigma, 2, c.frames, 2);
    grid.centre = 1;
    const Grid restored = grid_of(state_of(grid, 2), 2);
    CHECK(coordinates(restored) == coordinates(grid));
    CHECK(std::equal(grid.mass.data(), grid.mass.data() + grid.vertices, restored.mass.data()));
    CHECK(restored.band_vertex == grid.band_vertex && same_edges(restored, grid));
    for (std::size_t y = 0; y < grid.height; ++y)
      for (std::size_t x = 0; x < grid.width; ++x)
        CHECK(vertex_of(grid, y, x) == vertex_of(restored, y, x));
    for (int trial = 0; trial < 300; ++trial) {
      GridState state = state_of(grid, 1);
      damage(random, state);
      try {
        Grid damaged = grid_of(std::move(state), 1);
        build_pyramid(damaged, 1);
        Buffer<float> n(damaged.vertices, 1.0f);
        bistochastize(damaged, n, {1e-5, -0.98}, 1);
        CHECK(std::all_of(n.data(), n.data() + n.size(), [](float v) { return v > 0; }));
      } catch (const std::invalid_argument&) {
      }
    }
  }
}

void test_without_memory(Random& random) {
  const Image image(random, 365, 365, 3, 60);
  check_without_memory(24, [&] {
    const Grid grid = make_grid(image, 8, 12, 4);
    CHECK(team_size(4, grid.vertices, 8192) > 1);
    Buffer<float> n(grid.vertices, 1.0f);
    bistochastize(grid, n, {1e-2, -0.98}, 4);
    return std::vector<float>(n.data(), n.data() + n.size());
  });
}

}  // namespace

void test_grid(Random& random) {
  test_ranker<NarrowKey>(random);
  test_ranker<WideKey>(random);
  test_key_tables(random);
  test_structure(random);
  test_bistochastize<float>(random);
  test_bistochastize<double>(random);
  test_largest_narrow_key();
  test_changed_reference<NarrowKey>(random, 0.1);
  test_changed_reference<WideKey>(random, 1e-6);
  test_invalid_confidence(random);
  test_blocks(random);
  test_neighbours(random);
  test_state(random);
  test_without_memory(random);
}

}  // namespace bilateral
