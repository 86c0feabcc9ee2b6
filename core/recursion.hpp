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

// to[x][k] = own[x][k] + w[x] (other[x][k] - own[x][k]), K channels; `to` may be `own`.
template <std::size_t K, class T>
BILATERAL_INLINE void mix_few(T* to, const T* own, const T* other, const T* w, std::size_t pixels) {
  constexpr std::size_t width = 32 / sizeof(T);
  using Values = Lanes<T, width>;
  std::size_t x = 0;
  for (; x + width <= pixels; x += width) {
    const auto shares = load_lanes<Values>(w + x);
    const auto part = [&]<std::size_t M>() __attribute__((always_inline)) {
      const std::size_t at = K * x + M * width;
      const auto a = load_lanes<Values>(own + at), b = load_lanes<Values>(other + at);
      store_lanes(to + at, a + repeat_lanes<T, width, K, M>(shares) * (b - a));
    };
    [&]<std::size_t... M>(std::index_sequence<M...>) __attribute__((always_inline)) {
      (part.template operator()<M>(), ...);
    }(std::make_index_sequence<K>{});
  }
  for (; x < pixels; ++x)
    for (std::size_t i = K * x; i < K * (x + 1); ++i) to[i] = own[i] + w[x] * (other[i] - own[i]);
}

template <class T>
BILATERAL_INLINE void mix(T* to, const T* own, const T* other, const T* w, std::size_t pixels,
                          std::size_t channels) {
  if (channels == 1) return mix_few<1>(to, own, other, w, pixels);
  if (channels == 2) return mix_few<2>(to, own, other, w, pixels);
  if (channels == 3) return mix_few<3>(to, own, other, w, pixels);
  for (std::size_t x = 0; x < pixels; ++x)
    for (std::size_t i = x * channels; i < (x + 1) * channels; ++i)
      to[i] = own[i] + w[x] * (other[i] - own[i]);
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
  const T kept = std::max((T{1} - w) * mass, std::min(mass, least_mass<T>));
  mass = taken + kept;
  return taken / std::max(mass, std::numeric_limits<T>::min());
}

// The masses of R rows, and what their pixels take from the one before.
template <std::size_t R, bool Forward, class T>
BILATERAL_INLINE void masses_along(T* __restrict masses, std::size_t width, const T* __restrict w,
                                   T* __restrict shares) {
  T last[R];
  for (std::size_t r = 0; r < R; ++r) last[r] = masses[r * width + nth<Forward>(0, width)];
  for (std::size_t i = 1; i < width; ++i)
    for (std::size_t r = 0; r < R; ++r) {
      const std::size_t at = r * width + nth<Forward>(i, width);
      T mass = masses[at];
      shares[at] = gather_mass(mass, last[r], w[at]);
      last[r] = masses[at] = mass;
    }
}

template <bool Forward, class T>
BILATERAL_INLINE void masses_along(T* masses, std::size_t count, std::size_t width, const T* w,
                                   T* shares) {
  if (count == rows_in_turn) return masses_along<rows_in_turn, Forward>(masses, width, w, shares);
  for (std::size_t at = 0; at < count * width; at += width)
    masses_along<1, Forward>(masses + at, width, w + at, shares + at);
}

// to = from^(2^squarings)
template <class T>
BILATERAL_INLINE void raise(const T* __restrict from, std::size_t n, int squarings,
                            T* __restrict to) {
  if (squarings == 0)
    for (std::size_t i = 0; i < n; ++i) to[i] = from[i];
  else
    for (std::size_t i = 0; i < n; ++i) to[i] = from[i] * from[i];
  for (int s = 1; s < squarings; ++s)
    for (std::size_t i = 0; i < n; ++i) to[i] *= to[i];
}

}  // namespace detail

// A strip of columns, rows one after another: the cache would not hold it at the image's stride.
template <class T>
struct Strip {
  T* values;
  T* w;       // what a pixel takes from the one above it: to be filled on the way down
  T* masses;  // null: all the same
  T* shares;  // scratch for one row
  std::size_t height, pixels, channels;
};

