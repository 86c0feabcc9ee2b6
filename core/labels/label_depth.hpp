// Label depth: the distance of each pixel to the border of its label region, relative to the
// region's thickness.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/threads.hpp"

namespace bilateral {

namespace detail {

inline constexpr float far_away = std::numeric_limits<float>::infinity();

// Returns whether a border separates two neighbours. A negative label is unknown, and has none.
inline bool differ(std::int32_t a, std::int32_t b) { return a != b && a >= 0 && b >= 0; }

// Writes 0 for the pixels of a row that touch a border, else infinity.
inline void mark_borders(const std::int32_t* labels, std::size_t height, std::size_t width,
                         std::size_t y, float* out) {
  const std::int32_t* row = labels + y * width;
  const std::int32_t* above = y > 0 ? row - width : row;
  const std::int32_t* below = y + 1 < height ? row + width : row;
  for (std::size_t x = 0; x < width; ++x) {
    const std::int32_t left = row[x > 0 ? x - 1 : x], right = row[x + 1 < width ? x + 1 : x];
    const bool at_border = differ(row[x], left) || differ(row[x], right) ||
                           differ(row[x], above[x]) || differ(row[x], below[x]);
    out[x] = at_border ? 0.0f : far_away;
  }
}

// Euclidean distance transform of one row, from the distances g_j along columns. The squared
// distance of pixel i is the minimum over j of (i - j)^2 + g_j^2: the lower envelope of parabolas
// (Meijster et al. 2000).
struct Envelope {
  std::vector<std::size_t> centre;
  std::vector<float> from;  // where each parabola becomes the lowest

  // Writes the distances between pixel centres plus 1/2, which is about the distance to the border.
  void distances(const float* g, std::size_t n, float* out) {
    centre.resize(n);
    from.resize(n);
    std::size_t count = 0;
    for (std::size_t j = 0; j < n; ++j) {
      if (g[j] == far_away) continue;
      float start = -far_away;
      for (; count > 0; --count) {
        const std::size_t k = centre[count - 1];
        const float gap = static_cast<float>(j - k);
        start = static_cast<float>(k) + 0.5f * (gap + (g[j] - g[k]) * (g[j] + g[k]) / gap);
        if (start > from[count - 1]) break;
      }
      centre[count] = j;
      from[count] = count > 0 ? start : -far_away;
      ++count;
    }
    if (count == 0) {
      std::fill_n(out, n, far_away);
      return;
    }
    for (std::size_t i = 0, k = 0; i < n; ++i) {
      while (k + 1 < count && from[k + 1] < static_cast<float>(i)) ++k;
      const float along = static_cast<float>(i) - static_cast<float>(centre[k]);
      out[i] = along * along + g[centre[k]] * g[centre[k]];
    }
    for (std::size_t i = 0; i < n; ++i) out[i] = std::sqrt(out[i]) + 0.5f;
  }
};

// Writes the largest of the values up to `radius` away along a line, within each run of one label.
// `queue` is scratch.
inline void largest_in_runs(const float* values, const std::int32_t* labels, std::size_t n,
                            std::size_t radius, std::vector<std::size_t>& queue, float* out) {
  queue.resize(n);
  for (std::size_t begin = 0, end = 0; begin < n; begin = end) {
    for (end = begin + 1; end < n && labels[end] == labels[begin];) ++end;
    // The queue has the candidates for the maximum, with descending values.
    std::size_t first = 0, last = 0, next = begin;
    for (std::size_t i = begin; i < end; ++i) {
      for (; next < end && next <= i + radius; ++next) {
        while (last > first && values[queue[last - 1]] <= values[next]) --last;
        queue[last++] = next;
      }
      while (queue[first] + radius < i) ++first;
      out[i] = values[queue[first]];
    }
  }
}

}  // namespace detail

// Writes depth = d / t. d is the distance of each pixel to the nearest border of a label region. t
// is the largest d in the pixel's region, up to `radius` away along a row, then along a column. The
// depth is 1 if there is no border. Labels below 0 are unknown, and make no border.
inline void label_depth(const std::int32_t* labels, std::size_t height, std::size_t width,
                        std::size_t radius, float* depth, int threads) {
  using namespace detail;
  const std::size_t pixels = height * width;
  const int team = team_size(threads, pixels, 65536);
  std::vector<float> distance(pixels), thickness(pixels);
  parallel_for(team, height, [&](std::size_t y, std::size_t) {
    mark_borders(labels, height, width, y, distance.data() + y * width);
  });
  for (std::size_t i = width; i < pixels; ++i)
    distance[i] = std::min(distance[i], distance[i - width] + 1);
  for (std::size_t i = pixels - width; i-- > 0;)
    distance[i] = std::min(distance[i], distance[i + width] + 1);

  struct Scratch {  // memory of one thread
    Envelope envelope;
    std::vector<std::size_t> queue;
    std::vector<float> line, largest;
    std::vector<std::int32_t> labels;
  };
  std::vector<Scratch> scratches(static_cast<std::size_t>(team));
  parallel_for(team, height, [&](std::size_t y, std::size_t rank) {
    Scratch& scratch = scratches[rank];
    std::vector<float>& line = scratch.line;
    line.resize(width);
    scratch.envelope.distances(distance.data() + y * width, width, line.data());
    std::copy(line.begin(), line.end(), depth + y * width);
    largest_in_runs(line.data(), labels + y * width, width, radius, scratch.queue,
                    thickness.data() + y * width);
  });
  constexpr std::size_t strip = 16;  // columns that share their cache lines
  parallel_for(team, (width + strip - 1) / strip, [&](std::size_t item, std::size_t rank) {
    Scratch& scratch = scratches[rank];
    const std::size_t begin = item * strip, columns = std::min(strip, width - begin);
    scratch.line.resize(strip * height);
    scratch.largest.resize(strip * height);
    scratch.labels.resize(strip * height);
    for (std::size_t y = 0; y < height; ++y)
      for (std::size_t x = 0; x < columns; ++x) {
        scratch.line[x * height + y] = thickness[y * width + begin + x];
        scratch.labels[x * height + y] = labels[y * width + begin + x];
      }
    for (std::size_t x = 0; x < columns; ++x)
      largest_in_runs(scratch.line.data() + x * height, scratch.labels.data() + x * height, height,
                      radius, scratch.queue, scratch.largest.data() + x * height);
    for (std::size_t y = 0; y < height; ++y)
      for (std::size_t x = 0; x < columns; ++x) {
        float& d = depth[y * width + begin + x];
        d = d == far_away ? 1.0f : d / scratch.largest[x * height + y];
      }
  });
}

}  // namespace bilateral
