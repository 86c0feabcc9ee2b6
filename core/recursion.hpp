// The recursive filter v_i += w_i (v_{i-1} - v_i), forward and backward, along a few rows or a
// strip of columns. In this form constants stay exactly what they are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "lanes.hpp"
#include "multiversion.hpp"

namespace bilateral {

// Rows that are filtered at a time: along a single one, each pixel waits for the one before it.
inline constexpr std::size_t rows_in_turn = 4;

namespace detail {

// i-th pixel of a row of n in the order of the filter.
template <bool Forward>
BILATERAL_INLINE std::size_t nth(std::size_t i, std::size_t n) {
  return Forward ? i : n - 1 - i;
}

// Along R rows of K channels; w is what a pixel takes from the one before it.
template <std::size_t R, std::size_t K, bool Forward, class T>
BILATERAL_INLINE void along_rows(T* __restrict rows, std::size_t width, const T* __restrict w) {
  T last[R][K];
  for (std::size_t r = 0; r < R; ++r)
    for (std::size_t k = 0; k < K; ++k)
      last[r][k] = rows[(r * width + nth<Forward>(0, width)) * K + k];
  for (std::size_t i = 1; i < width; ++i) {
    const std::size_t x = nth<Forward>(i, width);
    for (std::size_t r = 0; r < R; ++r) {
      T* v = rows + (r * width + x) * K;
      const T share = w[r * width + x];
      for (std::size_t k = 0; k < K; ++k) last[r][k] = v[k] = v[k] + share * (last[r][k] - v[k]);
    }
  }
}

// Along one row of any number of channels.
template <bool Forward, class T>
BILATERAL_INLINE void along_row(T* row, std::size_t width, std::size_t channels, const T* w) {
  for (std::size_t i = 1; i < width; ++i) {
    T* __restrict to = row + nth<Forward>(i, width) * channels;
    const T* __restrict from = row + nth<Forward>(i - 1, width) * channels;
    const T share = w[nth<Forward>(i, width)];
    for (std::size_t k = 0; k < channels; ++k) to[k] += share * (from[k] - to[k]);
  }
}

template <bool Forward, class T>
BILATERAL_INLINE void along(T* rows, std::size_t count, std::size_t width, std::size_t channels,
                            const T* w) {
  if (count == rows_in_turn && channels == 1) {
    along_rows<rows_in_turn, 1, Forward>(rows, width, w);
  } else if (count == rows_in_turn && channels == 2) {
    along_rows<rows_in_turn, 2, Forward>(rows, width, w);
  } else if (count == rows_in_turn && channels == 3) {
    along_rows<rows_in_turn, 3, Forward>(rows, width, w);
  } else {
    for (std::size_t r = 0; r < count; ++r)
      along_row<Forward>(rows + r * width * channels, width, channels, w + r * width);
  }
}

// to[x][k] += w[x] (from[x][k] - to[x][k]), K channels.
template <std::size_t K, class T>
BILATERAL_INLINE void mix_few(T* __restrict to, const T* __restrict from, const T* __restrict w,
                              std::size_t pixels) {
  constexpr std::size_t width = 32 / sizeof(T);
  using Values = Lanes<T, width>;
  std::size_t x = 0;
  for (; x + width <= pixels; x += width) {
    const auto shares = load_lanes<Values>(w + x);
    const auto part = [&]<std::size_t M>() __attribute__((always_inline)) {
      const std::size_t at = K * x + M * width;
      const auto own = load_lanes<Values>(to + at), other = load_lanes<Values>(from + at);
      store_lanes(to + at, own + repeat_lanes<T, width, K, M>(shares) * (other - own));
    };
    [&]<std::size_t... M>(std::index_sequence<M...>) __attribute__((always_inline)) {
      (part.template operator()<M>(), ...);
    }(std::make_index_sequence<K>{});
  }
  for (; x < pixels; ++x)
    for (std::size_t k = 0; k < K; ++k) to[K * x + k] += w[x] * (from[K * x + k] - to[K * x + k]);
}

template <class T>
BILATERAL_INLINE void mix(T* to, const T* from, const T* w, std::size_t pixels,
                          std::size_t channels) {
  if (channels == 1) return mix_few<1>(to, from, w, pixels);
  if (channels == 2) return mix_few<2>(to, from, w, pixels);
  if (channels == 3) return mix_few<3>(to, from, w, pixels);
  for (std::size_t x = 0; x < pixels; ++x) {
    T* __restrict own = to + x * channels;
    const T* __restrict other = from + x * channels;
    for (std::size_t k = 0; k < channels; ++k) own[k] += w[x] * (other[k] - own[k]);
  }
}

// A mass that is lost for good would leave pixels without a value; this one weighs nothing beside
// any other.
template <class T>
inline constexpr T least_mass = std::numeric_limits<T>::min() * T(100);

// One step of the filter on masses: `mass` takes w of the mass before it, which then makes up
// the returned share of it. With that share the values are DT(mass v) / DT(mass).
template <class T>
BILATERAL_INLINE T gather_mass(T& mass, T before, T w) {
  const T taken = std::max(w * before, std::min(before, least_mass<T>));
  const T kept = std::max((T{1} - w) * mass, taken > T{0} ? T{0} : std::min(mass, least_mass<T>));
  mass = taken + kept;
  return taken / std::max(mass, std::numeric_limits<T>::min());
}

template <bool Forward, class T>
BILATERAL_INLINE void masses_along(T* masses, std::size_t width, const T* w, T* shares) {
  shares[nth<Forward>(0, width)] = T{0};
  T last = masses[nth<Forward>(0, width)];
  for (std::size_t i = 1; i < width; ++i) {
    const std::size_t x = nth<Forward>(i, width);
    shares[x] = gather_mass(masses[x], last, w[x]);
    last = masses[x];
  }
}

}  // namespace detail

// A strip of columns: `pixels` of each of `height` rows that lie `stride` pixels apart.
template <class T>
struct Strip {
  T* values;
  T* masses;  // null: all the same
  std::size_t height, pixels, stride, channels;
};

namespace detail {

// w: strip.pixels per row, for the row above it; shares: scratch for one row.
template <class T>
BILATERAL_INLINE void strip_both_ways(const Strip<T>& strip, const T* w, T* shares) {
  const std::size_t row = strip.stride * strip.channels;
  const auto step = [&](std::size_t y, std::size_t before,
                        const T* given) __attribute__((always_inline)) {
    if (strip.masses) {
      T* masses = strip.masses + y * strip.stride;
      const T* others = strip.masses + before * strip.stride;
      for (std::size_t x = 0; x < strip.pixels; ++x)
        shares[x] = gather_mass(masses[x], others[x], given[x]);
      given = shares;
    }
    mix(strip.values + y * row, strip.values + before * row, given, strip.pixels, strip.channels);
  };
  for (std::size_t y = 1; y < strip.height; ++y) step(y, y - 1, w + y * strip.pixels);
  for (std::size_t y = strip.height - 1; y-- > 0;) step(y, y + 1, w + (y + 1) * strip.pixels);
}

// w: `width` per row, for the pixel to the left, and one more; shares: as many.
template <class T>
BILATERAL_INLINE void rows_both_ways(T* rows, T* masses, std::size_t count, std::size_t width,
                                     std::size_t channels, const T* w, T* shares) {
  if (!masses) {
    along<true>(rows, count, width, channels, w);
    along<false>(rows, count, width, channels, w + 1);
    return;
  }
  for (std::size_t r = 0; r < count; ++r)
    masses_along<true>(masses + r * width, width, w + r * width, shares + r * width);
  along<true>(rows, count, width, channels, shares);
  for (std::size_t r = 0; r < count; ++r)
    masses_along<false>(masses + r * width, width, w + r * width + 1, shares + r * width);
  along<false>(rows, count, width, channels, shares);
}

}  // namespace detail

#define BILATERAL_RECURSION(T)                                                                    \
  BILATERAL_MULTIVERSION inline void filter_rows(T* rows, T* masses, std::size_t count,           \
                                                 std::size_t width, std::size_t channels,         \
                                                 const T* w, T* shares) {                         \
    detail::rows_both_ways(rows, masses, count, width, channels, w, shares);                      \
  }                                                                                               \
  BILATERAL_MULTIVERSION inline void filter_strip(const Strip<T>& strip, const T* w, T* shares) { \
    detail::strip_both_ways(strip, w, shares);                                                    \
  }
BILATERAL_RECURSION(float)
BILATERAL_RECURSION(double)
#undef BILATERAL_RECURSION

}  // namespace bilateral
