// Plane diagonals: the blocks on the diagonal of the planar matrices, one per row and level. They
// depend on smoothness, slope weights and confidence.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/threads.hpp"
#include "multigrid/diagonals.hpp"
#include "multigrid/plane_rows.hpp"

namespace bilateral {

// A symmetric matrix of the unknowns of a row.
template <std::size_t D>
using PlaneMatrix = std::array<double, Planar<D>::matrix>;

// Adds a plane's data term to that of another centre: `offset` leads from there to the plane's.
template <std::size_t D>
void add_moved(PlaneMatrix<D>& to, const PlaneMatrix<D>& from,
               const std::array<double, D>& offset) {
  to[0] += from[0];
  for (std::size_t a = 0; a < D; ++a) {
    to[triangle(a + 1, 0)] += from[triangle(a + 1, 0)] + offset[a] * from[0];
    for (std::size_t b = 0; b <= a; ++b)
      to[triangle(a + 1, b + 1)] +=
          from[triangle(a + 1, b + 1)] + offset[a] * from[triangle(b + 1, 0)] +
          offset[b] * from[triangle(a + 1, 0)] + offset[a] * offset[b] * from[0];
  }
}

// Returns the Cholesky factor of a positive semi-definite matrix. The column of an unknown that the
// matrix does not determine, up to rounding, is 0.
template <std::size_t D>
PlaneMatrix<D> plane_factor(const PlaneMatrix<D>& matrix) {
  constexpr double least = 1e-12;  // of a pivot, relative to its diagonal entry
  PlaneMatrix<D> factor{};
  for (std::size_t i = 0; i <= D; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = matrix[triangle(i, j)];
      for (std::size_t k = 0; k < j; ++k) sum -= factor[triangle(i, k)] * factor[triangle(j, k)];
      const double pivot = factor[triangle(j, j)];
      if (j < i)
        factor[triangle(i, j)] = pivot > 0 ? sum / pivot : 0;
      else if (sum > least * matrix[triangle(i, i)])
        factor[triangle(i, i)] = std::sqrt(sum);
    }
  return factor;
}

// Inverts a positive semi-definite matrix. An unknown that it does not determine gets zeros.
template <std::size_t D>
PlaneMatrix<D> inverse_plane(const PlaneMatrix<D>& matrix) {
  constexpr std::size_t U = D + 1;
  const PlaneMatrix<D> factor = plane_factor<D>(matrix);
  std::array<std::array<double, U>, U> lower{};  // the inverse of the factor
  for (std::size_t j = 0; j < U; ++j)
    for (std::size_t i = j; i < U; ++i) {
      double sum = i == j ? 1 : 0;
      for (std::size_t k = j; k < i; ++k) sum -= factor[triangle(i, k)] * lower[k][j];
      const double pivot = factor[triangle(i, i)];
      lower[i][j] = pivot > 0 ? sum / pivot : 0;
    }
  PlaneMatrix<D> inverse{};
  for (std::size_t i = 0; i < U; ++i)
    for (std::size_t j = 0; j <= i; ++j)
      for (std::size_t k = i; k < U; ++k) inverse[triangle(i, j)] += lower[k][i] * lower[k][j];
  return inverse;
}

// Has the interface of Diagonals. The data term of a row includes the ridge.
template <class T, std::size_t D>
class PlaneDiagonals {
 public:
  explicit PlaneDiagonals(const Levels<T, Planar<D>>& levels)
      : levels_(levels), hierarchy_(levels.hierarchy) {
    for (std::size_t k = 0; k <= hierarchy_.depth(); ++k) {
      weight_.push_back(level_vector<T>(graph(k).rows, numbers));
      inverse_.push_back(level_vector<T>(graph(k).rows, numbers));
    }
  }

  // Planes represent smooth errors well on any level: unlike constants, they need no other
  // smoothness there.
  T smoothness(std::size_t) const { return static_cast<T>(smoothness_); }
  const T* weight(std::size_t level) const { return weight_[level].data(); }
  const T* inverse(std::size_t level) const { return inverse_[level].data(); }

  // Takes the moments of the confidences, Planar<D>::matrix numbers per vertex.
  void set(const T* moments, double smoothness) {
    moments_ = moments;
    smoothness_ = smoothness;
    stale_ = true;
  }

