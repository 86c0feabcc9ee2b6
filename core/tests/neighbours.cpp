// Test the table of neighbours: sums over neighbours against sums over edges.
#include "grid/neighbours.hpp"

#include <cmath>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "base/avx512.hpp"
#include "grid/bistochastize.hpp"
#include "grid/edges.hpp"
#include "grid/laplacian.hpp"
#include "tests/check.hpp"
#include "tests/random_image.hpp"

namespace bilateral {

namespace {

std::vector<float> random_numbers(Random& random, std::size_t count) {
  std::vector<float> numbers(count);
  for (float& number : numbers) number = 0.5f + static_cast<float>(below(random, 1000)) / 1000;
  return numbers;
}

bool are_close(const std::vector<float>& values, const std::vector<double>& expected) {
  bool close = true;
  for (std::size_t i = 0; i < expected.size(); ++i)
    close = close && std::abs(values[i] - expected[i]) <= 1e-5 * (1 + std::abs(expected[i]));
  return close;
}

// B-bar v and A v, where A has the smoothness 3 and the given weights.
void test_sums(const Grid& grid, Random& random) {
  constexpr double smoothness = 3;
  const auto v = random_numbers(random, grid.vertices), n = random_numbers(random, grid.vertices),
             weight = random_numbers(random, grid.vertices);
  std::vector<double> blurred(v.begin(), v.end()), product(grid.vertices), diagonal(grid.vertices);
  for (std::size_t i = 0; i < grid.vertices; ++i) {
    blurred[i] *= grid.centre;
    diagonal[i] = weight[i];
    product[i] = double{weight[i]} * v[i];
  }
  for (std::size_t kind = 0; kind < edge_kinds; ++kind)
    for (std::size_t band = 0; band < grid.bands(); ++band)
      each_edge(grid, band, kind, [&](std::size_t, std::size_t a, std::size_t b, auto ends) {
        if constexpr (ends == Ends::only_b) return;
        const double between = kind == range_edges ? grid.range : grid.space;
        blurred[a] += between * v[b];
        blurred[b] += between * v[a];
        const double conductance = smoothness * between * n[a] * n[b];
        diagonal[a] += conductance;
        diagonal[b] += conductance;
        product[a] += conductance * (double{v[a]} - v[b]);
        product[b] -= conductance * (double{v[a]} - v[b]);
      });
  std::vector<float> result(grid.vertices);
  blur(grid, v.data(), 1, result.data(), 2);
  CHECK(are_close(result, blurred));
  Laplacian<float> A(grid, n.data(), 1);
  CHECK(A.set(weight.data(), smoothness));
  for (std::size_t band = 0; band < grid.bands(); ++band) A.prepare(band);
  for (std::size_t band = 0; band < grid.bands(); ++band) A.sum_degrees(band);
  for (std::size_t band = 0; band < grid.bands(); ++band)
    A.multiply<1>(band, v.data(), result.data());
  CHECK(are_close(result, product));
  const std::vector<float> ones(grid.vertices, 1);  // A 1 = weight, without rounding
  for (std::size_t band = 0; band < grid.bands(); ++band)
    A.multiply<1>(band, ones.data(), result.data());
  CHECK(result == weight);
  for (std::size_t band = 0; band < grid.bands(); ++band) A.diagonal(band, result.data());
  CHECK(are_close(result, diagonal));
}

bool expects_table() {
#if defined(__x86_64__)
  return detail::use_avx512;
#else
  return false;
#endif
}

}  // namespace

void test_neighbours(Random& random) {
  struct Case {
    std::size_t height, width, channels, noise;
    double sigma_xy, sigma;
  };
  const Case cases[] = {{4, 9, 1, 200, 2, 8},   {37, 1, 3, 40, 2.5, 8},  {60, 70, 3, 30, 8, 8},
                        {90, 90, 1, 250, 4, 5}, {64, 64, 3, 250, 64, 2}, {120, 150, 3, 90, 8, 20},
                        {30, 40, 8, 90, 4, 60}, {50, 50, 0, 1, 4, 8},    {365, 365, 3, 60, 8, 12}};
  std::size_t far = 0;  // neighbours outside the windows
  for (const Case& c : cases) {
    const Image image(random, c.height, c.width, c.channels, c.noise);
    Grid grid = make_grid(image, c.sigma_xy, c.sigma, 2);
    test_sums(grid, random);
    detail::find_neighbours(grid, 2, 1e9);
    CHECK(grid.neighbours.empty() != (expects_table() && grid.vertices >= NeighbourBlock::window));
    far += grid.neighbours.far.size();
    test_sums(grid, random);
    grid.neighbours = {};
    test_sums(grid, random);
  }
  CHECK((far > 100) == expects_table());
  const Image video(random, 200, 40, 1, 250);
  CHECK(make_grid(video, 2, 30, 2, 5, 0.6).neighbours.empty());  // has edges along t
}

}  // namespace bilateral
