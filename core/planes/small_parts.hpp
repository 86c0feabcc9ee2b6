// Solve the small components of a planar system directly.
//
// A component of a few vertices with a few known pixels may have a plane that its data hardly
// determine. Conjugate gradients would spend steps on each such plane, for a handful of pixels.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/threads.hpp"
#include "planes/diagonals.hpp"
#include "solve/components.hpp"

namespace bilateral {

template <class T, std::size_t D>
class SmallParts {
 public:
  static constexpr std::size_t most_vertices = 16;

  SmallParts(const Levels<T, Planar<D>>& levels, const Components& components) : levels_(levels) {
    const GridGraph<T>& graph = levels.hierarchy.fine;
    std::vector<std::uint32_t> next(components.count, 0);  // size, then place of the next row
    for (const std::uint32_t c : components.of) ++next[c];
    std::uint32_t total = 0;
    for (std::uint32_t& place : next) {
      const std::uint32_t size = std::exchange(place, nowhere);
      if (size == 0 || size > most_vertices) continue;  // padding of a level counts as a component
      first_.push_back(place = total);
      total += size;
    }
    first_.push_back(total);
    rows_.resize(total);
    for (std::size_t row = 0; row < graph.rows; ++row) {
      if (graph.vertex[row] == nowhere) continue;
      std::uint32_t& place = next[components.of[graph.vertex[row]]];
      if (place != nowhere) rows_[place++] = static_cast<std::uint32_t>(row);
    }
  }

  // Solves the small components with data, for all channels, and clears `active` there. A component
  // whose matrix is singular, up to rounding, stays active. Returns the sum of the squares of the
  // changes of x over the pixels, per channel.
  std::vector<double> solve(const Grid& grid, const T* moments, const T* weighted,
                            std::size_t channels, double smoothness, T* x,
                            std::vector<std::uint8_t>& active, int threads) const {
    const std::size_t parts = first_.size() - 1;
    const GridGraph<T>& graph = levels_.hierarchy.fine;
    std::vector<double> moved(parts * channels, 0.0);
    const int team = team_size(threads, parts, 64);
    std::vector<Factor> factors(static_cast<std::size_t>(team));
    parallel_for(team, parts, [&](std::size_t p, std::size_t rank) {
      const Part part{rows_.data() + first_[p], rows_.data() + first_[p + 1]};
      Factor& factor = factors[rank];
      if (!active[graph.vertex[part[0]]] || !factor_matrix(part, moments, smoothness, factor))
        return;
      for (std::size_t k = 0; k < channels; ++k)
        moved[p * channels + k] =
            substitute(grid, part, factor, weighted + k * grid.vertices * unknowns,
                       x + k * grid.vertices * unknowns);
      for (const std::uint32_t row : part) active[graph.vertex[row]] = 0;
    });
    std::vector<double> total(channels, 0.0);
    for (std::size_t i = 0; i < moved.size(); ++i) total[i % channels] += moved[i];
    return total;
  }

 private:
  static constexpr std::size_t unknowns = D + 1;
  static constexpr std::size_t most_unknowns = most_vertices * unknowns;
  using Part = std::span<const std::uint32_t>;  // the rows of a component, ascending

  // The Cholesky factor of one component's matrix: its lower triangle by rows.
  using Factor = std::array<double, most_unknowns*(most_unknowns + 1) / 2>;

  // Assembles and factors the matrix of a component. Returns whether it is regular.
  bool factor_matrix(Part part, const T* moments, double smoothness, Factor& factor) const {
    const std::size_t n = part.size() * unknowns;
    std::fill_n(factor.begin(), triangle(n, 0), 0.0);
    for (std::size_t i = 0; i < part.size(); ++i) add_row(part, i, moments, smoothness, factor);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j <= i; ++j) {
        double sum = factor[triangle(i, j)];
        const double own = sum;
        for (std::size_t k = 0; k < j; ++k) sum -= factor[triangle(i, k)] * factor[triangle(j, k)];
        if (j < i)
          factor[triangle(i, j)] = sum / factor[triangle(j, j)];
        else if (sum > 1e-12 * own)
          factor[triangle(i, i)] = std::sqrt(sum);
        else
          return false;
      }
    return true;
  }

