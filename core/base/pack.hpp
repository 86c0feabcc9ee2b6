// Pack: the K channels of one vertex as one value, a number if K is 1 and SIMD vectors otherwise.
#pragma once

#include <array>
#include <cstddef>

#include "base/lanes.hpp"
#include "base/multiversion.hpp"

namespace bilateral {

// N numbers in SIMD vectors of 16 bytes, which every machine has. Compilers spill wider vectors to
// memory where registers are narrower.
template <class T, std::size_t N>
struct Wide {
  static constexpr std::size_t width = 16 / sizeof(T), count = N / width;
  using Part = Lanes<T, width>;
  static_assert(count * width == N);
  Part part[count];

  static BILATERAL_INLINE Wide filled(T value) {
    return generate([=](std::size_t) __attribute__((always_inline)) { return Part{} + value; });
  }
  template <class F>
  static BILATERAL_INLINE Wide generate(F f) {
    Wide out;
#pragma GCC unroll 8
    for (std::size_t i = 0; i < count; ++i) out.part[i] = f(i);
    return out;
  }

  friend BILATERAL_INLINE Wide operator+(Wide a, Wide b) {
    return generate([&](std::size_t i)
                        __attribute__((always_inline)) { return a.part[i] + b.part[i]; });
  }
  friend BILATERAL_INLINE Wide operator-(Wide a, Wide b) {
    return generate([&](std::size_t i)
                        __attribute__((always_inline)) { return a.part[i] - b.part[i]; });
  }
  friend BILATERAL_INLINE Wide operator*(Wide a, Wide b) {
    return generate([&](std::size_t i)
                        __attribute__((always_inline)) { return a.part[i] * b.part[i]; });
  }
  friend BILATERAL_INLINE Wide operator*(T a, Wide b) {
    return generate([&](std::size_t i) __attribute__((always_inline)) { return a * b.part[i]; });
  }
  BILATERAL_INLINE Wide& operator+=(Wide b) { return *this = *this + b; }
};

template <class T, std::size_t K>
struct PackOf {
  using type = Wide<T, K>;
};
template <class T>
struct PackOf<T, 1> {
  using type = T;
};
template <class T, std::size_t K>
using Pack = typename PackOf<T, K>::type;

template <std::size_t K, class T>
BILATERAL_INLINE Pack<T, K> get(const T* from) {
  if constexpr (K == 1)
    return *from;
  else
    return Wide<T, K>::generate([=](std::size_t i) __attribute__((always_inline)) {
      return load_lanes<typename Wide<T, K>::Part>(from + i * Wide<T, K>::width);
    });
}

template <std::size_t K, class T>
BILATERAL_INLINE void put(T* to, Pack<T, K> value) {
  if constexpr (K == 1) {
    *to = value;
  } else {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < Wide<T, K>::count; ++i)
      store_lanes(to + i * Wide<T, K>::width, value.part[i]);
  }
}

// Converts to float64, the type of all sums.
template <std::size_t K, class T>
BILATERAL_INLINE Pack<double, K> widen(const Pack<T, K>& value) {
  if constexpr (K == 1) {
    return static_cast<double>(value);
  } else if constexpr (sizeof(T) == sizeof(double)) {
    return value;
  } else {
    return Wide<double, K>::generate([&](std::size_t i) __attribute__((always_inline)) {
      return load_pair_of(value.part[i / 2], i % 2);
    });
  }
}

// Packs one number per channel, converted to T.
template <class T, std::size_t K>
BILATERAL_INLINE Pack<T, K> pack(const std::array<double, K>& numbers) {
  std::array<T, K> narrow;
  for (std::size_t k = 0; k < K; ++k) narrow[k] = static_cast<T>(numbers[k]);
  return get<K>(narrow.data());
}

template <std::size_t K>
BILATERAL_INLINE std::array<double, K> unpack(const Pack<double, K>& value) {
  std::array<double, K> numbers;
  put<K>(numbers.data(), value);
  return numbers;
}

}  // namespace bilateral
