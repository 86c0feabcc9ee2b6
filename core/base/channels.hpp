// Any number of channels in groups of one, four or eight, which the solver's loops are made for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "base/buffer.hpp"

namespace bilateral {

// f(K, first, count) for each group of `count` channels, padded to the constant K, until it returns
// false.
template <class F>
void each_group(std::size_t channels, F&& f) {
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

// Channels [first, first + count) of a vertex array with `channels` channels, padded to K.
template <std::size_t K, class T>
Buffer<T> take(const T* from, std::size_t vertices, std::size_t channels, std::size_t first,
               std::size_t count) {
  Buffer<T> out(vertices * K);
  for (std::size_t v = 0; v < vertices; ++v)
    for (std::size_t k = 0; k < K; ++k)
      out[v * K + k] = k < count ? from[v * channels + first + k] : T{0};
  return out;
}

// The other way round.
template <std::size_t K, class T>
void give(const Buffer<T>& from, std::size_t vertices, std::size_t channels, std::size_t first,
          std::size_t count, T* to) {
  for (std::size_t v = 0; v < vertices; ++v)
    for (std::size_t k = 0; k < count; ++k) to[v * channels + first + k] = from[v * K + k];
}

}  // namespace bilateral
