// Tests of the planar model for one precision and number of axes. Each instance is compiled in a
// file of its own: the solver's inlined loops take long to compile under a sanitizer.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "planes/probes.hpp"
#include "solve/components.hpp"
#include "tests/check.hpp"
#include "tests/failing_memory.hpp"
#include "tests/planes/plane_problem.hpp"

namespace bilateral {

template <class T, std::size_t D>
class PlaneTests {
 public:
  explicit PlaneTests(Random& random) : random_(random) {}

  void run() {
    test_splat();
    test_slice();
    test_fill();
    test_solve();
    test_grid_alone();
    test_affine();
    test_threads();
    test_without_memory();
  }

 private:
  using Problem = PlaneProblem<T, D>;
  static constexpr std::size_t U = D + 1;
  static constexpr double rounding = sizeof(T) == 4 ? 2e-6 : 1e-12;

  // Some 100 vertices: one large component, small ones and isolated vertices.
  static PlaneShape small() {
    if constexpr (D == 2) return {1, 22, 25, 40, 5, 1, 20};
    return {4, 9, 15, 40, 5, 1.5, 20};
  }
  // Enough vertices for several threads in every stage.
  static PlaneShape large() {
    if constexpr (D == 2) return {1, 300, 450, 40, 8, 1, 10};
    return {9, 100, 150, 40, 6, 2, 10};
  }

  T uniform() { return std::uniform_real_distribution<T>(0, 1)(random_); }

  // A random target of which one pixel in `every` is known.
  PlaneData<T> random_data(const Problem& problem, std::size_t channels, std::size_t every) {
    PlaneData<T> data{channels, {}, {}, {}, {}, {}, {}};
    for (std::size_t i = 0; i < problem.grid.pixels() * channels; ++i)
      data.target.push_back(T{3} + uniform());
    for (std::size_t i = 0; i < problem.grid.pixels(); ++i)
      data.confidence.push_back(below(random_, every) == 0 ? T(0.5) + uniform() : T{0});
    return data;
  }

  void test_splat() {
    const Problem problem(random_, small());
    const Grid& grid = problem.grid;
    const auto rows = slow_rows(problem);
    const auto vertex = problem.vertex_of_pixels();
    CHECK(close(problem.centres.position, slow_centres(problem), 1e-13));
    for (const std::size_t channels : {1u, 3u})
      for (const bool centred : {true, false}) {
        PlaneData<T> data = random_data(problem, channels, 2);
        data.target[5 * channels] = std::numeric_limits<T>::quiet_NaN();
        data.target[7 * channels] = -std::numeric_limits<T>::infinity();
        if (centred) data.confidence.clear();
        data.splat(problem, 1, centred);
        std::vector<double> moments(data.moments.size()), weighted(data.weighted.size());
        std::vector<double> low(channels, 9), high(channels, -9);
        double confidence = 0;
        std::size_t known = 0;
        for (std::size_t i = 0; i < vertex.size(); ++i) {
          const double c = data.weight(i);
          known += c > 0;
          confidence += c;
          for (std::size_t a = 0; a < U; ++a)
            for (std::size_t b = 0; b <= a; ++b)
              moments[vertex[i] * problem.matrix + triangle(a, b)] += c * rows[i][a] * rows[i][b];
          for (std::size_t k = 0; k < channels && c > 0; ++k) {
            const auto t = static_cast<double>(data.target[i * channels + k]);
            low[k] = std::min(low[k], t);
            high[k] = std::max(high[k], t);
            for (std::size_t a = 0; a < U; ++a)
              weighted[(k * grid.vertices + vertex[i]) * U + a] +=
                  c * rows[i][a] * (t - data.origin[k]);
          }
        }
        CHECK(close(data.moments, moments, rounding));
        CHECK(close(data.weighted, weighted, rounding));
        CHECK(data.stats.known == known && data.stats.invalid == InputStats::none);
        CHECK(data.stats.low == low && data.stats.high == high);
        CHECK(std::abs(data.stats.confidence - confidence) < 1e-10 * confidence);
        for (std::size_t k = 0; k < channels; ++k)
          CHECK(std::abs(data.origin[k] - (centred ? (low[k] + high[k]) / 2 : 0)) < 1e-12);
      }
    PlaneData<T> data = random_data(problem, 1, 1);
    data.confidence[9] = T{-1};
    data.confidence[4] = std::numeric_limits<T>::quiet_NaN();
    data.splat(problem, 1);
    CHECK(data.stats.invalid == 4);
  }

