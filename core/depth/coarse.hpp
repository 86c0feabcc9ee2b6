// Coarse: a photograph and a depth map at a lower resolution for a fast solve, and the way back.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/buffer.hpp"
#include "base/threads.hpp"

namespace bilateral {

namespace detail {

// Calls f(row, column, height, width, channels) for each block. Sizes are constants for the whole
// blocks of a live camera, so that loops over them unroll; else they are numbers.
template <class F>
void each_block(std::size_t height, std::size_t width, std::size_t channels, std::size_t factor,
                F&& f, int threads) {
  const std::size_t rows = (height + factor - 1) / factor, columns = (width + factor - 1) / factor;
  constexpr std::integral_constant<std::size_t, 2> two{};
  constexpr std::integral_constant<std::size_t, 3> three{};
  parallel_for(team_size(threads, height * width, 65536), rows, [&](std::size_t r, std::size_t) {
    const std::size_t tall = std::min(factor, height - r * factor);
    std::size_t c = 0;
    if (tall == two && factor == two && channels == three)
      for (; c < width / two; ++c) f(r, c, two, two, three);
    for (; c < columns; ++c) f(r, c, tall, std::min(factor, width - c * factor), channels);
  });
}

}  // namespace detail

// Writes the means of blocks of factor x factor pixels. Blocks at the right and lower border may be
// smaller. `out` has ceil(H / factor) x ceil(W / factor) x C values.
template <class T>
void shrink_photo(const T* pixels, std::size_t height, std::size_t width, std::size_t channels,
                  std::size_t factor, T* out, int threads) {
  using Sum = std::conditional_t<std::is_integral_v<T>, std::uint32_t, T>;
  const std::size_t columns = (width + factor - 1) / factor;
  const auto block = [&](std::size_t r, std::size_t c, auto tall, auto wide, auto depth) {
    const auto count = static_cast<Sum>(tall * wide);
    const T* first = pixels + (r * factor * width + c * factor) * depth;
    for (std::size_t k = 0; k < depth; ++k) {
      Sum sum = std::is_integral_v<T> ? count / 2 : Sum{0};  // rounds integers
      for (std::size_t y = 0; y < tall; ++y)
        for (std::size_t x = 0; x < wide; ++x) sum += first[(y * width + x) * depth + k];
      out[(r * columns + c) * depth + k] = static_cast<T>(sum / count);
    }
  };
  detail::each_block(height, width, channels, factor, block, threads);
}

// Writes the depth of the data closest to the centre of each block, or NaN if it has none.
inline void shrink_depth(const float* z, const bool* data, std::size_t height, std::size_t width,
                         std::size_t factor, float* out, int threads) {
  const std::size_t rows = (height + factor - 1) / factor, columns = (width + factor - 1) / factor;
  const float middle = 0.5f * static_cast<float>(factor - 1);
  parallel_for(team_size(threads, height * width, 65536), rows, [&](std::size_t r, std::size_t) {
    for (std::size_t c = 0; c < columns; ++c) {
      float nearest = std::numeric_limits<float>::infinity();
      float value = std::numeric_limits<float>::quiet_NaN();
      for (std::size_t y = r * factor; y < std::min((r + 1) * factor, height); ++y)
        for (std::size_t x = c * factor; x < std::min((c + 1) * factor, width); ++x) {
          const float dy = static_cast<float>(y - r * factor) - middle;
          const float dx = static_cast<float>(x - c * factor) - middle;
          const float distance = dx * dx + dy * dy;
          if (!data[y * width + x] || distance >= nearest) continue;
          nearest = distance;
          value = z[y * width + x];
        }
      out[r * columns + c] = value;
    }
  });
}

// Writes the mean deviation of each block's colours from their mean, summed over the channels.
template <class T>
void block_deviation(const T* pixels, const T* means, std::size_t height, std::size_t width,
                     std::size_t channels, std::size_t factor, float* out, int threads) {
  const std::size_t columns = (width + factor - 1) / factor;
  const auto block = [&](std::size_t r, std::size_t c, auto tall, auto wide, auto depth) {
    const T* first = pixels + (r * factor * width + c * factor) * depth;
    const T* mean = means + (r * columns + c) * depth;
    float sum = 0;
    for (std::size_t y = 0; y < tall; ++y)
      for (std::size_t x = 0; x < wide; ++x)
        for (std::size_t k = 0; k < depth; ++k)
          sum += std::abs(static_cast<float>(first[(y * width + x) * depth + k]) -
                          static_cast<float>(mean[k]));
    out[r * columns + c] = sum / static_cast<float>(tall * wide);
  };
  detail::each_block(height, width, channels, factor, block, threads);
}

// Writes coarse values to the pixels without data: of the four blocks nearest to a pixel, that of
// the most similar colour. `unit` is the colour difference, summed over the channels, that counts
// as much as a block of distance. A block across an edge of the photograph has the depth of either
// side, so the deviation of its colours counts twice. More would turn its pixels to the other side.
template <class T>
void expand_depth(const float* coarse, const T* photo, const T* coarse_photo, const bool* data,
                  std::size_t height, std::size_t width, std::size_t channels, std::size_t factor,
                  float unit, float* out, int threads) {
  constexpr float mixed = 2;  // weight of the deviation
  const std::size_t rows = (height + factor - 1) / factor, columns = (width + factor - 1) / factor;
  Buffer<float> deviations(rows * columns);
  block_deviation(photo, coarse_photo, height, width, channels, factor, deviations.data(), threads);
  const float* deviation = deviations.data();
  const float size = 1 / static_cast<float>(factor), scale = 1 / unit;
  // A pixel's own block, the next one, and its distance from both in blocks.
  struct Blocks {
    std::size_t at[2];
    float distance[2];
  };
  const auto blocks = [=](std::size_t i, std::size_t count) {
    const std::size_t own = i / factor;
    const float from = (static_cast<float>(i) + 0.5f) * size - 0.5f - static_cast<float>(own);
    const std::size_t next = from < 0 ? own - (own > 0) : std::min(own + 1, count - 1);
    return Blocks{{own, next}, {std::abs(from), 1 - std::abs(from)}};
  };
  parallel_for(team_size(threads, height * width, 65536), height, [&](std::size_t y, std::size_t) {
    const Blocks v = blocks(y, rows);
    for (std::size_t x = 0; x < width; ++x) {
      if (data[y * width + x]) continue;
      const Blocks u = blocks(x, columns);
      const T* colour = photo + (y * width + x) * channels;
      float least = std::numeric_limits<float>::infinity();
      for (const std::size_t r : {std::size_t{0}, std::size_t{1}})
        for (const std::size_t c : {std::size_t{0}, std::size_t{1}}) {
          const std::size_t block = v.at[r] * columns + u.at[c];
          float cost = v.distance[r] + u.distance[c] + scale * mixed * deviation[block];
          for (std::size_t k = 0; k < channels; ++k)
            cost += scale * std::abs(static_cast<float>(colour[k]) -
                                     static_cast<float>(coarse_photo[block * channels + k]));
          if (cost >= least) continue;
          least = cost;
          out[y * width + x] = coarse[block];
        }
    }
  });
}

}  // namespace bilateral
