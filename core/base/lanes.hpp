// SIMD vectors by the vector extension of GCC and Clang. A comparison gives -1 in each lane where
// it holds, and `mask ? a : b` selects by lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/multiversion.hpp"

namespace bilateral {

// A SIMD vector of N numbers of type T.
template <class T, std::size_t N>
struct LanesOf {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
};
template <class T, std::size_t N>
using Lanes = typename LanesOf<T, N>::type;

#pragma GCC diagnostic ignored "-Wpsabi"  // only inlined functions pass vectors

template <class V>
BILATERAL_INLINE V load_lanes(const void* from) {
  V value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class V>
BILATERAL_INLINE void store_lanes(void* to, V value) {
  std::memcpy(to, &value, sizeof value);
}

// Reduces the lanes to one number with f, by halving the vector repeatedly.
template <class T, std::size_t N, class F>
BILATERAL_INLINE T fold_lanes(Lanes<T, N> value, F f) {
  if constexpr (N == 2) {
    return f(value[0], value[1]);
  } else {
    const auto low = load_lanes<Lanes<T, N / 2>>(&value);
    const auto high = load_lanes<Lanes<T, N / 2>>(reinterpret_cast<const T*>(&value) + N / 2);
    return fold_lanes<T, N / 2>(f(low, high), f);
  }
}

// Writes a[0], b[0], a[1], b[1], ... to 2 N consecutive places.
template <class T, std::size_t N>
BILATERAL_INLINE void store_interleaved(T* to, Lanes<T, N> a, Lanes<T, N> b) {
  [&]<std::size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
    store_lanes(to, __builtin_shufflevector(a, b, (I / 2 + I % 2 * N)...));
    store_lanes(to + N, __builtin_shufflevector(a, b, (N / 2 + I / 2 + I % 2 * N)...));
  }(std::make_index_sequence<N>{});
}

// Repeats each lane of `value` K times (a, a, a, b, b, b, ...) and returns the M-th of the K
// resulting vectors.
template <class T, std::size_t N, std::size_t K, std::size_t M>
BILATERAL_INLINE Lanes<T, N> repeat_lanes(Lanes<T, N> value) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
    return __builtin_shufflevector(value, value, ((M * N + I) / K)...);
  }(std::make_index_sequence<N>{});
}

// Transposes N vectors of N lanes: swaps lane i of rows[j] with lane j of rows[i].
template <class T, std::size_t N, std::size_t Step = 1>
BILATERAL_INLINE void transpose_lanes(Lanes<T, N>* rows) {
  if constexpr (Step < N) {
    for (std::size_t i = 0; i < N; ++i) {
      if (i & Step) continue;
      const auto a = rows[i], b = rows[i + Step];
      [&]<std::size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
        rows[i] = __builtin_shufflevector(a, b, (I & Step ? N + I - Step : I)...);
        rows[i + Step] = __builtin_shufflevector(a, b, (I & Step ? N + I : I + Step)...);
      }(std::make_index_sequence<N>{});
    }
    transpose_lanes<T, N, 2 * Step>(rows);
  }
}

// Two float64 numbers.
using Pair = Lanes<double, 2>;
BILATERAL_INLINE Pair load_pair(const double* from) { return load_lanes<Pair>(from); }
BILATERAL_INLINE Pair load_pair(const float* from) {
#if defined(__SSE2__)
  return _mm_cvtps_pd(_mm_castpd_ps(_mm_load_sd(reinterpret_cast<const double*>(from))));
#else
  return Pair{static_cast<double>(from[0]), static_cast<double>(from[1])};
#endif
}

// Converts the lower or the upper two of four float32 numbers to float64.
BILATERAL_INLINE Pair load_pair_of(Lanes<float, 4> value, std::size_t upper) {
#if defined(__SSE2__)
  return _mm_cvtps_pd(upper ? _mm_movehl_ps(value, value) : value);
#else
  return Pair{static_cast<double>(value[2 * upper]), static_cast<double>(value[2 * upper + 1])};
#endif
}

inline constexpr auto lanes_least = [](auto a, auto b)
                                        __attribute__((always_inline)) { return a < b ? a : b; };
inline constexpr auto lanes_most = [](auto a, auto b)
                                       __attribute__((always_inline)) { return a > b ? a : b; };
inline constexpr auto lanes_sum = [](auto a, auto b)
                                      __attribute__((always_inline)) { return a + b; };

}  // namespace bilateral
