// Divide 8-bit colours into cells, and find the colours whose cell depends on rounding.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/multiversion.hpp"

namespace bilateral {

// Cell k of a colour is trunc(weights[k] . colour + shift[k]), which must lie between 0 and 255. A
// colour within margin[k] of the border of two cells is near.
struct ColorCells {
  std::array<std::array<float, 3>, 3> weights;
  std::array<float, 3> shift, margin;
  const std::uint8_t* gray;  // 256 x 3 cells of the gray levels, which are never near
};

namespace detail {

inline constexpr std::size_t color_block = 64;

// Writes the cells of at most color_block pixels, and whether each is near. Returns whether one is.
BILATERAL_INLINE bool color_cells_body(const std::uint8_t* pixels, std::size_t n,
                                       const ColorCells& map, std::uint8_t* cells, bool* near) {
  std::array<float, color_block> red, green, blue;
  std::array<std::uint8_t, color_block> is_near{};
  for (std::size_t i = 0; i < n; ++i) {
    red[i] = pixels[3 * i];
    green[i] = pixels[3 * i + 1];
    blue[i] = pixels[3 * i + 2];
  }
  std::array<std::array<std::uint8_t, color_block>, 3> cell;
  for (std::size_t k = 0; k < 3; ++k) {
    const float r = map.weights[k][0], g = map.weights[k][1], b = map.weights[k][2];
    const float shift = map.shift[k], low = map.margin[k], high = 1 - map.margin[k];
    for (std::size_t i = 0; i < n; ++i) {
      const float value = r * red[i] + g * green[i] + b * blue[i] + shift;
      const auto whole = static_cast<std::int32_t>(value);
      const float rest = value - static_cast<float>(whole);
      cell[k][i] = static_cast<std::uint8_t>(whole);
      is_near[i] |= static_cast<std::uint8_t>((rest < low) | (rest > high));
    }
  }
  std::uint8_t any = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < 3; ++k) cells[3 * i + k] = cell[k][i];
    near[i] = is_near[i] != 0;
    any |= is_near[i];
  }
  return any != 0;
}

}  // namespace detail

// Writes the three cells of each of n pixels, and whether the pixel is near.
inline void color_cells(const std::uint8_t* pixels, std::size_t n, const ColorCells& map,
                        std::uint8_t* cells, bool* near) {
  for (std::size_t first = 0; first < n; first += detail::color_block) {
    const std::size_t size = std::min(detail::color_block, n - first);
    const std::uint8_t* colours = pixels + 3 * first;
    if (!multiversion<detail::color_cells_body>(colours, size, map, cells + 3 * first,
                                                near + first))
      continue;
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint8_t level = colours[3 * i];
      if (!near[first + i] || level != colours[3 * i + 1] || level != colours[3 * i + 2]) continue;
      std::copy_n(map.gray + 3 * level, 3, cells + 3 * (first + i));
      near[first + i] = false;
    }
  }
}

}  // namespace bilateral
