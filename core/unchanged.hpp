// Where one picture shows what another did: what may be carried from frame to frame of a video.
#pragma once

#include <algorithm>
#include <cstddef>

#include "threads.hpp"

namespace bilateral {

namespace detail {

template <std::size_t C, class R>
void weigh_change(const R* before, const R* after, std::size_t pixels, float scale, float* weight) {
  for (std::size_t i = 0; i < pixels; ++i) {
    float square = 1;
    for (std::size_t c = 0; c < C; ++c) {
      const auto change =
          static_cast<float>(after[i * C + c]) - static_cast<float>(before[i * C + c]);
      square += scale * change * scale * change;
    }
    weight[i] = square < 10 ? 1 / (square * square) : 0;
  }
}

}  // namespace detail

// Per pixel, 1 where both have the same colour, 0 where they differ by 3 / scale or more. One or
// three channels.
template <class R>
void unchanged(const R* before, const R* after, std::size_t pixels, std::size_t channels,
               float scale, float* weight, int threads) {
  constexpr std::size_t block = 16384;
  const auto weigh = channels == 3 ? detail::weigh_change<3, R> : detail::weigh_change<1, R>;
  parallel_for(team_size(threads, pixels, 4 * block), (pixels + block - 1) / block,
               [&](std::size_t i, std::size_t) {
                 const std::size_t first = i * block, count = std::min(block, pixels - first);
                 weigh(before + first * channels, after + first * channels, count, scale,
                       weight + first);
               });
}

}  // namespace bilateral
