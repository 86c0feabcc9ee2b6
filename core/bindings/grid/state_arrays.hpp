// Convert the arrays of a state between the core and NumPy.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "grid/state.hpp"

namespace bilateral {

using AnyInput = nb::ndarray<nb::ro, nb::numpy, nb::c_contig, nb::device::cpu>;
using AnyArray = nb::ndarray<nb::numpy, nb::c_contig>;

// Moves a buffer to Python. Its shape is (size / columns,) or, with several columns,
// two-dimensional.
template <class T>
AnyArray to_array(Buffer<T> values, std::size_t columns = 1) {
  auto moved = std::make_unique<Buffer<T>>(std::move(values));
  T* data = moved->data();
  const std::size_t size = moved->size();
  const nb::capsule owner(moved.release(),
                          [](void* p) noexcept { delete static_cast<Buffer<T>*>(p); });
  if (columns == 1) return AnyArray(data, {size}, owner, {}, nb::dtype<T>());
  return AnyArray(data, {size / columns, columns}, owner, {}, nb::dtype<T>());
}

template <class T>
AnyArray to_array(const std::vector<T>& values) {
  Buffer<T> copy(values.size());
  std::copy(values.begin(), values.end(), copy.data());
  return to_array(std::move(copy));
}

// A wide key becomes a row of its lower and its upper half.
inline AnyArray to_array(const Buffer<WideKey>& keys) {
  Buffer<std::uint64_t> halves(2 * keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    halves[2 * i] = static_cast<std::uint64_t>(keys[i]);
    halves[2 * i + 1] = static_cast<std::uint64_t>(keys[i] >> 64);
  }
  return to_array(std::move(halves), 2);
}

template <class T>
bool holds(const AnyInput& array, std::size_t axes) {
  return array.dtype() == nb::dtype<T>() && array.ndim() == axes;
}

template <class T>
Buffer<T> to_buffer(const AnyInput& array) {
  Buffer<T> values(array.size());
  std::copy_n(static_cast<const T*>(array.data()), array.size(), values.data());
  return values;
}

inline AnyKeys to_keys(const AnyInput& array) {
  if (holds<NarrowKey>(array, 1)) return to_buffer<NarrowKey>(array);
  require(holds<std::uint64_t>(array, 2) && array.shape(1) == 2,
          "keys must be n int32 or n x 2 uint64");
  const auto* halves = static_cast<const std::uint64_t*>(array.data());
  Buffer<WideKey> keys(array.shape(0));
  for (std::size_t i = 0; i < keys.size(); ++i)
    keys[i] = (WideKey{halves[2 * i + 1]} << 64) | halves[2 * i];
  return keys;
}

inline AnyRanks to_ranks(const AnyInput& last, const AnyInput& pixel) {
  const auto as = [&]<class Rank>(Rank) {
    return RankArrays<Rank>{to_buffer<Rank>(last), to_buffer<Rank>(pixel)};
  };
  const auto hold = [&]<class Rank>(Rank) { return holds<Rank>(last, 1) && holds<Rank>(pixel, 1); };
  if (hold(std::uint8_t{})) return as(std::uint8_t{});
  if (hold(std::uint16_t{})) return as(std::uint16_t{});
  require(hold(std::uint32_t{}), "ranks must be uint8, uint16 or uint32, both the same");
  return as(std::uint32_t{});
}

// The signatures name the dtype Any, because a state has arrays of several dtypes.
#define BILATERAL_ARRAY "numpy.typing.NDArray[typing.Any]"

}  // namespace bilateral
