// Split channels into groups of one, four or eight, the numbers that the solver's loops are
// compiled for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "base/buffer.hpp"

namespace bilateral {

// Calls f(K, first, count) for each group of `count` channels, padded to the constant K, until f
// returns false.
template <class F>
void each_channel_group(std::size_t channels, F&& f) {
  bool more = true;
  for (std::size_t first = 0; first < channels && more;) {
    const std::size_t left = channels - first,
                      count = left > 4 ? std::min<std::size_t>(left, 8) : left;
    if (count > 4)
      more = f(std::integral_constant<std::size_t, 8>{}, first, count);
    else if (count > 1)
      more = f(std::integral_constant<std::size_t, 4>{}, first, count);
    else
      more = f(std::integral_constant<std::size_t, 1>{}, first, count);
    first += count;
  }
}

// Copies the channels [first, first + count) of a vertex array, padded with zeros to K channels.
template <std::size_t K, class T>
Buffer<T> gather_channels(const T* from, std::size_t vertices, std::size_t channels,
                          std::size_t first, std::size_t count) {
  Buffer<T> out(vertices * K);
  for (std::size_t v = 0; v < vertices; ++v)
    for (std::size_t k = 0; k < K; ++k)
      out[v * K + k] = k < count ? from[v * channels + first + k] : T{0};
  return out;
}

// Copies such a group back to the channels [first, first + count) of a vertex array.
template <std::size_t K, class T>
void scatter_channels(const Buffer<T>& from, std::size_t vertices, std::size_t channels,
                      std::size_t first, std::size_t count, T* to) {
  for (std::size_t v = 0; v < vertices; ++v)
    for (std::size_t k = 0; k < count; ++k) to[v * channels + first + k] = from[v * K + k];
}

}  // namespace bilateral
