// Flow of a rigid scene without camera intrinsics: for each pixel of a frame, the way to the same
// point in the frame before.
//
// A turning camera moves pixels by a quadratic function of their position (8 parameters), a
// shifting camera by 3 parameters times inverse depth. Positions are relative to the centre and to
// half of the longer side of the image; flow is in pixels.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/multiversion.hpp"

namespace bilateral {

inline constexpr std::size_t flow_parameters = 11;

struct FlowModel {
  std::array<float, flow_parameters> theta;
  float unit;                       // depth of inverse depth 1
  float centre_y, centre_x, scale;  // position = (pixel - centre) * scale

  FlowModel(const std::array<double, flow_parameters>& parameters, double depth_unit,
            std::size_t height, std::size_t width)
      : unit(static_cast<float>(depth_unit)),
        centre_y(static_cast<float>(height - 1) / 2),
        centre_x(static_cast<float>(width - 1) / 2),
        scale(2 / static_cast<float>(std::max(height, width))) {
    for (std::size_t i = 0; i < flow_parameters; ++i) theta[i] = static_cast<float>(parameters[i]);
  }

  // Limited for depths near 0 and for maps that hold something else than depth.
  BILATERAL_INLINE float inverse_depth(float depth) const {
    const float least = 0.05f * unit;
    return unit / (depth > least ? depth : least);
  }
  BILATERAL_INLINE float flow_x(float y, float x, float q) const {
    return theta[0] + theta[1] * x + theta[2] * y + x * (theta[6] * x + theta[7] * y) +
           q * (theta[8] - theta[10] * x);
  }
  BILATERAL_INLINE float flow_y(float y, float x, float q) const {
    return theta[3] + theta[4] * x + theta[5] * y + y * (theta[6] * x + theta[7] * y) +
           q * (theta[9] - theta[10] * y);
  }
};

}  // namespace bilateral