  bool take_stale() { return std::exchange(stale_, false); }

  // Computes all blocks. All threads of a team call this together; it ends with a barrier.
  void refresh(const Worker& worker) {
    for (std::size_t k = 0; k <= hierarchy_.depth(); ++k) {
      const Slices slices(0, graph(k).rows, worker);
      for (std::size_t row = slices.begin * slice_rows; row < slices.end * slice_rows; ++row) {
        const PlaneMatrix<D> data = k == 0 ? of_vertex(row) : of_members(k, row);
        write(weight_[k], row, data);
        write(inverse_[k], row, inverse_plane<D>(with_smoothness(k, row, data)));
      }
      worker.barrier.wait();
    }
  }

 private:
  static constexpr std::size_t numbers = Planar<D>::matrix;

  const Graph<T>& graph(std::size_t level) const {
    return level == 0 ? hierarchy_.fine : hierarchy_.coarse[level - 1];
  }

  static std::size_t place(std::size_t row, std::size_t number) {
    return row / slice_rows * (slice_rows * numbers) + number * slice_rows + row % slice_rows;
  }
  static PlaneMatrix<D> read(const Buffer<T>& from, std::size_t row) {
    PlaneMatrix<D> matrix;
    for (std::size_t i = 0; i < numbers; ++i) matrix[i] = static_cast<double>(from[place(row, i)]);
    return matrix;
  }
  static void write(Buffer<T>& to, std::size_t row, const PlaneMatrix<D>& matrix) {
    for (std::size_t i = 0; i < numbers; ++i) to[place(row, i)] = static_cast<T>(matrix[i]);
  }

  PlaneMatrix<D> of_vertex(std::size_t row) const {
    PlaneMatrix<D> matrix{};
    const std::size_t v = hierarchy_.fine.vertex[row];
    if (v == nowhere) return matrix;
    for (std::size_t i = 0; i < numbers; ++i)
      matrix[i] = static_cast<double>(moments_[v * numbers + i]);
    const double ridge = smoothness_ * levels_.slopes.ridge *
                         static_cast<double>(levels_.geometry.levels[0].mass[row]);
    for (std::size_t d = 1; d <= D; ++d) matrix[triangle(d, d)] += ridge;
    return matrix;
  }

  PlaneMatrix<D> of_members(std::size_t k, std::size_t row) const {
    PlaneMatrix<D> sum{};
    const Columns& members = hierarchy_.transfers[k - 1].members;
    const Buffer<T>& lift = levels_.geometry.levels[k - 1].lift;
    const std::size_t s = row / slice_rows, fine_rows = graph(k - 1).rows;
    for (std::size_t c = members.first[s]; c < members.first[s + 1]; ++c) {
      const std::size_t i = members.to[c * slice_rows + row % slice_rows];
      if (i >= fine_rows) continue;
      std::array<double, D> offset;
      for (std::size_t d = 0; d < D; ++d)
        offset[d] = static_cast<double>(
            lift[i / slice_rows * (slice_rows * D) + d * slice_rows + i % slice_rows]);
      add_moved<D>(sum, read(weight_[k - 1], i), offset);
    }
    return sum;
  }

  PlaneMatrix<D> with_smoothness(std::size_t k, std::size_t row, PlaneMatrix<D> matrix) const {
    const auto lambda = static_cast<double>(smoothness(k));
    const PlaneLevel<T, D>& level = levels_.geometry.levels[k];
    const PlaneMatrix<D> stiff = read(level.stiffness, row);
    for (std::size_t i = 0; i < numbers; ++i) matrix[i] += lambda * stiff[i];
    for (std::size_t d = 1; d <= D; ++d)
      matrix[triangle(d, d)] += lambda * levels_.slopes.smoothness * stiff[0];
    return matrix;
  }

  Levels<T, Planar<D>> levels_;
  const Hierarchy<T>& hierarchy_;
  const T* moments_ = nullptr;
  double smoothness_ = 0;
  bool stale_ = false;
  std::vector<Buffer<T>> weight_, inverse_;
};

template <class T, std::size_t D>
struct DiagonalsFor<T, Planar<D>> {
  using type = PlaneDiagonals<T, D>;
};

}  // namespace bilateral
