// Models: what a solve computes at each vertex.
#pragma once

#include <cstddef>

namespace bilateral {

// One value per vertex in each of K channels.
template <std::size_t K>
struct Constant {
  static constexpr std::size_t channels = K;
};

// One plane per vertex, over D spatial axes: the value at the vertex's centre, which is the mean
// position of its pixels, and D slopes. Lengths are in cells.
//
// The planes of neighbours u and v should agree midway between their centres, and be parallel:
//   lambda sum_uv w_uv ((plane_u(midway) - plane_v(midway))^2 + mu |slopes_u - slopes_v|^2)
//   + lambda eps sum_v m_v |slopes_v|^2 + sum_i c_i (plane(pixel i) - t_i)^2
template <std::size_t D>
struct Planar {
  static constexpr std::size_t axes = D;
  static constexpr std::size_t unknowns = D + 1;
  // Numbers of a symmetric matrix of all unknowns, its lower triangle by rows; and of the slopes.
  static constexpr std::size_t matrix = (D + 1) * (D + 2) / 2;
  static constexpr std::size_t slope_matrix = D * (D + 1) / 2;
};

// mu and eps of the planar model.
struct SlopeWeights {
  double smoothness = 0, ridge = 0;
};

// The place of entry (i, j), j <= i, of a lower triangle by rows.
constexpr std::size_t triangle(std::size_t i, std::size_t j) { return i * (i + 1) / 2 + j; }

}  // namespace bilateral
