// Photographs of a video: 8 bits per channel with luma as a fourth channel, and a pyramid of luma.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/multiversion.hpp"
#include "base/threads.hpp"

namespace bilateral {

inline constexpr std::size_t photo_channels = 4;  // red, green, blue, luma

namespace detail {

inline constexpr std::size_t photo_rows = 32;  // rows of one item of work

// Rounds to 0..255; NaN is 0.
BILATERAL_INLINE std::uint8_t photo_byte(float level) {
  level = level > 0 ? level : 0;
  return static_cast<std::uint8_t>(std::min(level, 255.0f) + 0.5f);
}

template <class T, std::size_t channels>
BILATERAL_INLINE void pack_photo_body(const T* __restrict pixels, std::size_t count, float scale,
                                      std::uint8_t* __restrict out) {
  for (std::size_t i = 0; i < count; ++i) {
    const T* pixel = pixels + i * channels;
    const float red = static_cast<float>(pixel[0]) * scale;
    const float green = channels == 3 ? static_cast<float>(pixel[channels - 2]) * scale : red;
    const float blue = channels == 3 ? static_cast<float>(pixel[channels - 1]) * scale : red;
    out[4 * i] = photo_byte(red);
    out[4 * i + 1] = photo_byte(green);
    out[4 * i + 2] = photo_byte(blue);
    out[4 * i + 3] = photo_byte(0.299f * red + 0.587f * green + 0.114f * blue);
  }
}

// Sums four rows of luma with the weights 1, 3, 3, 1, then every second group of four columns.
BILATERAL_INLINE void halve_row_body(const float* const* rows, std::size_t width,
                                     float* __restrict sums, float* __restrict out) {
  const float *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
  for (std::size_t x = 0; x < width; ++x) sums[x + 1] = a[x] + d[x] + 3 * (b[x] + c[x]);
  sums[0] = sums[1];
  sums[width + 1] = sums[width + 2] = sums[width];
  for (std::size_t x = 0; x < width / 2; ++x)
    out[x] = (sums[2 * x] + sums[2 * x + 3] + 3 * (sums[2 * x + 1] + sums[2 * x + 2])) / 64;
}

}  // namespace detail

// Converts `count` pixels of 1 or 3 channels, whose white is 255 / scale, to four bytes each.
template <class T>
void pack_photo(const T* pixels, std::size_t count, std::size_t channels, float scale,
                std::uint8_t* out, int threads) {
  constexpr std::size_t block = 16384;
  parallel_for(team_size(threads, count, 4 * block), (count + block - 1) / block,
               [&](std::size_t item, std::size_t) {
                 const std::size_t first = item * block, n = std::min(block, count - first);
                 const T* from = pixels + first * channels;
                 std::uint8_t* to = out + first * photo_channels;
                 if (channels == 3)
                   multiversion<detail::pack_photo_body<T, 3>>(from, n, scale, to);
                 else
                   multiversion<detail::pack_photo_body<T, 1>>(from, n, scale, to);
               });
}

// Copies the luma of a packed photograph, H x W.
inline void photo_luma(const std::uint8_t* photo, std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<float>(photo[i * photo_channels + photo_channels - 1]);
}

// Halves an image of height x width luma values, both at least 2: each pixel is the mean of 4 x 4
// pixels with the weights 1, 3, 3, 1 in both directions. The border is repeated.
inline void halve(const float* image, std::size_t height, std::size_t width, float* out,
                  int threads) {
  using namespace detail;
  const std::size_t rows = height / 2, columns = width / 2;
  const int team = team_size(threads, height * width, 65536);
  std::vector<std::vector<float>> sums(static_cast<std::size_t>(team));
  parallel_for(team, (rows + photo_rows - 1) / photo_rows, [&](std::size_t item, std::size_t rank) {
    sums[rank].resize(width + 3);
    for (std::size_t y = item * photo_rows; y < std::min((item + 1) * photo_rows, rows); ++y) {
      const float* four[4];
      for (std::size_t k = 0; k < 4; ++k) {
        const std::size_t row = std::min(std::max<std::size_t>(2 * y + k, 1) - 1, height - 1);
        four[k] = image + row * width;
      }
      multiversion<halve_row_body>(four, width, sums[rank].data(), out + y * columns);
    }
  });
}

}  // namespace bilateral
