// Solve a small symmetric positive definite system by Cholesky's method.
#pragma once

#include <cmath>
#include <cstddef>

namespace bilateral::detail {

// Solves (A + ridge diag A) x = b; A holds its upper triangle. Returns false, with no result, if
// the matrix is not positive definite or b is not finite.
template <std::size_t n>
bool solve_symmetric(const double (&A)[n][n], const double (&b)[n], double ridge, double (&x)[n]) {
  constexpr double tiny = 1e-9;  // for unknowns without any data
  double L[n][n];
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = A[j][i] + (i == j ? ridge * A[i][i] + tiny : 0);
      for (std::size_t k = 0; k < j; ++k) sum -= L[i][k] * L[j][k];
      if (i != j) {
        L[i][j] = sum / L[j][j];
      } else if (sum > 0 && std::isfinite(sum)) {
        L[i][i] = std::sqrt(sum);
      } else {
        return false;
      }
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    double sum = b[i];
    for (std::size_t k = 0; k < i; ++k) sum -= L[i][k] * x[k];
    x[i] = sum / L[i][i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) x[i] -= L[k][i] * x[k];
    x[i] /= L[i][i];
    if (!std::isfinite(x[i])) return false;
  }
  return true;
}

}  // namespace bilateral::detail
