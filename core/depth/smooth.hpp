// Smooth: reduces the noise of a depth map and keeps its jumps. Two passes average over 3 x 3
// pixels, the second at twice the distance (an edge-avoiding a-trous filter).
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/multiversion.hpp"
#include "base/threads.hpp"
#include "depth/jump.hpp"

namespace bilateral {

namespace detail {

// Averages one row of `n` pixels over nine, with weights that fall with the difference from the
// pixel relative to `scale` times the noise. `above`, `at`, `below` have `step` pixels more on both
// sides.
BILATERAL_INLINE void smooth_row_body(const float* above, const float* at, const float* below,
                                      std::ptrdiff_t step, std::size_t n, Jump noise, float scale,
                                      float* __restrict out) {
  const float* rows[] = {above, at, below};
  for (std::size_t k = 0; k < n; ++k) {
    const auto i = static_cast<std::ptrdiff_t>(k);
    const float z = at[i], width = scale * noise(z), unit = 1 / (width * width);
    float sum = 0, mass = 4;
    for (int r = 0; r < 3; ++r)
      for (std::ptrdiff_t c = -1; c <= 1; ++c) {
        if (r == 1 && c == 0) continue;
        const float d = rows[r][i + c * step] - z, far = 1 + d * d * unit;
        const float weight = (r == 1 || c == 0 ? 2.0f : 1.0f) / (far * far);
        sum += weight * d;
        mass += weight;
      }
    out[k] = z + sum / mass;
  }
}

}  // namespace detail

// Smooths x in place. Pixels that are kept move by at most `limit` times the noise. Beyond its
// border the map continues with its border pixels.
inline void smooth_depth(const bool* kept, std::size_t height, std::size_t width, const Jump& noise,
                         float scale, float limit, float* x, int threads) {
  const std::size_t margin = 2, pitch = width + 2 * margin;
  std::vector<float> from(height * pitch), to(height * pitch);
  const int team = team_size(threads, height * width, 32768);
  const auto extend = [=](float* row) {
    for (std::size_t k = 1; k <= margin; ++k) {
      row[-static_cast<std::ptrdiff_t>(k)] = row[0];
      row[width - 1 + k] = row[width - 1];
    }
  };
  parallel_for(team, height, [&](std::size_t y, std::size_t) {
    float* row = from.data() + y * pitch + margin;
    std::copy_n(x + y * width, width, row);
    extend(row);
  });
  for (const std::size_t step : {std::size_t{1}, std::size_t{2}}) {
    parallel_for(team, height, [&](std::size_t y, std::size_t) {
      const auto row = [&](std::size_t r) { return from.data() + r * pitch + margin; };
      float* out = to.data() + y * pitch + margin;
      multiversion<detail::smooth_row_body>(
          row(y - std::min(y, step)), row(y), row(std::min(y + step, height - 1)),
          static_cast<std::ptrdiff_t>(step), width, noise, scale, out);
      extend(out);
    });
    from.swap(to);
    scale *= 0.5f;  // the first pass has halved the noise
  }
  parallel_for(team, height, [&](std::size_t y, std::size_t) {
    const float* row = from.data() + y * pitch + margin;
    for (std::size_t k = 0; k < width; ++k) {
      float& value = x[y * width + k];
      const float most = limit * noise(value);
      value = kept[y * width + k] ? std::clamp(row[k], value - most, value + most) : row[k];
    }
  });
}

}  // namespace bilateral