namespace detail {

// What the pixels of row y take from those of the row before it.
template <class T>
BILATERAL_INLINE const T* strip_shares(const Strip<T>& strip, std::size_t y, std::size_t before,
                                       const T* w) {
  if (!strip.masses) return w;
  T* __restrict masses = strip.masses + y * strip.pixels;
  const T* __restrict others = strip.masses + before * strip.pixels;
  T* __restrict shares = strip.shares;
  for (std::size_t x = 0; x < strip.pixels; ++x)
    shares[x] = gather_mass(masses[x], others[x], w[x]);
  return shares;
}

// Rows of an image lie too far apart for the processor to foresee the next one.
inline constexpr std::size_t rows_ahead = 8, cache_line = 64;

template <class T>
BILATERAL_INLINE void prefetch(const T* from, std::size_t n) {
  const auto* bytes = reinterpret_cast<const char*>(from);
  for (std::size_t i = 0; i < n * sizeof(T); i += cache_line) __builtin_prefetch(bytes + i);
}

// Down, from the image to the strip.
template <class T>
BILATERAL_INLINE void strip_down(const Strip<T>& strip, const T* image, const T* weights,
                                 int squarings, std::size_t width) {
  const std::size_t row = strip.pixels * strip.channels, stride = width * strip.channels;
  std::copy_n(image, row, strip.values);
  for (std::size_t y = 1; y < strip.height; ++y) {
    if (y + rows_ahead < strip.height) {
      prefetch(image + (y + rows_ahead) * stride, row);
      prefetch(weights + (y + rows_ahead) * width, strip.pixels);
    }
    T* w = strip.w + y * strip.pixels;
    raise(weights + y * width, strip.pixels, squarings, w);
    const T* shares = strip_shares(strip, y, y - 1, w);
    mix(strip.values + y * row, image + y * stride, strip.values + (y - 1) * row, shares,
        strip.pixels, strip.channels);
  }
}

// Back up, from the strip to the image, or to where the strip is.
template <class T>
BILATERAL_INLINE void strip_up(const Strip<T>& strip, T* image, std::size_t stride) {
  const std::size_t row = strip.pixels * strip.channels;
  std::size_t y = strip.height - 1;
  if (image != strip.values) std::copy_n(strip.values + y * row, row, image + y * stride);
  while (y-- > 0) {
    if (y >= rows_ahead) prefetch(image + (y - rows_ahead) * stride, row);
    const T* shares = strip_shares(strip, y, y + 1, strip.w + (y + 1) * strip.pixels);
    mix(image + y * stride, strip.values + y * row, image + (y + 1) * stride, shares, strip.pixels,
        strip.channels);
  }
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
  masses_along<true>(masses, count, width, w, shares);
  along<true>(rows, count, width, channels, shares);
  masses_along<false>(masses, count, width, w + 1, shares);
  along<false>(rows, count, width, channels, shares);
}

}  // namespace detail

// `weights` and `image` are those of the whole image, which is `width` pixels wide, from the
// strip's first pixel on. The result goes to the image if `back`, else it stays in the strip.
#define BILATERAL_RECURSION(T)                                                        \
  BILATERAL_MULTIVERSION inline void filter_rows(                                     \
      T* rows, T* masses, std::size_t count, std::size_t width, std::size_t channels, \
      const T* weights, int squarings, T* w, T* shares) {                             \
    detail::raise(weights, count * width, squarings, w);                              \
    detail::rows_both_ways(rows, masses, count, width, channels, w, shares);          \
  }                                                                                   \
  BILATERAL_MULTIVERSION inline void filter_strip(const Strip<T>& strip, T* image,    \
                                                  const T* weights, int squarings,    \
                                                  std::size_t width, bool back) {     \
    detail::strip_down(strip, image, weights, squarings, width);                      \
    detail::strip_up(strip, back ? image : strip.values,                              \
                     (back ? width : strip.pixels) * strip.channels);                 \
  }
BILATERAL_RECURSION(float)
BILATERAL_RECURSION(double)
#undef BILATERAL_RECURSION

}  // namespace bilateral
