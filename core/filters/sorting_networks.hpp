// Sorting networks over lanes, by Batcher's odd-even merge. If only a part of a result is used, the
// compiler removes the comparisons that only the other parts need.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "base/lanes.hpp"
#include "base/multiversion.hpp"

namespace bilateral {

// Calls f(0), f(1), ..., f(N - 1) with compile-time constants.
template <std::size_t N, class F>
BILATERAL_INLINE void unroll(F f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
    (f(std::integral_constant<std::size_t, I>{}), ...);
  }(std::make_index_sequence<N>{});
}

// Minimum and maximum, each written so that it compiles to one instruction. The result for 0 and -0
// is either of them; NaN is not allowed.
template <class V>
BILATERAL_INLINE V lower(V a, V b) {
  return a < b ? a : b;
}
template <class V>
BILATERAL_INLINE V upper(V a, V b) {
  return b < a ? a : b;
}

// Returns `count` values from `first` on, `stride` apart.
template <std::size_t first, std::size_t count, std::size_t stride = 1, class V, std::size_t N>
BILATERAL_INLINE std::array<V, count> part(const std::array<V, N>& values) {
  std::array<V, count> chosen;
  unroll<count>([&](auto i)
                    __attribute__((always_inline)) { chosen[i] = values[first + stride * i]; });
  return chosen;
}

// Merges two ascending sequences.
template <class V, std::size_t M, std::size_t N>
BILATERAL_INLINE std::array<V, M + N> merge(const std::array<V, M>& a, const std::array<V, N>& b) {
  if constexpr (M == 0) {
    return b;
  } else if constexpr (N == 0) {
    return a;
  } else if constexpr (M == 1 && N == 1) {
    return {lower(a[0], b[0]), upper(a[0], b[0])};
  } else {
    constexpr std::size_t odd = M / 2 + N / 2, even = M + N - odd;
    const auto evens = merge(part<0, M - M / 2, 2>(a), part<0, N - N / 2, 2>(b));
    const auto odds = merge(part<1, M / 2, 2>(a), part<1, N / 2, 2>(b));
    std::array<V, M + N> merged;
    merged[0] = evens[0];
    unroll<(odd < even ? odd : even - 1)>([&](auto i) __attribute__((always_inline)) {
      merged[2 * i + 1] = lower(odds[i], evens[i + 1]);
      merged[2 * i + 2] = upper(odds[i], evens[i + 1]);
    });
    if constexpr (odd == even) merged[M + N - 1] = odds[odd - 1];
    if constexpr (odd + 2 == even) merged[M + N - 1] = evens[even - 1];
    return merged;
  }
}

template <class V, std::size_t N>
BILATERAL_INLINE std::array<V, N> sort(const std::array<V, N>& values) {
  if constexpr (N <= 1)
    return values;
  else
    return merge(sort(part<0, N / 2>(values)), sort(part<N / 2, N - N / 2>(values)));
}

}  // namespace bilateral
