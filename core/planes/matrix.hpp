// Small symmetric matrices of the unknowns of one plane: move, factor and invert them.
#pragma once

#include <array>
#include <cstddef>

#include "base/multiversion.hpp"
#include "multigrid/model.hpp"

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

}  // namespace bilateral
