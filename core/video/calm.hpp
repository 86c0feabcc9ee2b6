// Calm a stream: move each pixel towards the value that its last two values lead to, by less than
// the noise. Pixels stay in place: what flickers on a screen is seen at fixed pixels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/multiversion.hpp"
#include "base/threads.hpp"
#include "video/noise.hpp"

namespace bilateral {

struct CalmTask {
  std::size_t pixels;
  const float *x, *x1, *x2;  // depth now, and the results one and two frames before
  const float* speed;        // flow in pixels
  DepthNoise noise;          // in time
  float gain;                // part of the way to the predicted value
  float most;                // units of noise
  float fast;                // pixels per frame: the limit is halved at this flow
  float change;              // units of noise: a larger second difference is motion
  float* out;                // result
};

namespace detail {

BILATERAL_INLINE void calm_body(const CalmTask& task, std::size_t first, std::size_t end) {
  const float per_fast = 1 / task.fast;
  for (std::size_t i = first; i < end; ++i) {
    const float x = task.x[i], noise = task.noise.at(x);
    const float speed = task.speed[i] * per_fast;
    const float most = task.most * noise / (1 + speed * speed);
    const float bend = x - 2 * task.x1[i] + task.x2[i];
    const float move = std::max(std::min(task.gain * bend, most), -most);
    task.out[i] = std::abs(bend) > task.change * noise ? x : x - move;
  }
}
inline constexpr auto calm_block = multiversion<calm_body>;

}  // namespace detail

inline void calm(const CalmTask& task, int threads) {
  constexpr std::size_t block = 8192;
  parallel_for(team_size(threads, task.pixels, 4 * block), (task.pixels + block - 1) / block,
               [&](std::size_t item, std::size_t) {
                 detail::calm_block(task, item * block, std::min((item + 1) * block, task.pixels));
               });
}

}  // namespace bilateral
