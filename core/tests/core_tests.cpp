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
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "defocus/defocus.hpp"
#include "filters/domain_transform.hpp"
#include "filters/median.hpp"
#include "grid/bistochastize.hpp"
#include "grid/build.hpp"
#include "grid/grid.hpp"
#include "grid/pyramid.hpp"
#include "grid/splat.hpp"
#include "labels/label_depth.hpp"
#include "labels/majority.hpp"
#include "labels/regions.hpp"
#include "multigrid/hierarchy.hpp"
#include "multigrid/nested_start.hpp"
#include "solve/robust.hpp"
#include "solve/system.hpp"
#include "stereo/block_matching.hpp"
#include "stereo/visibility.hpp"

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

  Reference<std::uint8_t> reference(double sigma, std::size_t frames = 1) const {
    FeatureMap map;
    map.gain.fill(1);
    map.sigma.fill(sigma);
    return {pixels.data(), frames, height / frames, width, channels, map, 255};
  }
};

// With `frames`, the image shows them one below the other.
Grid make_grid(const Image& image, double sigma_xy, double sigma, int threads,
               std::size_t frames = 1, double sigma_t = 1) {
  const SpaceSigmas space{frames > 1 ? 3u : 2u, sigma_xy, sigma_xy, sigma_t};
  Grid grid = build_grid(image.reference(sigma, frames), space, threads);
  build_pyramid(grid, threads);
  grid.centre = 2;
  grid.space = 1;
  grid.range = 0.125;
  return grid;
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

void test_grid(Random& random) {
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
    const auto found = coordinates(grid);
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

// Solves with the pyramid start and preconditioner; returns x.
template <class T>
std::vector<T> solve(const Grid& grid, const std::vector<T>& target,
                     const std::vector<T>& confidence, std::size_t channels, int threads,
                     int steps) {
  Buffer<T> n(grid.vertices, T{1});
  bistochastize(grid, n, sizeof(T) == 4 ? 2e-6 : 1e-12, threads);
  std::vector<T> weight(grid.vertices), b(grid.vertices * channels), x(b.size());
  const Observed seen = splat_target(grid, target.data(), confidence.data(), channels,
                                     weight.data(), b.data(), threads);
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
std::vector<T> solve_multigrid(const Grid& grid, const Hierarchy<T>& multigrid,
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

bool same_parts(const Components& one, const Components& other) {
  std::map<std::uint32_t, std::uint32_t> there, back;
  for (std::size_t v = 0; v < one.of.size(); ++v) {
    const std::uint32_t a = one.of[v], b = other.of[v];
    if (there.emplace(a, b).first->second != b || back.emplace(b, a).first->second != a)
      return false;
    if (one.mass[a] != other.mass[b]) return false;
  }
  return one.of.size() == other.of.size();
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
      const Hierarchy<T> multigrid(grid, n.data(), 1);
      CHECK(same_parts(find_components(grid), find_components(grid, multigrid)));
      const auto x = solve_multigrid(grid, multigrid, weight, b, channels, 1, 12);
      CHECK(std::all_of(x.begin(), x.end(), [](T v) { return v > T(-0.01) && v < T(1.01); }));
      for (const int threads : {2, 5}) {
        const Hierarchy<T> again(grid, n.data(), threads);
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

// The splat with robust weights against a sum over all pixels, one after another.
template <class T>
void test_splat_robust(Random& random) {
  std::uniform_real_distribution<T> uniform(0, 1);
  const Loss losses[] = {{Loss::Shape::power, 2, 3, -2},     {Loss::Shape::power, 2, 3, -1},
                         {Loss::Shape::power, 2, 3, -0.5},   {Loss::Shape::power, 2, 3, 0},
                         {Loss::Shape::power, 2, 3, -3.5},   {Loss::Shape::huber, 2, 3, 0},
                         {Loss::Shape::exponential, 2, 3, 0}};
  const auto weight_of = [](const Loss& loss, double square) {
    const double z = loss.rate * square;
    if (loss.shape == Loss::Shape::huber) return loss.gain * (z > 1 ? 1 / std::sqrt(z) : 1);
    if (loss.shape == Loss::Shape::exponential) return loss.gain * std::exp(-z);
    return loss.gain * std::pow(1 + z, loss.exponent);
  };
  for (const std::size_t channels : {1, 3}) {
    const Image image(random, 61, 83, 1, 50);
    const Grid grid = make_grid(image, 16, 8, 2);
    std::vector<T> target(grid.pixels() * channels), y(grid.vertices * channels);
    for (T& t : target)
      t = below(random, 9) == 0 ? std::numeric_limits<T>::infinity() : uniform(random);
    for (T& v : y) v = uniform(random);
    std::vector<T> at(target.size());
    slice(grid, y.data(), channels, at.data(), 1);
    for (const Loss& loss : losses) {
      std::vector<double> c(grid.pixels()), ct(target.size()), sums(grid.vertices),
          weighted(y.size());
      for (std::size_t p = 0; p < c.size(); ++p) {
        double square = 0;
        for (std::size_t i = p * channels; i < (p + 1) * channels; ++i)
          square += std::pow(static_cast<double>(at[i]) - static_cast<double>(target[i]), 2);
        c[p] = std::isfinite(square) ? weight_of(loss, square) : 0;
        for (std::size_t i = p * channels; i < (p + 1) * channels; ++i)
          ct[i] = c[p] > 0 ? c[p] * static_cast<double>(target[i]) : 0;
      }
      splat(grid, c.data(), 1, sums.data(), 1);
      splat(grid, ct.data(), channels, weighted.data(), 1);
      std::vector<T> w(sums.size()), wt(weighted.size());
      const Samples<T> samples(grid, target.data(), channels, 2);
      const double total = splat_robust(samples, loss, y.data(), w.data(), wt.data(), 2);
      const auto near = [](double a, T b) {
        return std::abs(a - static_cast<double>(b)) <= 1e-5 * (1 + std::abs(a));
      };
      CHECK(std::equal(sums.begin(), sums.end(), w.begin(), near));
      CHECK(std::equal(weighted.begin(), weighted.end(), wt.begin(), near));
      CHECK(std::abs(total - std::accumulate(c.begin(), c.end(), 0.0)) <= 1e-5 * total);
    }
  }
}

// The filter as its definition says, in float64: values and masses as DT(m v) / DT(m).
template <class T>
std::vector<double> plain_domain_transform(const DomainWeights<T>& weights, int iterations,
                                           const std::vector<T>& image, const std::vector<T>& mass,
                                           std::size_t channels) {
  const std::size_t height = weights.height, width = weights.width, each = channels + 1;
  std::vector<double> sums(height * width * each);
  for (std::size_t p = 0; p < height * width; ++p) {
    sums[p * each + channels] = static_cast<double>(mass[p]);
    for (std::size_t k = 0; k < channels; ++k)
      sums[p * each + k] = static_cast<double>(mass[p] * image[p * channels + k]);
  }
  const auto along = [&](std::size_t first, std::size_t step, std::size_t n, const T* w, int pass) {
    const auto take = [&](std::size_t to, std::size_t from, std::size_t edge) {
      const double share = std::pow(static_cast<double>(w[edge]), std::pow(2.0, pass));
      for (std::size_t k = 0; k < each; ++k)
        sums[to * each + k] += share * (sums[from * each + k] - sums[to * each + k]);
    };
    for (std::size_t i = 1; i < n; ++i)
      take(first + i * step, first + (i - 1) * step, first + i * step);
    for (std::size_t i = n - 1; i-- > 0;)
      take(first + i * step, first + (i + 1) * step, first + (i + 1) * step);
  };
  for (int pass = 0; pass < iterations; ++pass) {
    for (std::size_t y = 0; y < height; ++y)
      along(y * width, 1, width, weights.across.data(), pass);
    for (std::size_t x = 0; x < width; ++x) along(x, width, height, weights.down.data(), pass);
  }
  std::vector<double> values(height * width * channels);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = sums[i / channels * each + i % channels] / sums[i / channels * each + channels];
  return values;
}

template <class T>
void test_domain_transform(Random& random) {
  std::uniform_real_distribution<T> uniform(0, 1);
  const std::size_t shapes[][2] = {{1, 1}, {1, 40}, {40, 1}, {3, 5}, {37, 61}, {130, 70}};
  for (const auto& [height, width] : shapes)
    for (const std::size_t channels : {1, 2, 3, 5}) {
      const Image photo(random, height, width, 3, 20);
      const ReferenceImage<std::uint8_t> guide{photo.pixels.data(), height, width, 3};
      const auto weights = domain_weights<T>(guide, {0.1, 0.01}, 2);
      std::vector<T> image(height * width * channels), mass(height * width), out(image.size());
      for (T& v : image) v = uniform(random);
      for (T& m : mass) m = below(random, 3) == 0 ? T{0} : uniform(random);
      mass[below(random, mass.size())] = 1;
      const auto check = [&](const T* given, const std::vector<T>& used) {
        const auto expected = plain_domain_transform(weights, 3, image, used, channels);
        for (const int threads : {1, 3}) {
          domain_transform(weights, 3, image.data(), given, channels, out.data(), threads);
          double largest = 0;
          for (std::size_t i = 0; i < out.size(); ++i)
            largest = std::max(largest, std::abs(static_cast<double>(out[i]) - expected[i]));
          CHECK(largest < (sizeof(T) == 4 ? 2e-5 : 1e-12));
        }
      };
      check(nullptr, std::vector<T>(mass.size(), T{1}));
      check(mass.data(), mass);
    }
}

void test_domain_transform_without_data() {
  const std::vector<std::uint8_t> photo(12, 7);
  const auto weights =
      domain_weights<float>(ReferenceImage<std::uint8_t>{photo.data(), 3, 4, 1}, {0.1, 0.1}, 1);
  std::vector<float> image(12, std::numeric_limits<float>::quiet_NaN()), out(12);
  CHECK(!domain_transform<float>(weights, 3, image.data(), nullptr, 1, out.data(), 1).known);
  image[5] = 2;
  CHECK(domain_transform<float>(weights, 3, image.data(), nullptr, 1, out.data(), 1).known);
  CHECK(std::all_of(out.begin(), out.end(), [](float v) { return v == 2; }));
  image[6] = std::numeric_limits<float>::max();
  CHECK(domain_transform<float>(weights, 3, image.data(), nullptr, 1, out.data(), 1).large);
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
    const Observed seen =
        splat_target(grid, target.data(), confidence.data(), 1, weight.data(), b.data(), 2);
    CHECK(seen.invalid == 500);
  }
}

template <std::size_t M, std::size_t N>
void test_merge(Random& random) {
  std::array<int, M> a;
  std::array<int, N> b;
  for (int& value : a) value = static_cast<int>(below(random, 9));
  for (int& value : b) value = static_cast<int>(below(random, 9));
  const auto all = merge(sort(a), sort(b));
  std::array<int, M + N> expected;
  std::copy(b.begin(), b.end(), std::copy(a.begin(), a.end(), expected.begin()));
  std::sort(expected.begin(), expected.end());
  CHECK(all == expected);
}

void test_networks(Random& random) {
  for (int i = 0; i < 200; ++i) {
    test_merge<1, 1>(random);
    test_merge<3, 1>(random);
    test_merge<2, 5>(random);
    test_merge<3, 3>(random);
    test_merge<6, 5>(random);
    test_merge<12, 13>(random);
  }
}

// A window's median, by sorting what is not NaN.
template <class T>
T middle(std::vector<T> values) {
  std::erase_if(values, [](T value) { return value != value; });
  if (values.empty()) return std::numeric_limits<T>::quiet_NaN();
  std::sort(values.begin(), values.end());
  const T low = values[(values.size() - 1) / 2], high = values[values.size() / 2];
  return static_cast<T>((low + high) / T{2});
}

template <class T>
void test_median(Random& random) {
  const std::size_t shapes[][3] = {{1, 1, 1}, {2, 1, 3}, {1, 7, 2}, {35, 33, 1}, {67, 150, 3}};
  for (const auto& [height, width, channels] : shapes)
    for (const std::size_t size : {3, 5})
      for (const std::size_t holes : {0, 1, 90}) {
        std::vector<T> image(height * width * channels), out(image.size());
        for (T& value : image) {
          value = static_cast<T>(below(random, 250));
          if (std::is_floating_point_v<T> && below(random, 100) < holes)
            value = std::numeric_limits<T>::quiet_NaN();
        }
        median(image.data(), height, width, channels, size, out.data(), 3);
        bool right = true;
        for (std::size_t i = 0; i < image.size(); ++i) {
          const std::size_t k = i % channels, x = i / channels % width, y = i / channels / width;
          std::vector<T> window;
          for (std::size_t j = 0; j < size * size; ++j) {
            const auto at = [&](std::size_t centre, std::size_t offset, std::size_t n) {
              return detail::mirrored(static_cast<std::ptrdiff_t>(centre + offset) -
                                          static_cast<std::ptrdiff_t>(size / 2),
                                      n);
            };
            const std::size_t from = at(y, j / size, height) * width + at(x, j % size, width);
            window.push_back(image[from * channels + k]);
          }
          const T expected = middle(window);
          right = right && (out[i] == expected || (out[i] != out[i] && expected != expected));
        }
        CHECK(right);
      }
}

// Random dots moved by a known disparity are found again, whatever the window and shape.
void test_block_matching(Random& random) {
  const std::size_t shapes[][2] = {{1, 1}, {1, 60}, {3, 2}, {60, 60}, {110, 45}};
  for (const auto& [height, width] : shapes)
    for (const std::size_t radius : {std::size_t{0}, std::size_t{3}, max_match_radius}) {
      const std::size_t shift = std::min<std::size_t>(7, width - 1);
      std::vector<float> left(height * width), right(left.size());
      for (std::size_t i = 0; i < left.size(); ++i)
        left[i] = right[i] = static_cast<float>(below(random, 256));
      for (std::size_t i = 0; i < left.size(); ++i)
        if (i % width >= shift) left[i] = right[i - shift];
      std::vector<float> found[4];
      for (auto& map : found) map.resize(left.size());
      const std::size_t disparities = std::min<std::size_t>(12, width);
      match_blocks({left.data(), right.data(), height, width, disparities, radius, 0.1f},
                   {found[0].data(), found[1].data(), found[2].data(), found[3].data()}, 3);
      bool ordered = true, right_place = true;
      for (std::size_t i = 0; i < left.size(); ++i) {
        ordered = ordered && found[0][i] <= found[2][i] && found[2][i] <= found[1][i];
        ordered = ordered && found[0][i] >= 0 && found[1][i] < static_cast<float>(disparities);
        const std::size_t x = i % width, edge = shift + 4 + radius;
        if (radius > 0 && x >= edge && x + 4 + radius < width)  // single pixels may tie
          right_place = right_place && found[2][i] == static_cast<float>(shift);
      }
      CHECK(ordered);
      CHECK(right_place);
    }
}

// Blurs give means, whatever the layers, and leave alone what is in focus.
void test_defocus(Random& random) {
  const std::size_t shapes[][2] = {{1, 1}, {1, 70}, {40, 1}, {70, 90}};
  const std::vector<double> radii{0, 1, 2.5, 6, 40};
  for (const auto& [height, width] : shapes)
    for (const int blades : {0, 3, 6}) {
      std::vector<float> image(height * width * 3), layers(height * width), out(image.size());
      for (float& value : image) value = static_cast<float>(below(random, 256));
      for (float& layer : layers) layer = static_cast<float>(below(random, 81)) / 10 - 4;
      defocus<3>({image.data(), layers.data(), height, width, 3}, radii, {blades, 0.3}, out.data(),
                 3);
      CHECK(
          std::all_of(out.begin(), out.end(), [](float v) { return v >= -0.01f && v < 255.01f; }));
      std::fill(layers.begin(), layers.end(), 0.0f);
      image.resize(height * width);
      out.resize(image.size());
      defocus<1>({image.data(), layers.data(), height, width, 1}, radii, {blades, 0}, out.data(),
                 2);
      CHECK(out == image);
    }
}

// A near pixel hides what falls on its column in the right view, for any team of threads.
void test_visible() {
  const std::size_t height = 300, width = 300;
  std::vector<float> surface(height * width, 2.0f);
  for (std::size_t y = 0; y < height; ++y)
    for (std::size_t x = 40; x < 50; ++x) surface[y * width + x] = 22.0f;
  const auto trusted = std::make_unique<bool[]>(height * width);
  const auto out = std::make_unique<bool[]>(height * width);
  std::fill_n(trusted.get(), height * width, true);
  for (const int threads : {1, 3}) {
    visible(surface.data(), surface.data(), trusted.get(), height, width, 1.0f, out.get(), threads);
    bool right = true;
    for (std::size_t y = 0; y < height; ++y)
      for (std::size_t x = 0; x < width; ++x) {
        const bool hidden = x < 2 || (x >= 20 && x <= 30);
        right = right && out[y * width + x] == !hidden;
      }
    CHECK(right);
  }
}

// Blobs of a few labels; -1 among them if `unknown`.
std::vector<std::int32_t> blobs(Random& random, std::size_t height, std::size_t width,
                                bool unknown) {
  std::vector<std::int32_t> labels(height * width, 0);
  for (int blob = 0; blob < 6; ++blob) {
    const std::size_t top = below(random, height), left = below(random, width);
    const std::size_t tall = 1 + below(random, height), wide = 1 + below(random, width);
    const auto label = static_cast<std::int32_t>(below(random, 4)) - (unknown ? 1 : 0);
    for (std::size_t y = top; y < std::min(top + tall, height); ++y)
      for (std::size_t x = left; x < std::min(left + wide, width); ++x)
        labels[y * width + x] = label;
  }
  return labels;
}

// Distances to the outlines and the largest of them nearby, one pixel after the other.
void test_relative_depth(Random& random) {
  for (const auto& [height, width] :
       {std::pair<std::size_t, std::size_t>{1, 1}, {1, 40}, {40, 1}, {37, 45}, {300, 260}})
    for (const std::size_t radius : {0, 1, 7}) {
      const auto labels = blobs(random, height, width, true);
      const auto at = [&](std::size_t y, std::size_t x) { return labels[y * width + x]; };
      std::vector<std::array<std::size_t, 2>> edges;
      for (std::size_t y = 0; y < height; ++y)
        for (std::size_t x = 0; x < width; ++x) {
          const auto differs = [&](std::size_t v, std::size_t u) {
            return at(v, u) >= 0 && at(y, x) >= 0 && at(v, u) != at(y, x);
          };
          if ((y > 0 && differs(y - 1, x)) || (y + 1 < height && differs(y + 1, x)) ||
              (x > 0 && differs(y, x - 1)) || (x + 1 < width && differs(y, x + 1)))
            edges.push_back({y, x});
        }
      const auto difference = [](std::size_t a, std::size_t b) {
        return static_cast<double>(a) - static_cast<double>(b);
      };
      const bool every = height * width < 2000;  // brute force
      std::vector<double> distance(height * width), thick(height * width);
      for (std::size_t i = 0; every && i < distance.size(); ++i) {
        distance[i] = std::numeric_limits<double>::infinity();
        for (const auto& [y, x] : edges)
          distance[i] = std::min(
              distance[i], std::hypot(difference(i / width, y), difference(i % width, x)) + 0.5);
      }
      const auto along = [&](std::vector<double> from, std::size_t step, std::size_t n) {
        std::vector<double> to = from;
        for (std::size_t i = 0; i < to.size(); ++i) {
          const std::size_t place = i / step % n;
          for (std::size_t k = 1; k <= std::min(radius, place); ++k) {
            if (labels[i - k * step] != labels[i]) break;
            to[i] = std::max(to[i], from[i - k * step]);
          }
          for (std::size_t k = 1; k <= radius && place + k < n; ++k) {
            if (labels[i + k * step] != labels[i]) break;
            to[i] = std::max(to[i], from[i + k * step]);
          }
        }
        return to;
      };
      thick = along(along(distance, 1, width), width, height);
      std::vector<float> first(height * width), out(height * width);
      label_depth(labels.data(), height, width, radius, first.data(), 1);
      label_depth(labels.data(), height, width, radius, out.data(), 3);
      CHECK(first == out);
      bool right = true;
      for (std::size_t i = 0; every && i < out.size(); ++i) {
        const double expected = std::isinf(distance[i]) ? 1 : distance[i] / thick[i];
        right = right && std::abs(static_cast<double>(out[i]) - expected) < 1e-5;
      }
      CHECK(right);
    }
}

void test_majority(Random& random) {
  for (const auto& [height, width] :
       {std::pair<std::size_t, std::size_t>{1, 1}, {1, 30}, {30, 1}, {31, 42}, {280, 260}})
    for (const std::size_t radius : {0, 1, 3}) {
      auto labels = blobs(random, height, width, false);
      for (auto& label : labels)
        if (below(random, 4) == 0) label = static_cast<std::int32_t>(below(random, 4));
      std::vector<std::int32_t> out(labels.size());
      majority(labels.data(), height, width, 4, radius, out.data(), 3);
      bool right = true;
      const auto r = static_cast<std::ptrdiff_t>(radius);
      const auto inside = [](std::size_t i, std::ptrdiff_t by, std::size_t n) {
        const auto moved = static_cast<std::ptrdiff_t>(i) + by;
        return static_cast<std::size_t>(
            std::clamp<std::ptrdiff_t>(moved, 0, static_cast<std::ptrdiff_t>(n) - 1));
      };
      for (std::size_t i = 0; i < out.size(); ++i) {
        std::array<std::ptrdiff_t, 4> count{};
        for (std::ptrdiff_t v = -r; v <= r; ++v)
          for (std::ptrdiff_t u = -r; u <= r; ++u) {
            const std::size_t y = inside(i / width, v, height), x = inside(i % width, u, width);
            ++count[static_cast<std::size_t>(labels[y * width + x])];
          }
        std::int32_t expected = labels[i];
        for (std::size_t k = 0; k < 4; ++k)
          if (2 * count[k] > (2 * r + 1) * (2 * r + 1)) expected = static_cast<std::int32_t>(k);
        right = right && out[i] == expected;
      }
      CHECK(right);
    }
}

void test_regions() {
  const std::vector<float> values = {1, 1, 5, 1,  //
                                     9, 1, 5, 1,  //
                                     1, 1, 1, 1};
  const bool mask[] = {true, true, true, true, true, true, true, true, true, false, true, true};
  std::vector<std::int32_t> labels(12);
  CHECK(find_regions(values.data(), mask, 3, 4, 0.5f, labels.data()) == 5);
  const std::vector<std::int32_t> expected = {1, 1, 2, 3, 4, 1, 2, 3, 5, 0, 3, 3};
  CHECK(labels == expected);
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
  test_splat_robust<float>(random);
  test_splat_robust<double>(random);
  test_domain_transform<float>(random);
  test_domain_transform<double>(random);
  test_domain_transform_without_data();
  test_networks(random);
  test_median<std::uint8_t>(random);
  test_median<std::uint16_t>(random);
  test_median<float>(random);
  test_median<double>(random);
  test_invalid_confidence(random);
  test_block_matching(random);
  test_defocus(random);
  test_visible();
  test_regions();
  test_relative_depth(random);
  test_majority(random);
  std::printf("%d passed, %d failed\n", checks - failures, failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
