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

#include "base/lanes.hpp"
#include "base/threads.hpp"
#include "multigrid/diagonals.hpp"
#include "multigrid/plane_rows.hpp"

namespace bilateral {

// A symmetric matrix of the unknowns of a row: of one row, or of several at once.
template <std::size_t D, class Number = double>
using PlaneMatrix = std::array<Number, Planar<D>::matrix>;

// Adds a plane's data term to that of another centre: `offset` leads from there to the plane's.
template <std::size_t D, class Number>
BILATERAL_INLINE void add_moved(PlaneMatrix<D, Number>& to, const PlaneMatrix<D, Number>& from,
                                const std::array<Number, D>& offset) {
  to[0] += from[0];
  for (std::size_t a = 0; a < D; ++a) {
    const Number moved = from[triangle(a + 1, 0)] + offset[a] * from[0];
    to[triangle(a + 1, 0)] += moved;
    for (std::size_t b = 0; b <= a; ++b)
      to[triangle(a + 1, b + 1)] +=
          from[triangle(a + 1, b + 1)] + offset[a] * from[triangle(b + 1, 0)] + offset[b] * moved;
  }
}

// The factors of a positive semi-definite matrix L diag(d) L^T, with ones on the diagonal of L. An
// unknown that the matrix does not determine, up to rounding, has d = 0 and a column of zeros.
template <std::size_t D, class Number>
struct PlaneFactors {
  PlaneMatrix<D, Number> lower{};
  std::array<Number, D + 1> diagonal{}, inverse{};  // d, and 1 / d or 0

