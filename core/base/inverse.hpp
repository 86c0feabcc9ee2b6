// Invert entries of a diagonal.
#pragma once

#include <limits>

#include "base/multiversion.hpp"

namespace bilateral {

// Returns 1 / x, or 0 if x is 0 or denormal: its inverse may be infinite, and it has lost digits.
template <class T>
BILATERAL_INLINE T inverse_or_zero(T x) {
  return x >= std::numeric_limits<T>::min() ? T{1} / x : T{0};
}

}  // namespace bilateral