  void test_slice() {
    const Problem problem(random_, small());
    const Grid& grid = problem.grid;
    const auto rows = slow_rows(problem);
    const auto vertex = problem.vertex_of_pixels();
    constexpr std::size_t channels = 2;
    std::vector<T> planes(channels * grid.vertices * U), pixels(channels * grid.pixels());
    for (T& number : planes) number = uniform();
    const std::vector<double> origin{0.5, -2}, low{0.75, -9}, high{1.25, 9};
    slice_planes<D>(grid, problem.centres, planes.data(), channels, origin.data(), low.data(),
                    high.data(), pixels.data(), 1);
    std::vector<double> expected;
    std::size_t clamped = 0;
    for (std::size_t i = 0; i < vertex.size(); ++i)
      for (std::size_t k = 0; k < channels; ++k) {
        const T* plane = planes.data() + (k * grid.vertices + vertex[i]) * U;
        double value = origin[k];
        for (std::size_t a = 0; a < U; ++a) value += static_cast<double>(plane[a]) * rows[i][a];
        expected.push_back(std::clamp(value, low[k], high[k]));
        clamped += expected.back() != value;
      }
    CHECK(close(pixels, expected, rounding));
    CHECK(clamped > 0 && clamped < vertex.size());
  }

  void test_fill() {
    const Problem problem(random_, small());
    const std::size_t vertices = problem.grid.vertices;
    for (const std::size_t every : {2u, 20u}) {
      std::vector<std::uint8_t> active(vertices);
      for (auto& flag : active) flag = below(random_, every) == 0;
      active[0] = 1;
      std::vector<T> planes(vertices * U), other(vertices * U);
      for (T& number : planes) number = uniform();
      for (T& number : other) number = uniform();
      std::vector<T> filled(planes), back(other);
      std::vector<double> expected(planes.begin(), planes.end());
      const PlaneFill<D> fill(problem.grid, problem.centres, active.data());
      fill.fill(filled.data());
      slow_fill(problem, active, expected.data());
      CHECK(close(filled, expected, rounding));
      fill.fill_transposed(back.data());
      // <fill(planes), other> = <planes, transpose(other)>, with planes = 0 where it is inactive.
      double one = 0, two = 0;
      for (std::size_t i = 0; i < planes.size(); ++i) {
        one += static_cast<double>(filled[i]) * static_cast<double>(other[i]);
        two += static_cast<double>(planes[i]) * static_cast<double>(back[i]);
        CHECK(active[i / U] || back[i] == T{0});
      }
      CHECK(std::abs(one - two) < 10 * rounding * std::abs(one));
    }
  }

  // Against the dense system, with parts without data, small parts, and large ones.
  void test_solve() {
    const Problem problem(random_, small());
    const Grid& grid = problem.grid;
    const Components components = find_components(grid);
    std::vector<std::size_t> size(components.count);
    for (const auto c : components.of) ++size[c];
    const auto vertex = problem.vertex_of_pixels();
    PlaneData<T> data = random_data(problem, 2, 3);
    for (std::size_t i = 0; i < vertex.size(); ++i)
      if (components.of[vertex[i]] % 4 == 3) data.confidence[i] = T{0};
    data.splat(problem, 1);
    const SlopeWeights slopes{3, 1e-2};
    const std::vector<double> scale(2, 1.0);
    const std::size_t numbers = grid.vertices * U;
    PlaneSolver<T, D> solver(grid, problem.centres, problem.hierarchy, problem.geometry, slopes, 1);
    const auto solve = [&](bool nested, int steps) {
      std::vector<T> x(2 * numbers, T{7});
      const PcgResult result =
          solver.solve(data.moments.data(), data.weighted.data(), 2, scale.data(), x.data(), nested,
                       plane_options(2, steps, rounding / 100));
      CHECK(!result.diverged && (steps == 0 || result.residuals.back() < 10 * rounding));
      return x;
    };
    const std::vector<T> x = solve(true, 100), warm = solve(false, 100), direct = solve(false, 0);
    std::vector<double> expected = DenseSystem(problem, data, 2, slopes).solve(solver.active());
    std::size_t joined = 0, gaps = 0, others = 0;
    std::vector<double> exact, found;
    for (std::size_t i = 0; i < 2 * numbers; ++i) {
      const std::size_t v = i / U % grid.vertices;
      const bool is_small = size[components.of[v]] <= SmallParts<T, D>::most_vertices;
      const bool active = solver.active()[v];
      gaps += !active;
      others += active && !is_small;
      joined += active && is_small && size[components.of[v]] > 1;
      if (active && is_small) {
        exact.push_back(expected[i]);
        found.push_back(static_cast<double>(direct[i]));
      }
      CHECK(!active || is_small || direct[i] == T{7});
    }
    CHECK(gaps > 0 && joined > 0 && others > 0);
    CHECK(close(found, exact, 10 * rounding));
    for (std::size_t k = 0; k < 2; ++k)
      slow_fill(problem, solver.active(), expected.data() + k * numbers);
    CHECK(close(x, expected, 30 * rounding));
    CHECK(close(warm, expected, 30 * rounding));
  }

