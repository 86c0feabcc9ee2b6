// Problems of the planar model, and slow versions of its operations: plain loops in float64 over
// pixels, vertices and edges.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "grid/bistochastize.hpp"
#include "grid/edges.hpp"
#include "grid/splat.hpp"
#include "multigrid/hierarchy.hpp"
#include "planes/fill.hpp"
#include "planes/geometry.hpp"
#include "planes/positions.hpp"
#include "planes/solver.hpp"
#include "planes/splat.hpp"
#include "tests/random_image.hpp"

namespace bilateral {

// Whether two lists of numbers differ by at most `tolerance` times the largest number.
inline bool close(const auto& one, const auto& other, double tolerance) {
  double largest = 0;
  for (std::size_t i = 0; i < other.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(other[i])));
  bool all = one.size() == other.size();
  for (std::size_t i = 0; all && i < one.size(); ++i)
    all = std::abs(static_cast<double>(one[i]) - static_cast<double>(other[i])) <=
          tolerance * largest;
  return all;
}

struct PlaneShape {
  std::size_t frames, height, width, noise;
  double sigma_xy, sigma_t, sigma;
};

// An image with a few bright spots, whose vertices are small components.
inline Image spotted_image(Random& random, const PlaneShape& s) {
  Image image(random, s.frames * s.height, s.width, 1, s.noise);
  for (std::size_t spot = 0; spot < 6 + image.pixels.size() / 600; ++spot) {
    constexpr std::size_t size = 8;  // several cells
    const std::size_t first = below(random, image.pixels.size() - size);
    const auto value = static_cast<std::uint8_t>(spot % 2 == 0 ? 200 : 250);
    std::fill_n(image.pixels.begin() + static_cast<std::ptrdiff_t>(first), size, value);
  }
  return image;
}

// A grid with everything that PlaneSolver needs.
template <class T, std::size_t D>
struct PlaneProblem {
  static constexpr std::size_t unknowns = D + 1, matrix = Planar<D>::matrix;

  PlaneShape shape;
  Grid grid;
  Buffer<T> n;
  Centres<D> centres;
  PlaneGeometry<T, D> geometry;
  Hierarchy<T> hierarchy;

  PlaneProblem(const Image& image, const PlaneShape& s, int threads)
      : shape(s),
        grid(make_grid(image, s.sigma_xy, s.sigma, threads, s.frames, s.sigma_t)),
        n(balance(grid, threads)),
        centres(grid, scale(s), threads),
        geometry(centres),
        hierarchy(grid, n.data(), {1.3, 100}, geometry, threads) {}
  PlaneProblem(Random& random, const PlaneShape& s)
      : PlaneProblem(spotted_image(random, s), s, 1) {}

  // The position of a pixel, in cells.
  Position<D> position(std::size_t pixel) const {
    Position<D> at;
    at[0] = static_cast<double>(pixel % shape.width) / shape.sigma_xy;
    at[1] = static_cast<double>(pixel / shape.width % shape.height) / shape.sigma_xy;
    if constexpr (D > 2)
      at[2] = static_cast<double>(pixel / shape.width / shape.height) / shape.sigma_t;
    return at;
  }

  std::vector<std::size_t> vertex_of_pixels() const {
    std::vector<double> number(grid.vertices), of(grid.pixels());
    for (std::size_t v = 0; v < grid.vertices; ++v) number[v] = static_cast<double>(v);
    slice(grid, number.data(), 1, of.data(), 1);
    return {of.begin(), of.end()};
  }

 private:
  static Buffer<T> balance(const Grid& grid, int threads) {
    Buffer<T> n(grid.vertices, T{1});
    bistochastize(grid, n, {sizeof(T) == 4 ? 2e-6 : 1e-13, -0.98}, threads);
    return n;
  }
  static Position<D> scale(const PlaneShape& shape) {
    Position<D> cells;
    cells.fill(1 / shape.sigma_xy);
    if constexpr (D > 2) cells[2] = 1 / shape.sigma_t;
    return cells;
  }
};

// A target and the result of its splat.
template <class T>
struct PlaneData {
  std::size_t channels;
  std::vector<T> target, confidence;  // `confidence` may be empty
  std::vector<T> moments, weighted;
  std::vector<double> origin;
  PlaneStats stats;

