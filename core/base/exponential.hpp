// decay(x) = exp(-x) in a form that compilers vectorize, unlike the standard library's exp.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/multiversion.hpp"

namespace bilateral {

// exp(-x) for x >= 0, accurate to about one unit in the last place; 0 where exp(-x) is denormal.
BILATERAL_INLINE float decay(float x) {
  constexpr float log2_e = 1.44269504f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
  constexpr float largest = 87.0f, to_integer = 0x1.8p23f;
  const float bounded = x < largest ? x : largest;
  // exp(-x) = 2^-n exp(r), |r| <= ln(2) / 2
  const float n = (bounded * log2_e + to_integer) - to_integer;
  const float r = n * ln2_high - bounded + n * ln2_low;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1;
  p = p * r + 1;
  const std::int32_t bits = (127 - static_cast<std::int32_t>(n)) << 23;
  float power;
  std::memcpy(&power, &bits, sizeof power);
  return x < largest ? p * power : 0.0f;
}

BILATERAL_INLINE double decay(double x) { return std::exp(-x); }

}  // namespace bilateral
