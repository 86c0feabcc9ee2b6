// Test the solver with the paper's preconditioner, and the splat with robust weights.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "grid/bistochastize.hpp"
#include "grid/pyramid_transfer.hpp"
#include "grid/splat.hpp"
#include "solve/lowrank.hpp"
#include "solve/robust.hpp"
#include "solve/system.hpp"
#include "tests/check.hpp"
#include "tests/failing_memory.hpp"
#include "tests/random_image.hpp"

namespace bilateral {

namespace {

// Solves with the pyramid start and the pyramid preconditioner. Returns the sliced solution.
template <class T>
std::vector<T> solve(const Grid& grid, const std::vector<T>& target,
                     const std::vector<T>& confidence, std::size_t channels, int threads,
                     int steps) {
  Buffer<T> n(grid.vertices, T{1});
  bistochastize(grid, n, {sizeof(T) == 4 ? 2e-6 : 1e-12, -0.98}, threads);
  std::vector<T> weight(grid.vertices), b(grid.vertices * channels), x(b.size());
  const InputStats stats = splat_target(grid, target.data(), confidence.data(), channels,
                                        weight.data(), b.data(), threads);
  CHECK(stats.invalid == InputStats::none);
  pyramid_start(grid, weight.data(), b.data(), channels, x.data(), threads);
  PcgOptions options;
  options.smoothness = 4;
  options.max_iterations = steps;
  options.error_window = 256;
  options.tolerance = 0;
  const std::vector<double> scale(channels, 1.0);
  SystemSolver<T>(grid, n.data(), Preconditioning::pyramid, threads)
      .solve(weight.data(), b.data(), channels, scale.data(), x.data(), true, options);
  std::vector<T> out(grid.pixels() * channels);
  slice(grid, x.data(), channels, out.data(), threads);
  return out;
}

template <class T>
void test_pyramid(Random& random) {
  std::uniform_real_distribution<T> uniform(0, 1);
  for (const std::size_t channels : {1u, 2u, 4u, 9u}) {
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

// Weights of a robust loss may be denormal: their inverse may be infinite.
template <class T>
void test_denormal_weights(Random& random) {
  const Image image(random, 40, 50, 3, 255);
  const Grid grid = make_grid(image, 8, 2, 3);
  Buffer<T> n(grid.vertices, T{1});
  bistochastize(grid, n, {sizeof(T) == 4 ? 2e-6 : 1e-12, -0.98}, 1);
  const T tiny = std::numeric_limits<T>::denorm_min() * 12;
  std::vector<T> weight(grid.vertices), b(grid.vertices);
  for (T& w : weight) w = below(random, 2) == 0 ? T{1} : tiny;
  for (std::size_t v = 0; v < grid.vertices; ++v) b[v] = weight[v] * T{3};
  for (const auto kind : {Preconditioning::jacobi, Preconditioning::pyramid}) {
    std::vector<T> x(grid.vertices, T{1000});
    PcgOptions options;
    options.smoothness = 4;
    options.max_iterations = 1;
    const double scale = 1;
    SystemSolver<T>(grid, n.data(), kind, 1)
        .solve(weight.data(), b.data(), 1, &scale, x.data(), false, options);
    CHECK(std::all_of(x.begin(), x.end(), [](T value) { return std::isfinite(value); }));
  }
}

// Compares the splat with robust weights with a plain sum over all pixels.
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
  for (const std::size_t channels : {1u, 3u}) {
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
      splat_robust(samples, loss, y.data(), w.data(), wt.data(), 2);
      const auto near = [](double a, T b) {
        return std::abs(a - static_cast<double>(b)) <= 1e-5 * (1 + std::abs(a));
      };
      CHECK(std::equal(sums.begin(), sums.end(), w.begin(), near));
      CHECK(std::equal(weighted.begin(), weighted.end(), wt.begin(), near));
    }
  }
}

// The number of pixels that samples have memory for.
template <class T>
std::size_t room_of(const Samples<T>& samples) {
  constexpr std::size_t width = Samples<T>::width;
  std::size_t room = 0;
  for (std::size_t r = 0; r < samples.grid().rows(); ++r) {
    const auto row = samples.row(r);
    const std::size_t chunks = (row.vertices + width - 1) / width;
    room += std::accumulate(row.steps, row.steps + chunks, std::size_t{0}) * width;
  }
  return room;
}

// Another thread may change a target while its pixels are collected: more or fewer pixels are known
// than were counted.
template <class T>
void test_changed_target(Random& random) {
  for (const std::size_t channels : {1u, 3u}) {
    const Image image(random, 61, 83, 1, 50);
    const Grid grid = make_grid(image, 16, 8, 2);
    std::vector<T> full(grid.pixels() * channels, T{1}), sparse(full), y(grid.vertices * channels);
    for (T& t : sparse)
      if (below(random, 9) > 0) t = std::numeric_limits<T>::quiet_NaN();
    const std::size_t few = Samples<T>(grid, sparse.data(), channels, 2).known();
    CHECK(few > 0 && few < grid.pixels());
    for (const auto& [counted, copied] : {std::pair(&sparse, &full), std::pair(&full, &sparse)}) {
      const Samples<T> samples(grid, counted->data(), copied->data(), channels, 2);
      CHECK(samples.known() >= few && samples.known() <= room_of(samples));
      std::vector<T> weight(grid.vertices), weighted(y.size());
      splat_robust(samples, Loss{}, y.data(), weight.data(), weighted.data(), 2);
      const double total = std::accumulate(weight.begin(), weight.end(), 0.0);
      CHECK(total > 0 && total <= static_cast<double>(samples.known()));
      CHECK(std::all_of(weighted.begin(), weighted.end(), [](T v) { return std::isfinite(v); }));
    }
  }
}

// A solver serves again after a failed solve. The next solve has the same smoothness: it must not
// find conductances of the smoothness before.
void test_solver_without_memory(const LargeProblem& problem) {
  const Grid& grid = problem.grid;
  Buffer<float> n(grid.vertices, 1.0f);
  bistochastize(grid, n, {1e-5, -0.98}, 4);
  std::vector<float> weight(grid.vertices), b(grid.vertices);
  splat_target(grid, problem.target.data(), static_cast<const float*>(nullptr), 1, weight.data(),
               b.data(), 4);
  SystemSolver<float> solver(grid, n.data(), Preconditioning::pyramid, 4);
  PcgOptions options;
  options.max_iterations = 4;
  options.error_window = 256;
  const double scale = 255;
  std::size_t last = 0;
  check_without_memory(80, [&] {
    std::array<std::vector<float>, 2> x;
    for (const std::size_t which : {last, 1 - last}) {
      last = which;
      x[which].assign(grid.vertices, 100.0f);
      options.smoothness = which == 0 ? 1 : 4;
      solver.solve(weight.data(), b.data(), 1, &scale, x[which].data(), true, options);
    }
    return x;
  });
}

void test_sums_without_memory(const LargeProblem& problem) {
  const Grid& grid = problem.grid;
  const std::vector<float>& target = problem.target;
  check_without_memory(24, [&] {
    std::vector<float> weight(grid.vertices), b(grid.vertices), x(grid.vertices, 99.0f);
    splat_target(grid, target.data(), static_cast<const float*>(nullptr), 1, weight.data(),
                 b.data(), 4);
    const Samples<float> samples(grid, target.data(), 1, 4);
    splat_robust(samples, Loss{}, x.data(), weight.data(), b.data(), 4);
    pyramid_start(grid, weight.data(), b.data(), 1, x.data(), 4);
    return x;
  });
  check_without_memory(12, [&] {
    const std::size_t channels = 3, vertices = target.size() / channels;
    const std::vector<float> weight(vertices, 1.0f);
    std::vector<double> mean(channels), covariance(channels * channels);
    channel_covariance(weight.data(), target.data(), vertices, channels, mean.data(),
                       covariance.data(), 4);
    return mean;
  });
}

}  // namespace

void test_solve(Random& random) {
  test_pyramid<float>(random);
  test_pyramid<double>(random);
  test_denormal_weights<float>(random);
  test_denormal_weights<double>(random);
  test_splat_robust<float>(random);
  test_splat_robust<double>(random);
  test_changed_target<float>(random);
  test_changed_target<double>(random);
  const LargeProblem problem(random, 4);
  test_solver_without_memory(problem);
  test_sums_without_memory(problem);
}

}  // namespace bilateral