  template <std::size_t D>
  void splat(const PlaneProblem<T, D>& problem, int threads, bool centred = true) {
    const Grid& grid = problem.grid;
    moments.assign(grid.vertices * problem.matrix, T{-1});
    weighted.assign(grid.vertices * problem.unknowns * channels, T{-1});
    origin.assign(channels, -1.0);
    stats = splat_planes<D>(grid, problem.centres, target.data(),
                            confidence.empty() ? nullptr : confidence.data(), channels,
                            {moments.data(), weighted.data(), origin.data(), centred}, threads);
  }

  // The confidence of a pixel, or 0 if a channel is not finite.
  double weight(std::size_t pixel) const {
    for (std::size_t k = 0; k < channels; ++k)
      if (!std::isfinite(target[pixel * channels + k])) return 0;
    return confidence.empty() ? 1 : static_cast<double>(confidence[pixel]);
  }
};

inline PcgOptions plane_options(double smoothness, int steps, double tolerance) {
  PcgOptions options;
  options.smoothness = smoothness;
  options.max_iterations = steps;
  options.error_window = 256;
  options.tolerance = tolerance;
  return options;
}

// Centres of the vertices: D numbers each.
template <class T, std::size_t D>
std::vector<double> slow_centres(const PlaneProblem<T, D>& problem) {
  const std::vector<std::size_t> vertex = problem.vertex_of_pixels();
  std::vector<double> sum(problem.grid.vertices * D), count(problem.grid.vertices);
  for (std::size_t i = 0; i < vertex.size(); ++i) {
    ++count[vertex[i]];
    for (std::size_t d = 0; d < D; ++d) sum[vertex[i] * D + d] += problem.position(i)[d];
  }
  for (std::size_t j = 0; j < sum.size(); ++j) sum[j] /= count[j / D];
  return sum;
}

// The numbers (1, offset from the vertex's centre) of each pixel.
template <class T, std::size_t D>
std::vector<std::array<double, D + 1>> slow_rows(const PlaneProblem<T, D>& problem) {
  const std::vector<std::size_t> vertex = problem.vertex_of_pixels();
  const std::vector<double> centre = slow_centres(problem);
  std::vector<std::array<double, D + 1>> rows(vertex.size());
  for (std::size_t i = 0; i < vertex.size(); ++i) {
    rows[i][0] = 1;
    for (std::size_t d = 0; d < D; ++d)
      rows[i][d + 1] = problem.position(i)[d] - centre[vertex[i] * D + d];
  }
  return rows;
}

// The system A z = b of the whole grid; b has one column per channel.
class DenseSystem {
 public:
  template <class T, std::size_t D>
  DenseSystem(const PlaneProblem<T, D>& problem, const PlaneData<T>& data, double smoothness,
              const SlopeWeights& slopes)
      : size_(problem.grid.vertices * (D + 1)), columns_(size_ + data.channels) {
    matrix_.resize(size_ * columns_);
    constexpr std::size_t U = D + 1;
    const Grid& grid = problem.grid;
    const std::vector<double> centre = slow_centres(problem);
    const auto add_edge = [&](std::size_t u, std::size_t v, double w) {
      Term jump{{u * U, 1}, {v * U, -1}};
      for (std::size_t d = 0; d < D; ++d) {
        const double half = (centre[v * D + d] - centre[u * D + d]) / 2;
        jump.insert(jump.end(), {{u * U + d + 1, half}, {v * U + d + 1, half}});
        add({{u * U + d + 1, 1}, {v * U + d + 1, -1}}, smoothness * w * slopes.smoothness);
      }
      add(jump, smoothness * w);
    };
    for (std::size_t kind = 0; kind < edge_kinds; ++kind)
      for (std::size_t band = 0; band < grid.bands(); ++band)
        each_edge(grid, band, kind, [&](std::size_t, std::size_t u, std::size_t v, auto ends) {
          const double factor = kind == range_edges ? grid.range : grid.space;
          if constexpr (ends != Ends::only_b)
            add_edge(
                u, v,
                factor * static_cast<double>(problem.n[u]) * static_cast<double>(problem.n[v]));
        });
    for (std::size_t v = 0; v < grid.vertices; ++v)
      for (std::size_t d = 1; d < U; ++d)
        add({{v * U + d, 1}}, smoothness * slopes.ridge * static_cast<double>(grid.mass[v]));
    const std::vector<std::size_t> vertex = problem.vertex_of_pixels();
    const auto rows = slow_rows(problem);
    for (std::size_t i = 0; i < vertex.size(); ++i) {
      const double c = data.weight(i);
      if (!(c > 0)) continue;
      Term pixel;
      for (std::size_t a = 0; a < U; ++a) pixel.emplace_back(vertex[i] * U + a, rows[i][a]);
      add(pixel, c);
      for (std::size_t k = 0; k < data.channels; ++k)
        for (const auto& [at, factor] : pixel)
          matrix_[at * columns_ + size_ + k] +=
              c * factor *
              (static_cast<double>(data.target[i * data.channels + k]) - data.origin[k]);
    }
  }

