// Jump: the smallest difference of depth between two surfaces. It grows with the depth, as the
// noise of depth cameras does.
#pragma once

#include <algorithm>
#include <cmath>

#include "base/multiversion.hpp"

namespace bilateral {

// The jump at the depth z is c0 + c1 |z| + c2 z^2, with c0 > 0 and c1, c2 >= 0.
struct Jump {
  float c0, c1, c2;

  BILATERAL_INLINE float operator()(float z) const {
    const float size = std::abs(z);
    return c0 + size * (c1 + size * c2);
  }

  // Whether two depths may belong to one surface at pixels `steps` apart. False if one is NaN.
  BILATERAL_INLINE bool joins(float a, float b, float steps = 1) const {
    return std::abs(a - b) <= steps * (*this)(0.5f * (a + b));
  }

  // Whether the slope hardly changes along three pixels of a line, and is at least `least` jumps
  // per pixel. False if one is NaN.
  bool even(float a, float b, float c, float least = 0) const {
    const float slope = std::min(std::abs(b - a), std::abs(c - b)), unit = (*this)(b);
    const float slack = std::max(slope_change * slope, jump_change * unit);
    return slope >= least * unit && std::abs(c - b - (b - a)) < slack;
  }

  // A slope is even if it changes by less than this fraction of itself, or of a jump.
  static constexpr float slope_change = 0.3f, jump_change = 0.25f;
};

}  // namespace bilateral
