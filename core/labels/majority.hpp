// Majority filter: replaces each pixel's label by the label of more than half of the window around
// it. If the window has no majority, the pixel keeps its label.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "base/buffer.hpp"
#include "base/threads.hpp"

namespace bilateral {

// Labels are from 0 to `classes` - 1; std::invalid_argument reports others. The window has
// 2 radius + 1 pixels along each axis; beyond the border, the outermost pixels are repeated.
inline void majority(const std::int32_t* given, std::size_t height, std::size_t width,
                     std::size_t classes, std::size_t radius, std::int32_t* out, int threads) {
  const std::size_t side = 2 * radius + 1, window = side * side;
  // Labels are indices below. Another thread may change the given ones after the check.
  Buffer<std::int32_t> copy(height * width);
  std::copy_n(given, copy.size(), copy.data());
  const std::int32_t* labels = copy.data();
  unsigned outside = 0;
  for (std::size_t i = 0; i < copy.size(); ++i)
    outside |= static_cast<std::size_t>(labels[i]) >= classes;  // a negative label is huge
  if (outside) throw std::invalid_argument("a label lies outside the classes");
  // Returns the pixel at position i of the repeated border and the n pixels after it.
  const auto clamped = [radius](std::size_t i, std::size_t n) {
    return std::min(i < radius ? 0 : i - radius, n - 1);
  };
  const int team = team_size(threads, height * width, 65536);
  struct Scratch {
    std::vector<std::size_t> count;         // pixels of the window with each label
    std::vector<const std::int32_t*> rows;  // of the window
    std::vector<std::int32_t> uniform;      // the only label in a column of the window, or -1
  };
  std::vector<Scratch> scratch(static_cast<std::size_t>(team));
  parallel_for(team, height, [&](std::size_t y, std::size_t rank) {
    std::vector<std::size_t>& count = scratch[rank].count;
    std::vector<const std::int32_t*>& rows = scratch[rank].rows;
    std::vector<std::int32_t>& uniform = scratch[rank].uniform;
    count.assign(classes, 0);
    rows.resize(side);
    for (std::size_t i = 0; i < side; ++i) rows[i] = labels + clamped(y + i, height) * width;
    uniform.assign(rows[0], rows[0] + width);
    for (const std::int32_t* row : rows)
      for (std::size_t x = 0; x < width; ++x) uniform[x] = row[x] == uniform[x] ? uniform[x] : -1;
    std::int32_t leader = -1;  // the label in the majority, or -1
    const auto add_column = [&](std::size_t column) {
      for (const std::int32_t* row : rows)
        if (2 * ++count[static_cast<std::size_t>(row[column])] > window) leader = row[column];
    };
    for (std::size_t i = 0; i < side; ++i) add_column(clamped(i, width));
    for (std::size_t x = 0; x < width; ++x) {
      out[y * width + x] = leader >= 0 ? leader : labels[y * width + x];
      const std::size_t leaving = clamped(x, width), entering = clamped(x + side, width);
      if (uniform[leaving] >= 0 && uniform[leaving] == uniform[entering]) continue;
      for (const std::int32_t* row : rows) --count[static_cast<std::size_t>(row[leaving])];
      if (leader >= 0 && 2 * count[static_cast<std::size_t>(leader)] <= window) leader = -1;
      add_column(entering);
    }
  });
}

}  // namespace bilateral