  explicit BILATERAL_INLINE PlaneFactors(const PlaneMatrix<D, Number>& matrix) {
    const Number none{}, one = none + 1.0;
    constexpr double least = 1e-12;  // of a pivot, relative to its diagonal entry
    for (std::size_t j = 0; j <= D; ++j) {
      Number pivot = matrix[triangle(j, j)];
      for (std::size_t k = 0; k < j; ++k)
        pivot -= lower[triangle(j, k)] * lower[triangle(j, k)] * diagonal[k];
      const auto counts = pivot > least * matrix[triangle(j, j)];
      diagonal[j] = counts ? pivot : none;
      inverse[j] = counts ? one / pivot : none;
      for (std::size_t i = j + 1; i <= D; ++i) {
        Number sum = matrix[triangle(i, j)];
        for (std::size_t k = 0; k < j; ++k)
          sum -= lower[triangle(i, k)] * lower[triangle(j, k)] * diagonal[k];
        lower[triangle(i, j)] = sum * inverse[j];
      }
    }
  }
};

// Inverts a positive semi-definite matrix. An unknown that it does not determine gets zeros.
template <std::size_t D, class Number>
BILATERAL_INLINE PlaneMatrix<D, Number> inverse_plane(const PlaneMatrix<D, Number>& matrix) {
  const PlaneFactors<D, Number> factors(matrix);
  std::array<std::array<Number, D + 1>, D + 1> lower{};  // the inverse of L below its diagonal
  for (std::size_t j = 0; j <= D; ++j)
    for (std::size_t i = j + 1; i <= D; ++i) {
      lower[i][j] -= factors.lower[triangle(i, j)];
      for (std::size_t k = j + 1; k < i; ++k)
        lower[i][j] -= factors.lower[triangle(i, k)] * lower[k][j];
    }
  PlaneMatrix<D, Number> inverse{};
  for (std::size_t i = 0; i <= D; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      Number sum = i == j ? factors.inverse[i] : factors.inverse[i] * lower[i][j];
      for (std::size_t k = i + 1; k <= D; ++k)
        sum += factors.inverse[k] * lower[k][i] * lower[k][j];
      inverse[triangle(i, j)] = sum;
    }
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
      for (std::size_t s = slices.begin; s < slices.end; ++s) {
        Matrix data = k == 0 ? of_vertices(s) : of_members(k, s);
        write(weight_[k], s, data);
        add_smoothness(k, s, data);
        write(inverse_[k], s, inverse_plane<D, Number>(data));
      }
      worker.barrier.wait();
    }
  }

 private:
  static constexpr std::size_t numbers = Planar<D>::matrix;
  using Number = Lanes<double, slice_rows>;  // one number of each row of a slice
  using Matrix = PlaneMatrix<D, Number>;

  const Graph<T>& graph(std::size_t level) const {
    return level == 0 ? hierarchy_.fine : hierarchy_.coarse[level - 1];
  }

  // The number of pixels of each row of a slice of the grid.
  BILATERAL_INLINE Number mass_of(std::size_t slice) const {
    const T* from =
        levels_.geometry.pixel_moments.data() + slice * slice_rows * (1 + Planar<D>::slope_matrix);
    Number number;
    for (std::size_t lane = 0; lane < slice_rows; ++lane)
      number[lane] = static_cast<double>(from[lane]);
    return number;
  }
  static BILATERAL_INLINE void write(Buffer<T>& to, std::size_t slice, const Matrix& matrix) {
    for (std::size_t i = 0; i < numbers; ++i)
      for (std::size_t lane = 0; lane < slice_rows; ++lane)
        to[(slice * numbers + i) * slice_rows + lane] = static_cast<T>(matrix[i][lane]);
  }

  BILATERAL_INLINE Matrix of_vertices(std::size_t s) const {
    Matrix matrix{};
    for (std::size_t lane = 0; lane < slice_rows; ++lane)
      if (const std::size_t v = hierarchy_.fine.vertex[s * slice_rows + lane]; v != nowhere)
        for (std::size_t i = 0; i < numbers; ++i)
          matrix[i][lane] = static_cast<double>(moments_[v * numbers + i]);
    const Number ridge = smoothness_ * levels_.slopes.ridge * mass_of(s);
    for (std::size_t d = 1; d <= D; ++d) matrix[triangle(d, d)] += ridge;
    return matrix;
  }

  BILATERAL_INLINE Matrix of_members(std::size_t k, std::size_t s) const {
    Matrix sum{};
    const Columns& members = hierarchy_.transfers[k - 1].members;
    const T* lift = levels_.geometry.levels[k - 1].lift.data();
    const T* weight = weight_[k - 1].data();
    for (std::size_t c = members.first[s]; c < members.first[s + 1]; ++c) {
      Matrix data;
      std::array<Number, D> offset;
      for (std::size_t lane = 0; lane < slice_rows; ++lane) {
        const std::size_t i = members.to[c * slice_rows + lane];
        for (std::size_t n = 0; n < numbers; ++n)
          data[n][lane] = static_cast<double>(weight[in_groups(i, numbers, n)]);
        for (std::size_t d = 0; d < D; ++d)
          offset[d][lane] = static_cast<double>(lift[in_groups(i, D, d)]);
      }
      add_moved<D, Number>(sum, data, offset);
    }
    return sum;
  }

  // Adds lambda times the smoothness term's block: the sum over the columns of
  // w ((1, near) (1, near)^T + slope smoothness + spread), the last two for the slopes.
  BILATERAL_INLINE void add_smoothness(std::size_t k, std::size_t s, Matrix& matrix) const {
    using Part = Wide<T, slice_rows>;
    const Graph<T>& graph = this->graph(k);
    const PlaneLevel<T, D>& level = levels_.geometry.levels[k];
    const auto get = [](const Buffer<T>& from, std::size_t group) __attribute__((always_inline)) {
      return bilateral::get<slice_rows>(from.data() + group * slice_rows);
    };
    std::array<Part, numbers> sum{};
    Part turn{};
    for (std::size_t c = graph.entry.first[s]; c < graph.entry.first[s + 1]; ++c) {
      const Part w = get(graph.weight, c);
      sum[0] += w;
      for (std::size_t a = 0; a < D; ++a) {
        const Part force = w * get(level.near, c * D + a);
        sum[triangle(a + 1, 0)] += force;
        for (std::size_t b = 0; b <= a; ++b)
          sum[triangle(a + 1, b + 1)] += force * get(level.near, c * D + b);
      }
      if (k > 0) turn += w * get(level.spread, c);
    }
    turn += static_cast<T>(levels_.slopes.smoothness) * sum[0];
    for (std::size_t d = 1; d <= D; ++d) sum[triangle(d, d)] += turn;
    const auto lambda = static_cast<double>(smoothness(k));
    for (std::size_t i = 0; i < numbers; ++i) {
      std::array<T, slice_rows> lanes;
      put<slice_rows>(lanes.data(), sum[i]);
      for (std::size_t lane = 0; lane < slice_rows; ++lane)
        matrix[i][lane] += lambda * static_cast<double>(lanes[lane]);
    }
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
