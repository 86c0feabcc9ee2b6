// Noise of a depth map as a function of depth.
#pragma once

#include "base/multiversion.hpp"

namespace bilateral {

// Standard deviation a + b z^2.
struct DepthNoise {
  float a, b;

  BILATERAL_INLINE float at(float z) const { return a + b * z * z; }

  // Neighbours that differ by more lie on different surfaces.
  BILATERAL_INLINE float jump(float z) const { return 4 * at(z) + 0.015f * (z < 0 ? -z : z); }
};

}  // namespace bilateral