  // A hierarchy of the grid alone: sweeps and steps lead to the same solution.
  void test_grid_alone() {
    const Problem problem(random_, small());
    const Grid& grid = problem.grid;
    PlaneGeometry<T, D> geometry(problem.centres);
    const Hierarchy<T> hierarchy(grid, problem.n.data(), {1.3, 100}, geometry, 1, 0);
    CHECK(hierarchy.depth() == 0 && hierarchy.fine.entry.size() > 0);
    PlaneData<T> data = random_data(problem, 2, 1);
    const SlopeWeights slopes{3, 1e-2};
    const std::vector<double> scale(2, 1.0);
    for (const bool gaps : {false, true}) {
      if (gaps) std::fill_n(data.confidence.begin(), data.confidence.size() / 2, T{0});
      data.splat(problem, 1);
      std::vector<std::vector<T>> results;
      for (const int threads : {1, 3}) {
        PlaneSolver<T, D> solver(grid, problem.centres, hierarchy, geometry, slopes, threads);
        std::vector<T> x(2 * grid.vertices * U);
        const PcgResult result =
            solver.solve(data.moments.data(), data.weighted.data(), 2, scale.data(), x.data(), true,
                         plane_options(2, 300, rounding / 100));
        CHECK(result.converged && !result.diverged);
        std::vector<double> expected = DenseSystem(problem, data, 2, slopes).solve(solver.active());
        for (std::size_t k = 0; k < 2; ++k)
          slow_fill(problem, solver.active(), expected.data() + k * grid.vertices * U);
        CHECK(close(x, expected, 30 * rounding));
        results.push_back(std::move(x));
      }
      CHECK(results[0] == results[1]);
    }
  }

  // An affine target, without a ridge: every pixel gets its value, whether its part has enough
  // data, too little for its slopes, or none. float32 does not resolve the planes of parts with
  // little data.
  void test_affine() {
    PlaneShape loose = small();
    loose.noise = 250;
    loose.sigma = 3;
    for (const auto& [shape, every] :
         {std::pair{small(), 1u}, {small(), 2u}, {small(), 30u}, {loose, 20u}}) {
      const Problem problem(random_, shape);
      PlaneData<T> data = random_data(problem, 1, every);
      for (std::size_t i = 0; i < problem.grid.pixels(); ++i) {
        double value = 2;
        for (std::size_t d = 0; d < D; ++d)
          value += (0.2 - 0.3 * static_cast<double>(d)) * problem.position(i)[d];
        data.target[i] = static_cast<T>(value);
      }
      CHECK(close(solve_pixels(problem, data, {3, 0}, 1, 200), data.target, 1e-4));
      if (sizeof(T) == 4) break;
    }
  }

  // Splats, solves and slices, without a clamp.
  std::vector<T> solve_pixels(const Problem& problem, PlaneData<T>& data,
                              const SlopeWeights& slopes, int threads, int steps) const {
    const Grid& grid = problem.grid;
    data.splat(problem, threads);
    std::vector<T> x(data.weighted.size()), pixels(data.target.size());
    const std::vector<double> scale(data.channels, 1.0);
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const std::vector<double> low(data.channels, -infinity), high(data.channels, infinity);
    PlaneSolver<T, D>(grid, problem.centres, problem.hierarchy, problem.geometry, slopes, threads)
        .solve(data.moments.data(), data.weighted.data(), data.channels, scale.data(), x.data(),
               true, plane_options(2, steps, 0));
    slice_planes<D>(grid, problem.centres, x.data(), data.channels, data.origin.data(), low.data(),
                    high.data(), pixels.data(), threads);
    return pixels;
  }

  void test_threads() {
    const PlaneShape shape = large();
    const Image image = spotted_image(random_, shape);
    std::vector<std::vector<T>> results;
    PlaneData<T> data;
    for (const int threads : {1, 2, 5}) {
      const Problem problem(image, shape, threads);
      const Grid& grid = problem.grid;
      CHECK(grid.vertices > 5 * 4096);
      if (data.target.empty()) data = random_data(problem, 1, 9);
      std::vector<T> result = solve_pixels(problem, data, {3, 0}, threads, 3);
      result.resize(grid.pixels() + grid.vertices * U);
      draw_plane_probes<D>(grid, problem.centres, problem.n.data(), data.moments.data(), 2,
                           {3, 1e-3}, 1, 1, result.data() + grid.pixels(), threads);
      results.push_back(std::move(result));
    }
    CHECK(results[0] == results[1]);
    CHECK(results[0] == results[2]);
  }

  void test_without_memory() {
    PlaneShape shape = large();
    shape.sigma_xy *= 1.5;
    const Problem problem(spotted_image(random_, shape), shape, 2);
    PlaneData<T> data = random_data(problem, 1, 50);
    check_without_memory(6, [&] {
      const Centres<D> centres(problem.grid, problem.centres.inverse, 2);
      PlaneGeometry<T, D> geometry(centres);
      const Hierarchy<T> hierarchy(problem.grid, problem.n.data(), {1.3, 100}, geometry, 2);
      return solve_pixels(problem, data, {3, 0}, 2, 2);
    });
  }

  Random& random_;
};

template <class T, std::size_t D>
void test_plane_model(Random& random) {
  PlaneTests<T, D>(random).run();
}

}  // namespace bilateral