  // Solves by Gaussian elimination for the vertices with `active` set; the others get 0. The matrix
  // is positive definite there, so no pivoting is needed.
  std::vector<double> solve(const std::vector<std::uint8_t>& active) {
    const std::size_t U = size_ / active.size();
    const auto row = [&](std::size_t i) { return matrix_.data() + i * columns_; };
    const auto used = [&](std::size_t i) { return active[i / U] != 0; };
    for (std::size_t j = 0; j < size_; ++j)
      for (std::size_t i = j + 1; used(j) && i < size_; ++i) {
        const double factor = row(i)[j] / row(j)[j];
        if (!used(i) || factor == 0) continue;
        for (std::size_t c = j; c < columns_; ++c) row(i)[c] -= factor * row(j)[c];
      }
    std::vector<double> x(size_ * (columns_ - size_));
    for (std::size_t k = 0; k < columns_ - size_; ++k)
      for (std::size_t i = size_; i-- > 0;) {
        if (!used(i)) continue;
        double sum = row(i)[size_ + k];
        for (std::size_t j = i + 1; j < size_; ++j) sum -= row(i)[j] * x[k * size_ + j];
        x[k * size_ + i] = sum / row(i)[i];
      }
    return x;
  }

 private:
  using Term = std::vector<std::pair<std::size_t, double>>;  // factors of unknowns

  // Adds weight (term . z)^2 to the energy.
  void add(const Term& term, double weight) {
    for (const auto& [i, a] : term)
      for (const auto& [j, b] : term) matrix_[i * columns_ + j] += weight * a * b;
  }

  std::size_t size_, columns_;
  std::vector<double> matrix_;  // A, then b, by rows
};

// Fills the planes of inactive vertices by comparing every vertex with every other.
template <class T, std::size_t D>
void slow_fill(const PlaneProblem<T, D>& problem, const std::vector<std::uint8_t>& active,
               double* planes) {
  constexpr std::size_t U = D + 1;
  const Grid& grid = problem.grid;
  const std::vector<double> centre = slow_centres(problem);
  std::vector<std::size_t> cell(grid.vertices);  // of each vertex on the current level
  std::vector<std::uint8_t> filled(active);
  for (std::size_t v = 0; v < grid.vertices; ++v) cell[v] = v;
  for (std::size_t v = 0; v < grid.vertices; ++v)
    if (!active[v]) std::fill_n(planes + v * U, U, 0.0);
  for (const Level& level : grid.levels) {
    for (std::size_t& c : cell) c = level.parent[c];
    for (std::size_t v = 0; v < grid.vertices; ++v) {
      if (filled[v]) continue;
      double mass = 0;
      std::array<double, U> mean{};
      Position<D> at{};
      for (std::size_t u = 0; u < grid.vertices; ++u) {
        if (!active[u] || cell[u] != cell[v]) continue;
        const auto m = static_cast<double>(grid.mass[u]);
        mass += m;
        for (std::size_t a = 0; a < U; ++a) mean[a] += m * planes[u * U + a];
        for (std::size_t d = 0; d < D; ++d) at[d] += m * centre[u * D + d];
      }
      if (mass == 0) continue;
      filled[v] = 1;
      for (std::size_t a = 0; a < U; ++a) planes[v * U + a] = mean[a] / mass;
      for (std::size_t d = 0; d < D; ++d)
        planes[v * U] += mean[d + 1] / mass * (centre[v * D + d] - at[d] / mass);
    }
  }
}

}  // namespace bilateral
