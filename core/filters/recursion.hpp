// What the recursive filter's rows and columns share: v_i += w_i (v_{i-1} - v_i). In this form
// constants stay exactly what they are.
#pragma once

#include <cstddef>
#include <limits>

#include "base/lanes.hpp"
#include "base/multiversion.hpp"

namespace bilateral::detail {

// A mass that is lost for good would leave pixels without a value; this one weighs nothing beside
// any other.
template <class T>
inline constexpr T least_mass = std::numeric_limits<T>::min() * T(100);

// One step of the filter on masses, numbers or vectors of them: `mass` takes w of the mass before
// it, which then makes up the returned share of it. With that share the values are
// DT(mass v) / DT(mass).
template <class T, class V>
BILATERAL_INLINE V gather_mass(V& mass, V before, V w) {
  const V least = V{} + least_mass<T>, smallest = V{} + std::numeric_limits<T>::min();
  const V taken = lanes_most(w * before, lanes_least(before, least));
  const V kept = lanes_most((T{1} - w) * mass, lanes_least(mass, least));
  mass = taken + kept;
  return taken / lanes_most(mass, smallest);
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

}  // namespace bilateral::detail
