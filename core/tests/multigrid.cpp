// Test the multigrid hierarchy: its components, and solves for any number of threads.
#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "grid/bistochastize.hpp"
#include "multigrid/hierarchy.hpp"
#include "multigrid/nested_start.hpp"
#include "solve/components.hpp"
#include "solve/system.hpp"
#include "tests/check.hpp"
#include "tests/failing_memory.hpp"
#include "tests/random_image.hpp"

namespace bilateral {

namespace {

// Solves with multigrid from the nested start. Returns the solution at the vertices.
template <class T>
std::vector<T> solve_multigrid(const Grid& grid, const Hierarchy<T>& multigrid,
                               const std::vector<T>& weight, const std::vector<T>& b,
                               std::size_t channels, int threads, int steps) {
  std::vector<T> x(b.size());
  nested_start(multigrid, grid.vertices, weight.data(), b.data(), channels, 4.0, x.data(), threads);
  PcgOptions options;
  options.smoothness = 4;
  options.max_iterations = steps;
  options.error_window = 256;
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
void test_solves(Random& random) {
  struct Case {
    std::size_t height, width, channels, noise;
    double sigma_xy, sigma;
  };
  const Case cases[] = {{1, 1, 1, 9, 8, 8},      {1, 2, 1, 1, 1, 8},       {1, 300, 1, 200, 3, 4},
                        {37, 1, 3, 40, 2.5, 8},  {40, 50, 3, 250, 1, 2},   {150, 170, 3, 50, 2, 8},
                        {64, 64, 3, 250, 64, 2}, {30, 30, 3, 250, 4, 1e-4}};
  std::uniform_real_distribution<T> uniform(0, 1);
  for (const Case& c : cases)
    for (const std::size_t channels : {1u, 3u, 9u}) {
      const Grid grid =
          make_grid(Image(random, c.height, c.width, c.channels, c.noise), c.sigma_xy, c.sigma, 3);
      Buffer<T> n(grid.vertices, T{1});
      bistochastize(grid, n, {sizeof(T) == 4 ? 2e-6 : 1e-12, -0.98}, 3);
      std::vector<T> weight(grid.vertices), b(grid.vertices * channels);
      for (std::size_t v = 0; v < grid.vertices; ++v) {
        weight[v] = below(random, 3) == 0 || v == 0 ? uniform(random) : T{0};
        for (std::size_t k = 0; k < channels; ++k)
          b[v * channels + k] = weight[v] * uniform(random);
      }
      const Hierarchy<T> multigrid(grid, n.data(), {1.3, 100}, 1);
      CHECK(same_parts(find_components(grid), find_components(grid, multigrid)));
      const auto x = solve_multigrid(grid, multigrid, weight, b, channels, 1, 12);
      CHECK(std::all_of(x.begin(), x.end(), [](T v) { return v > T(-0.01) && v < T(1.01); }));
      for (const int threads : {2, 5}) {
        const Hierarchy<T> again(grid, n.data(), {1.3, 100}, threads);
        CHECK(x == solve_multigrid(grid, again, weight, b, channels, threads, 12));
      }
    }
}

// Weights that are 0 in float32 only: such an edge must not lead to a row without an aggregate.
void test_tiny_weights(Random& random) {
  Grid grid = make_grid(Image(random, 30, 40, 3, 250), 5, 40, 2);
  for (const double space : {1e-44, 1e-100, 1e-300}) {
    grid.space = space;
    Buffer<double> n(grid.vertices, 1.0);
    bistochastize(grid, n, {1e-12, -0.98}, 2);
    const Hierarchy<double> multigrid(grid, n.data(), {1.3, 100}, 2);
    for (const Graph<double>& graph : multigrid.coarse)
      CHECK(std::all_of(graph.entry.to.data(), graph.entry.to.data() + graph.entry.size(),
                        [&](std::uint32_t to) { return to < graph.rows; }));
  }
}

void test_without_memory(Random& random) {
  const LargeProblem problem(random, 4);
  const Grid& grid = problem.grid;
  Buffer<float> n(grid.vertices, 1.0f);
  bistochastize(grid, n, {1e-5, -0.98}, 4);
  const std::vector<float> weight(grid.vertices, 1.0f), b(grid.vertices, 2.0f);
  check_without_memory(24, [&] {
    const Hierarchy<float> multigrid(grid, n.data(), {1.3, 100}, 4);
    return solve_multigrid(grid, multigrid, weight, b, 1, 4, 3);
  });
}

}  // namespace

void test_multigrid(Random& random) {
  test_tiny_weights(random);
  test_solves<float>(random);
  test_solves<double>(random);
  test_without_memory(random);
}

}  // namespace bilateral
