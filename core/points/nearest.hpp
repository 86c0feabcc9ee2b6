// Nearest known pixel of each pixel: exact Euclidean distance transform, one axis after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/buffer.hpp"

namespace bilateral {

// Writes the index of the nearest pixel that is not NaN; at least one pixel is known. Of several at
// the same distance, any.
inline void nearest_known(const float* z, std::size_t height, std::size_t width,
                          std::uint32_t* out) {
  constexpr std::int64_t far = std::int64_t{1} << 40;
  const auto rows = static_cast<std::int64_t>(height), columns = static_cast<std::int64_t>(width);
  Buffer<std::int32_t> row(height * width);  // nearest known row in the same column; -1: none
  for (std::size_t p = 0; p < height * width; ++p)
    row[p] = z[p] == z[p] ? static_cast<std::int32_t>(p / width) : p < width ? -1 : row[p - width];
  for (std::size_t p = (height - 1) * width; p-- > 0;) {
    const auto y = static_cast<std::int32_t>(p / width);
    const std::int32_t below = row[p + width], above = row[p];
    if (below >= 0 && (above < 0 || below - y < y - above)) row[p] = below;
  }
  // Lower envelope of the parabolas (x - q)^2 + d(q)^2 along each row.
  std::vector<std::int64_t> centre(width), from(width + 1);
  for (std::int64_t y = 0; y < rows; ++y) {
    const std::int32_t* near = row.data() + y * columns;
    const auto height_at = [&](std::int64_t q) { return (near[q] - y) * (near[q] - y) + q * q; };
    std::size_t count = 0;
    for (std::int64_t q = 0; q < columns; ++q) {
      if (near[q] < 0) continue;
      std::int64_t start = -far;
      while (count > 0) {
        const std::int64_t c = centre[count - 1], step = 2 * (q - c);
        const std::int64_t rise = height_at(q) - height_at(c);
        start = rise >= 0 ? (rise + step - 1) / step : -(-rise / step);  // first x nearer to q
        if (start > from[count - 1]) break;
        --count;
        start = -far;
      }
      from[count] = start;
      centre[count++] = q;
    }
    std::size_t k = 0;
    for (std::int64_t x = 0; x < columns; ++x) {
      while (k + 1 < count && from[k + 1] <= x) ++k;
      out[y * columns + x] = static_cast<std::uint32_t>(near[centre[k]] * columns + centre[k]);
    }
  }
}

}  // namespace bilateral
