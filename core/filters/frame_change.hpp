// Frame change: weighs each pixel of a video by how little it changed since the previous frame. The
// weight says how far the previous solution is still valid.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "base/threads.hpp"

namespace bilateral {

namespace detail {

// Count is a number of channels, or the type of a constant one.
template <class R, class Count>
void weigh_change(const R* before, const R* after, std::size_t pixels, Count channels,
                  const float* scale, float* weight) {
  for (std::size_t i = 0; i < pixels; ++i) {
    float square = 1;
    for (std::size_t c = 0; c < channels; ++c) {
      const auto change = static_cast<float>(after[i * channels + c]) -
                          static_cast<float>(before[i * channels + c]);
      square += scale[c] * change * scale[c] * change;
    }
    weight[i] = square < 10 ? 1 / (square * square) : 0;
  }
}

}  // namespace detail

// Writes a weight per pixel: 1 where both frames have the same values, 0 where they differ by
// 3 / scale or more. Each channel has its own scale.
template <class R>
void frame_change(const R* before, const R* after, std::size_t pixels,
                  const std::vector<float>& scale, float* weight, int threads) {
  constexpr std::size_t block = 16384;
  const auto weigh = [&](auto channels) {
    parallel_for(team_size(threads, pixels, 4 * block), (pixels + block - 1) / block,
                 [&](std::size_t i, std::size_t) {
                   const std::size_t first = i * block, count = std::min(block, pixels - first);
                   detail::weigh_change(before + first * channels, after + first * channels, count,
                                        channels, scale.data(), weight + first);
                 });
  };
  if (scale.size() == 1)
    weigh(std::integral_constant<std::size_t, 1>{});
  else if (scale.size() == 3)
    weigh(std::integral_constant<std::size_t, 3>{});
  else
    weigh(scale.size());
}

}  // namespace bilateral
