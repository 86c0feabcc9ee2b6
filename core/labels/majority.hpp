// The majority filter of a label map: a label that fills more than half of the window around a
// pixel takes its place; without one, a pixel keeps its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/threads.hpp"

namespace bilateral {

// Labels are from 0 to `classes` - 1; the window has 2 radius + 1 pixels along each axis, and its
// part beyond the border repeats the outermost pixels.
inline void majority(const std::int32_t* labels, std::size_t height, std::size_t width,
                     std::size_t classes, std::size_t radius, std::int32_t* out, int threads) {
  const std::size_t side = 2 * radius + 1, window = side * side;
  const auto inside = [radius](std::size_t i, std::size_t n) {  // i counts from the border
    return std::min(i < radius ? 0 : i - radius, n - 1);
  };
  const int team = team_size(threads, height * width, 65536);
  struct Scratch {
    std::vector<std::size_t> count;
    std::vector<const std::int32_t*> rows;
    std::vector<std::int32_t> plain;
  };
  std::vector<Scratch> scratch(static_cast<std::size_t>(team));
  parallel_for(team, height, [&](std::size_t y, std::size_t rank) {
    auto& [count, rows, plain] = scratch[rank];
    count.assign(classes, 0);
    rows.resize(side);
    for (std::size_t i = 0; i < side; ++i) rows[i] = labels + inside(y + i, height) * width;
    plain.assign(rows[0], rows[0] + width);  // the label that fills a column of windows, or -1
    for (const std::int32_t* row : rows)
      for (std::size_t x = 0; x < width; ++x) plain[x] = row[x] == plain[x] ? plain[x] : -1;
    std::int32_t leader = -1;  // the label in the majority
    const auto enter = [&](std::size_t column) {
      for (const std::int32_t* row : rows)
        if (2 * ++count[static_cast<std::size_t>(row[column])] > window) leader = row[column];
    };
    for (std::size_t i = 0; i < side; ++i) enter(inside(i, width));
    for (std::size_t x = 0; x < width; ++x) {
      out[y * width + x] = leader >= 0 ? leader : labels[y * width + x];
      const std::size_t gone = inside(x, width), next = inside(x + side, width);
      if (plain[gone] >= 0 && plain[gone] == plain[next]) continue;
      for (const std::int32_t* row : rows) --count[static_cast<std::size_t>(row[gone])];
      if (leader >= 0 && 2 * count[static_cast<std::size_t>(leader)] <= window) leader = -1;
      enter(next);
    }
  });
}

}  // namespace bilateral
