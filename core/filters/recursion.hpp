// Recursion of the domain transform, v_i += w_i (v_{i-1} - v_i): the steps that rows and columns
// share. In this form, constants stay exactly constant.
#pragma once

#include <cstddef>
#include <limits>

#include "base/lanes.hpp"
#include "base/multiversion.hpp"

namespace bilateral::detail {

// Lower bound of a positive mass. It is negligible, but keeps the mass non-zero: pixels without
// mass would have no value.
template <class T>
inline constexpr T least_mass = std::numeric_limits<T>::min() * T(100);

// Does one step of the recursion on masses, which are numbers or vectors: `mass` takes the fraction
// w of the previous mass. Returns the share of the result that comes from the previous mass. As the
// weight of the recursion on values, this share yields DT(mass v) / DT(mass).
template <class T, class V>
BILATERAL_INLINE V gather_mass(V& mass, V previous, V w) {
  const V least = V{} + least_mass<T>, smallest = V{} + std::numeric_limits<T>::min();
  const V taken = lanes_most(w * previous, lanes_least(previous, least));
  const V kept = lanes_most((T{1} - w) * mass, lanes_least(mass, least));
  mass = taken + kept;
  return taken / lanes_most(mass, smallest);
}

// Writes from^(2^squarings).
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

}  // namespace bilateral::detail