  void add_row(Part part, std::size_t i, const T* moments, double smoothness,
               Factor& factor) const {
    const GridGraph<T>& graph = levels_.hierarchy.fine;
    const PlaneLevel<T, D>& plane = levels_.geometry.levels[0];
    const std::size_t row = part[i], s = row / slice_rows, lane = row % slice_rows;
    const std::size_t v = graph.vertex[row];
    const T* mass = levels_.geometry.pixel_moments.data();
    const double ridge = smoothness * levels_.slopes.ridge *
                         static_cast<double>(mass[in_groups(row, 1 + Planar<D>::slope_matrix, 0)]);
    const auto at = [&](std::size_t a, std::size_t j, std::size_t b) -> double& {
      return factor[triangle(i * unknowns + a, j * unknowns + b)];
    };
    for (std::size_t a = 0; a < unknowns; ++a)
      for (std::size_t b = 0; b <= a; ++b)
        at(a, i, b) += static_cast<double>(moments[v * Planar<D>::matrix + triangle(a, b)]) +
                       (a == b && a > 0 ? ridge : 0);
    for (std::size_t c = graph.entry.first[s]; c < graph.entry.first[s + 1]; ++c) {
      const double w = smoothness * static_cast<double>(graph.weight[c * slice_rows + lane]);
      if (!(w > 0)) continue;
      const auto neighbour =
          std::find(part.begin(), part.end(), graph.entry.to[c * slice_rows + lane]);
      const auto j = static_cast<std::size_t>(neighbour - part.begin());
      std::array<double, unknowns> near, far;  // the meeting point, from both centres
      near[0] = far[0] = 1;
      for (std::size_t d = 0; d < D; ++d) {
        near[d + 1] = static_cast<double>(plane.near[(c * D + d) * slice_rows + lane]);
        far[d + 1] = -near[d + 1];
      }
      for (std::size_t a = 0; a < unknowns; ++a) {
        const double turn = a > 0 ? w * levels_.slopes.smoothness : 0;
        for (std::size_t b = 0; b <= a; ++b)
          at(a, i, b) += w * near[a] * near[b] + (a == b ? turn : 0);
        for (std::size_t b = 0; b < unknowns && j < i; ++b)
          at(a, j, b) -= w * near[a] * far[b] + (a == b ? turn : 0);
      }
    }
  }

  // Solves for one channel with the factor. Returns the sum of the squares of the changes.
  double substitute(const Grid& grid, Part part, const Factor& factor, const T* b, T* x) const {
    const std::size_t n = part.size() * unknowns;
    const auto vertex = [&](std::size_t i) {
      return std::size_t{levels_.hierarchy.fine.vertex[part[i / unknowns]]};
    };
    std::array<double, most_unknowns> y;
    for (std::size_t i = 0; i < n; ++i) {
      double sum = static_cast<double>(b[vertex(i) * unknowns + i % unknowns]);
      for (std::size_t k = 0; k < i; ++k) sum -= factor[triangle(i, k)] * y[k];
      y[i] = sum / factor[triangle(i, i)];
    }
    for (std::size_t i = n; i-- > 0;) {
      y[i] /= factor[triangle(i, i)];
      for (std::size_t k = 0; k < i; ++k) y[k] -= factor[triangle(i, k)] * y[i];
    }
    double moved = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t v = vertex(i);
      T& value = x[v * unknowns + i % unknowns];
      const double change = y[i] - static_cast<double>(value);
      if (i % unknowns == 0) moved += static_cast<double>(grid.mass[v]) * change * change;
      value = static_cast<T>(y[i]);
    }
    return moved;
  }

  Levels<T, Planar<D>> levels_;
  std::vector<std::uint32_t> rows_;   // of all small components, one after another
  std::vector<std::uint32_t> first_;  // place of each component's first row, then the end
};

}  // namespace bilateral
