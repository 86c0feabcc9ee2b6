// Loops of the solver over one-channel vectors, compiled for several instruction sets. Sums are
// float64 in eight lanes for every instruction set, so that all machines get the same results.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/multiversion.hpp"

namespace bilateral {

namespace detail {

// Adds f(i) for i in [0, n) in eight interleaved sums, so that the result does not depend on the
// width of the machine's SIMD registers.
template <class F>
BILATERAL_INLINE double eight_sums(std::size_t n, F f) {
  double sums[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (std::size_t k = 0; k < 8; ++k) sums[k] += static_cast<double>(f(i + k));
  for (; i < n; ++i) sums[i % 8] += static_cast<double>(f(i));
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

template <class T>
BILATERAL_INLINE double dot_body(const T* __restrict a, const T* __restrict b, std::size_t n) {
  return eight_sums(n, [=](std::size_t i) __attribute__((always_inline)) { return a[i] * b[i]; });
}

template <class T>
BILATERAL_INLINE double weighted_square_body(const T* __restrict a, const float* __restrict w,
                                             std::size_t n) {
  return eight_sums(n, [=](std::size_t i) __attribute__((always_inline)) {
    return static_cast<T>(w[i]) * a[i] * a[i];
  });
}

// x += step d, r -= step q; returns r^T (inverse r).
template <class T>
BILATERAL_INLINE double descend_body(T step, const T* __restrict d, const T* __restrict q,
                                     const T* __restrict inverse, T* __restrict x, T* __restrict r,
                                     std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) x[i] += step * d[i];
  return eight_sums(n, [=](std::size_t i) __attribute__((always_inline)) {
    const T residual = r[i] - step * q[i];
    r[i] = residual;
    return residual * (inverse[i] * residual);
  });
}

// d = inverse r + z[parent] + beta d; z may be null.
template <class T>
BILATERAL_INLINE void turn_body(T beta, const T* __restrict inverse, const T* __restrict r,
                                const T* __restrict z, const std::uint32_t* __restrict parent,
                                T* __restrict d, std::size_t n) {
  if (z) {
    for (std::size_t i = 0; i < n; ++i) d[i] = inverse[i] * r[i] + z[parent[i]] + beta * d[i];
  } else {
    for (std::size_t i = 0; i < n; ++i) d[i] = inverse[i] * r[i] + beta * d[i];
  }
}

// One step of the bistochastization in log n. `change` holds the last change of log n and receives
// the new one. Returns whether the row sum of some vertex was wrong by more than `tolerance`. log r
// is approximated by 2 (r - 1) / (r + 1), and exp accordingly: accurate near 1, safe everywhere.
template <class T>
BILATERAL_INLINE bool bistochastize_step_body(T* __restrict n, T* __restrict change,
                                              const T* __restrict blurred,
                                              const float* __restrict mass, std::size_t count,
                                              T gain, T momentum, T tolerance) {
  unsigned outside = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const T sum = n[i] * blurred[i], m = static_cast<T>(mass[i]);
    const T error = 2 * (m - sum) / (m + sum);
    outside |= (error > tolerance) | (error < -tolerance);
    T move = gain * error + momentum * change[i];
    move = move < T{-1} ? T{-1} : move;
    move = move > T{1} ? T{1} : move;
    change[i] = move;
    n[i] *= (2 + move) / (2 - move);
  }
  return outside != 0;
}

template <class T>
double dot(const T* a, const T* b, std::size_t n) {
  return multiversion<dot_body<T>>(a, b, n);
}

template <class T>
double weighted_square(const T* a, const float* w, std::size_t n) {
  return multiversion<weighted_square_body<T>>(a, w, n);
}

template <class T>
double descend(T step, const T* d, const T* q, const T* inverse, T* x, T* r, std::size_t n) {
  return multiversion<descend_body<T>>(step, d, q, inverse, x, r, n);
}

template <class T>
void turn(T beta, const T* inverse, const T* r, const T* z, const std::uint32_t* parent, T* d,
          std::size_t n) {
  multiversion<turn_body<T>>(beta, inverse, r, z, parent, d, n);
}

template <class T>
bool bistochastize_step(T* n, T* change, const T* blurred, const float* mass, std::size_t count,
                        T gain, T momentum, T tolerance) {
  return widest_version<bistochastize_step_body<T>>(n, change, blurred, mass, count, gain, momentum,
                                                    tolerance);
}

}  // namespace detail

}  // namespace bilateral
