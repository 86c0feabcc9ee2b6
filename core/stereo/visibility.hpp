// Visibility: finds the pixels of the left view that the right view sees, by a depth buffer of the
// right view's rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "base/threads.hpp"

namespace bilateral {

namespace detail {

// Returns the column of the right view that a pixel falls on, or -1 if it is outside.
inline float right_column(std::size_t x, float disparity, std::size_t width) {
  const float column = static_cast<float>(x) - disparity;
  return column >= 0 && column <= static_cast<float>(width) - 1 ? column : -1;
}

}  // namespace detail

// Writes 1 where the right view sees a pixel that has the disparity `claim`, else 0. The pixel must
// fall inside the right view, and no trusted pixel of the map `surface` may fall on the same column
// with a disparity larger by more than `tolerance`. Disparities d are in pixels: column x of the
// left view is column x - d of the right view.
inline void visible(const float* claim, const float* surface, const bool* trusted,
                    std::size_t height, std::size_t width, float tolerance, bool* out,
                    int threads) {
  const int team = team_size(threads, height * width, 65536);
  std::vector<std::vector<float>> depth_buffers(static_cast<std::size_t>(team));
  const auto place = [width](float column) {  // a float32 cannot hold every large width
    return std::min(static_cast<std::size_t>(column), width - 1);
  };
  parallel_for(team, height, [&](std::size_t y, std::size_t rank) {
    std::vector<float>& nearest = depth_buffers[rank];  // largest disparity per column
    nearest.assign(width + 1, -std::numeric_limits<float>::infinity());
    const std::size_t row = y * width;
    for (std::size_t x = 0; x < width; ++x) {
      const float d = surface[row + x], column = detail::right_column(x, d, width);
      if (!trusted[row + x] || column < 0) continue;
      // The pixel covers both columns that it falls between.
      const std::size_t k = place(column);
      nearest[k] = std::max(nearest[k], d);
      nearest[k + 1] = std::max(nearest[k + 1], d);
    }
    for (std::size_t x = 0; x < width; ++x) {
      const float d = claim[row + x], column = detail::right_column(x, d, width);
      out[row + x] = column >= 0 && nearest[place(column + 0.5f)] <= d + tolerance;
    }
  });
}

}  // namespace bilateral
