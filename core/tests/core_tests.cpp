// The core against brute force, on random input. Meant to run under the sanitizers; what the
// algorithms should compute is tested from Python, against the oracle.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "bistochastize.hpp"
#include "build.hpp"
#include "grid.hpp"
#include "multigrid.hpp"
#include "nested.hpp"
#include "pyramid.hpp"
#include "splat.hpp"
#include "system.hpp"

using namespace bilateral;

namespace {

int failures = 0;
int checks = 0;

#define CHECK(condition)                                                  \
  do {                                                                    \
    ++checks;                                                             \
    if (!(condition)) {                                                   \
      ++failures;                                                         \
      std::printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                     \
  } while (false)

using Random = std::mt19937;

std::size_t below(Random& random, std::size_t end) {
  return std::uniform_int_distribution<std::size_t>(0, end - 1)(random);
}

template <class Key>
void test_ranker(Random& random) {
  Ranker<Key> ranker;
  for (const std::size_t n : {1, 2, 7, 8, 9, 63, 64, 65, 256, 700, 1024, 1025, 5000})
    for (const std::size_t values : {1, 3, 30, 2000}) {
      std::vector<Key> keys(n);
      for (Key& key : keys) key = static_cast<Key>(below(random, values) * 977);
      std::vector<std::uint32_t> ranks(n);
      const std::size_t found = ranker.rank(keys.data(), n, ranks.data());
      std::vector<Key> expected(keys);
      std::sort(expected.begin(), expected.end());
      expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
      CHECK(found == expected.size());
      CHECK(std::equal(expected.begin(), expected.end(), ranker.distinct.begin()));
      std::vector<std::uint32_t> counts(found, 0);
      bool right = true;
      for (std::size_t i = 0; i < n; ++i) {
        right = right && expected[ranks[i]] == keys[i];
        ++counts[ranks[i]];
      }
      CHECK(right);
      CHECK(std::equal(counts.begin(), counts.end(), ranker.counts.begin()));
    }
}

struct Image {
  std::size_t height, width, channels;
  std::vector<std::uint8_t> pixels;

  Image(Random& random, std::size_t h, std::size_t w, std::size_t c, std::size_t noise)
      : height(h), width(w), channels(c), pixels(h * w * c) {
    for (std::size_t i = 0; i < pixels.size(); ++i)
      pixels[i] = static_cast<std::uint8_t>((i / (7 * c)) % 3 * 60 + below(random, noise));
  }

  Reference<std::uint8_t> reference(double sigma) const {
    std::array<std::array<double, 3>, 3> matrix{};
    for (std::size_t k = 0; k < 3; ++k) matrix[k][k] = 1;
    return {pixels.data(), height, width, channels, matrix, {}, {sigma, sigma, sigma}, 255};
  }
};

Grid make_grid(const Image& image, double sigma_xy, double sigma, int threads) {
  Grid grid = build_grid(image.reference(sigma), sigma_xy, threads);
  build_pyramid(grid, threads);
  grid.centre = 2;
  grid.space = 1;
  grid.range = 0.125;
  return grid;
}

std::uint32_t vertex_of(const Grid& grid, std::size_t y, std::size_t x) {
  const auto row =
      static_cast<std::size_t>(std::upper_bound(grid.row_pixel.begin(), grid.row_pixel.end(), y) -
                               grid.row_pixel.begin() - 1);
  return std::visit(
      [&](const auto& index) {
        return grid.row_vertex[row] + static_cast<std::uint32_t>(index[y * grid.width + x]);
      },
      grid.pixel);
}

void test_grid(Random& random) {
  struct Case {
    std::size_t height, width, channels, noise;
    double sigma_xy, sigma;
  };
  const Case cases[] = {{1, 1, 1, 9, 8, 8},      {1, 300, 1, 200, 3, 4},   {37, 1, 3, 40, 2.5, 8},
                        {40, 50, 3, 30, 8, 8},   {33, 47, 3, 250, 5.3, 6}, {20, 30, 1, 250, 0.6, 5},
                        {64, 64, 3, 250, 64, 2}, {30, 30, 3, 250, 4, 1e-4}};
  for (const Case& c : cases) {
    const Image image(random, c.height, c.width, c.channels, c.noise);
    const Grid grid = make_grid(image, c.sigma_xy, c.sigma, 2);
    std::map<std::vector<std::int64_t>, std::uint32_t> vertices;
    std::vector<float> mass(grid.vertices, 0);
    const auto found = coordinates(grid);
    bool right = true;
    for (std::size_t y = 0; y < c.height; ++y)
      for (std::size_t x = 0; x < c.width; ++x) {
        std::vector<std::int64_t> cell{
            static_cast<std::int64_t>(static_cast<double>(x) / c.sigma_xy + edge_guard),
            static_cast<std::int64_t>(static_cast<double>(y) / c.sigma_xy + edge_guard)};
        for (std::size_t k = 0; k < c.channels; ++k)
          cell.push_back(static_cast<std::int64_t>(
              image.pixels[(y * c.width + x) * c.channels + k] / c.sigma + edge_guard));
        const std::uint32_t vertex = vertex_of(grid, y, x);
        right = right && vertex < grid.vertices;
        right = right && vertices.emplace(cell, vertex).first->second == vertex;
        right = right && std::equal(cell.begin(), cell.end(),
                                    found.begin() + std::ptrdiff_t(vertex * cell.size()));
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

    std::size_t last = grid.vertices;
    for (const Level& level : grid.levels) {
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

// Solves with the pyramid start and preconditioner; returns x.
template <class T>
std::vector<T> solve(const Grid& grid, const std::vector<T>& target,
                     const std::vector<T>& confidence, std::size_t channels, int threads,
                     int steps) {
  Buffer<T> n(grid.vertices, T{1});
  bistochastize(grid, n, sizeof(T) == 4 ? 2e-6 : 1e-12, threads);
  std::vector<T> weight(grid.vertices), b(grid.vertices * channels), x(b.size());
  const Observed seen = splat_target(grid, target.data(), GivenConfidence(confidence.data()),
                                     channels, weight.data(), b.data(), threads);
  CHECK(seen.invalid == Observed::none);
  pyramid_start(grid, weight.data(), b.data(), channels, x.data(), threads);
  PcgOptions options;
  options.smoothness = 4;
  options.most_steps = steps;
  options.tolerance = 0;
  const std::vector<double> scale(channels, 1.0);
  SystemSolver<T>(grid, n.data(), Preconditioning::pyramid, threads)
      .solve(weight.data(), b.data(), channels, scale.data(), x.data(), true, options);
  std::vector<T> out(grid.pixels() * channels);
  slice(grid, x.data(), channels, out.data(), threads);
  return out;
}

template <class T>
void test_solve(Random& random) {
  std::uniform_real_distribution<T> uniform(0, 1);
  for (const std::size_t channels : {1, 2, 4, 9}) {
    const Image image(random, 150, 170, 3, 50);
    const Grid grid = make_grid(image, 2, 8, 3);
    std::vector<T> confidence(grid.pixels()), target(grid.pixels() * channels);
    for (T& c : confidence) c = below(random, 5) == 0 ? uniform(random) : T{0};
    for (T& t : target) t = uniform(random);
    for (std::size_t i = 0; i < 40; ++i)
      target[below(random, target.size())] = std::numeric_limits<T>::quiet_NaN();
    const auto one = solve(grid, target, confidence, channels, 1, 20);
    for (const int threads : {2, 3, 7})
      CHECK(one == solve(grid, target, confidence, channels, threads, 20));
    CHECK(std::all_of(one.begin(), one.end(), [](T v) { return v > T(-0.5) && v < T(1.5); }));
    std::fill(target.begin(), target.end(), T(0.25));
    const auto constant = solve(grid, target, confidence, channels, 2, 20);
    CHECK(std::all_of(constant.begin(), constant.end(),
                      [](T v) { return std::abs(v - T(0.25)) < T(1e-5); }));
  }
}

// Solves with multigrid from the nested start; returns x by vertex.
template <class T>
std::vector<T> solve_multigrid(const Grid& grid, const Multigrid<T>& multigrid,
                               const std::vector<T>& weight, const std::vector<T>& b,
                               std::size_t channels, int threads, int steps) {
  std::vector<T> x(b.size());
  nested_start(multigrid, grid.vertices, weight.data(), b.data(), channels, 4.0, x.data(), threads);
  PcgOptions options;
  options.smoothness = 4;
  options.most_steps = steps;
  options.tolerance = 0;
  const std::vector<double> scale(channels, 1.0);
  SystemSolver<T>(grid, multigrid, threads)
      .solve(weight.data(), b.data(), channels, scale.data(), x.data(), true, options);
  return x;
}

template <class T>
void test_multigrid(Random& random) {
  struct Case {
    std::size_t height, width, channels, noise;
    double sigma_xy, sigma;
  };
  const Case cases[] = {{1, 1, 1, 9, 8, 8},      {1, 2, 1, 1, 1, 8},       {1, 300, 1, 200, 3, 4},
                        {37, 1, 3, 40, 2.5, 8},  {40, 50, 3, 250, 1, 2},   {150, 170, 3, 50, 2, 8},
                        {64, 64, 3, 250, 64, 2}, {30, 30, 3, 250, 4, 1e-4}};
  std::uniform_real_distribution<T> uniform(0, 1);
  for (const Case& c : cases)
    for (const std::size_t channels : {1, 3, 9}) {
      const Grid grid =
          make_grid(Image(random, c.height, c.width, c.channels, c.noise), c.sigma_xy, c.sigma, 3);
      Buffer<T> n(grid.vertices, T{1});
      bistochastize(grid, n, sizeof(T) == 4 ? 2e-6 : 1e-12, 3);
      std::vector<T> weight(grid.vertices), b(grid.vertices * channels);
      for (std::size_t v = 0; v < grid.vertices; ++v) {
        weight[v] = below(random, 3) == 0 || v == 0 ? uniform(random) : T{0};
        for (std::size_t k = 0; k < channels; ++k)
          b[v * channels + k] = weight[v] * uniform(random);
      }
      const Multigrid<T> multigrid(grid, n.data(), 1);
      const auto x = solve_multigrid(grid, multigrid, weight, b, channels, 1, 12);
      CHECK(std::all_of(x.begin(), x.end(), [](T v) { return v > T(-0.01) && v < T(1.01); }));
      for (const int threads : {2, 5}) {
        const Multigrid<T> again(grid, n.data(), threads);
        CHECK(x == solve_multigrid(grid, again, weight, b, channels, threads, 12));
      }
    }
}

template <class T>
void test_bistochastize(Random& random) {
  const Image image(random, 90, 110, 3, 30);
  const Grid grid = make_grid(image, 4, 8, 2);
  Buffer<T> n(grid.vertices, T{1});
  const int steps = bistochastize(grid, n, 1e-5, 2);
  CHECK(steps < 40);
  std::vector<T> blurred(grid.vertices);
  blur(grid, n.data(), 1, blurred.data(), 2);
  bool right = true;
  for (std::size_t i = 0; i < grid.vertices; ++i)
    right = right && std::abs(n[i] * blurred[i] / T(grid.mass[i]) - 1) < T(3e-5);
  CHECK(right);
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
    const Observed seen = splat_target(grid, target.data(), GivenConfidence(confidence.data()), 1,
                                       weight.data(), b.data(), 2);
    CHECK(seen.invalid == 500);
  }
}

}  // namespace

int main() {
  Random random(1);
  test_ranker<NarrowKey>(random);
  test_ranker<WideKey>(random);
  test_grid(random);
  test_solve<float>(random);
  test_solve<double>(random);
  test_multigrid<float>(random);
  test_multigrid<double>(random);
  test_bistochastize<float>(random);
  test_bistochastize<double>(random);
  test_invalid_confidence(random);
  std::printf("%d passed, %d failed\n", checks - failures, failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
