// Column filter of the domain transform: runs the recursion down and back up, in strips of columns
// that are a few vectors wide.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/lanes.hpp"
#include "base/multiversion.hpp"
#include "filters/recursion.hpp"

namespace bilateral {

// A strip of columns, stored without gaps between its rows: with the image's stride it would not
// fit into the cache.
template <class T>
struct Strip {
  T* values;
  T* w;       // weight of each pixel's upper neighbour, written on the way down
  T* masses;  // null if all masses are the same
  T* shares;  // scratch for one row
  std::size_t height, pixels, channels;
};

namespace detail {

// Writes to[x][k] = value[x][k] + w[x] (previous[x][k] - value[x][k]) for K channels. `to` may be
// `value`.
template <std::size_t K, class T>
BILATERAL_INLINE void mix_channels(T* to, const T* value, const T* previous, const T* w,
                                   std::size_t pixels) {
  constexpr std::size_t width = 32 / sizeof(T);
  using Values = Lanes<T, width>;
  std::size_t x = 0;
  for (; x + width <= pixels; x += width) {
    const auto shares = load_lanes<Values>(w + x);
    const auto part = [&]<std::size_t M>() __attribute__((always_inline)) {
      const std::size_t at = K * x + M * width;
      const auto a = load_lanes<Values>(value + at), b = load_lanes<Values>(previous + at);
      store_lanes(to + at, a + repeat_lanes<T, width, K, M>(shares) * (b - a));
    };
    [&]<std::size_t... M>(std::index_sequence<M...>) __attribute__((always_inline)) {
      (part.template operator()<M>(), ...);
    }(std::make_index_sequence<K>{});
  }
  for (; x < pixels; ++x)
    for (std::size_t i = K * x; i < K * (x + 1); ++i)
      to[i] = value[i] + w[x] * (previous[i] - value[i]);
}

// The same for any number of channels.
template <class T>
BILATERAL_INLINE void mix(T* to, const T* value, const T* previous, const T* w, std::size_t pixels,
                          std::size_t channels) {
  if (channels == 1) return mix_channels<1>(to, value, previous, w, pixels);
  if (channels == 2) return mix_channels<2>(to, value, previous, w, pixels);
  if (channels == 3) return mix_channels<3>(to, value, previous, w, pixels);
  for (std::size_t x = 0; x < pixels; ++x)
    for (std::size_t i = x * channels; i < (x + 1) * channels; ++i)
      to[i] = value[i] + w[x] * (previous[i] - value[i]);
}

// Returns the weights with which row y takes the values of row `previous`: w, or with masses the
// shares of the masses.
template <class T>
BILATERAL_INLINE const T* strip_shares(const Strip<T>& strip, std::size_t y, std::size_t previous,
                                       const T* w) {
  if (!strip.masses) return w;
  T* __restrict masses = strip.masses + y * strip.pixels;
  const T* __restrict previous_masses = strip.masses + previous * strip.pixels;
  T* __restrict shares = strip.shares;
  for (std::size_t x = 0; x < strip.pixels; ++x)
    shares[x] = gather_mass<T>(masses[x], previous_masses[x], w[x]);
  return shares;
}

// Rows of an image are too far apart for the processor to prefetch the next one.
inline constexpr std::size_t rows_ahead = 8, cache_line = 64;

template <class T>
BILATERAL_INLINE void prefetch(const T* from, std::size_t n) {
  const auto* bytes = reinterpret_cast<const char*>(from);
  for (std::size_t i = 0; i < n * sizeof(T); i += cache_line) __builtin_prefetch(bytes + i);
}

// Runs the recursion down, from the image to the strip.
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

// Runs the recursion back up, from the strip to the image, or in place if `image` is the strip.
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

template <class T>
BILATERAL_INLINE void filter_strip_body(const Strip<T>& strip, T* image, const T* weights,
                                        int squarings, std::size_t width, bool write_back) {
  strip_down(strip, image, weights, squarings, width);
  strip_up(strip, write_back ? image : strip.values,
           (write_back ? width : strip.pixels) * strip.channels);
}

}  // namespace detail

// Filters one strip. `weights` and `image` point to the strip's first pixel in the whole image,
// which is `width` pixels wide. The result goes to the image if `write_back`, else to the strip.
template <class T>
void filter_strip(const Strip<T>& strip, T* image, const T* weights, int squarings,
                  std::size_t width, bool write_back) {
  multiversion<detail::filter_strip_body<T>>(strip, image, weights, squarings, width, write_back);
}

}  // namespace bilateral
