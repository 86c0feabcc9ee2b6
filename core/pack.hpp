// The K channels of a vertex as one value: a number, or a short vector.
#pragma once

#include <array>
#include <cstddef>

#include "lanes.hpp"
#include "multiversion.hpp"

namespace bilateral {

template <class T, std::size_t K>
struct PackOf {
  using type = Lanes<T, K>;
};
template <class T>
struct PackOf<T, 1> {
  using type = T;
};
template <class T, std::size_t K>
using Pack = typename PackOf<T, K>::type;

template <std::size_t K, class T>
BILATERAL_INLINE Pack<T, K> get(const T* from) {
  return load_lanes<Pack<T, K>>(from);
}

template <std::size_t K, class T>
BILATERAL_INLINE void put(T* to, Pack<T, K> value) {
  store_lanes(to, value);
}

// Channels as float64, to be summed.
template <std::size_t K, class T>
BILATERAL_INLINE Pack<double, K> widen(Pack<T, K> value) {
  if constexpr (K == 1)
    return static_cast<double>(value);
  else
    return __builtin_convertvector(value, Lanes<double, K>);
}

// One number per channel, as numbers of type T.
template <class T, std::size_t K>
BILATERAL_INLINE Pack<T, K> pack(const std::array<double, K>& numbers) {
  std::array<T, K> narrow;
  for (std::size_t k = 0; k < K; ++k) narrow[k] = static_cast<T>(numbers[k]);
  return get<K>(narrow.data());
}

template <std::size_t K>
BILATERAL_INLINE std::array<double, K> unpack(Pack<double, K> value) {
  std::array<double, K> numbers;
  put<K>(numbers.data(), value);
  return numbers;
}

}  // namespace bilateral
