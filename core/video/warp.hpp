// Move the past to the present: depth, count and photograph of the frame before, along the flow of
// the camera.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/multiversion.hpp"
#include "base/threads.hpp"
#include "video/flow_model.hpp"
#include "video/noise.hpp"
#include "video/photo.hpp"

namespace bilateral {

// The count of a pixel: the number of averaged frames, and whether a frame measured its depth.
inline constexpr int was_measured = 0x80, frames_mask = 0x7f;

// The frame before: averaged depth, count, packed photograph.
struct Past {
  const float* depth;
  const std::uint8_t* count;
  const std::uint8_t* photo;
};

// The same in the view of the frame now, and the length of the flow in pixels. The count is 0
// outside the view of the frame before.
struct MovedPast {
  float* depth;
  std::uint8_t* count;
  std::uint8_t* photo;
  float* speed;
};

struct WarpTask {
  std::size_t height, width;
  Past past;
  const float* depth;  // of the frame now: the flow depends on it
  FlowModel model;
  DepthNoise noise;
  float gain, offset;  // photograph before = gain * photograph now + offset
  MovedPast moved;
};

namespace detail {

inline constexpr std::size_t warp_rows = 16;   // rows of one item of work
inline constexpr std::size_t warp_chunk = 64;  // pixels of one round of a row

// The past shows another surface than the present. Looks for that surface where its own depth leads
// to: the past has nothing to say about the pixel if it is not there.
inline void check_other_surface(const WarpTask& task, std::size_t x, std::size_t y) {
  const FlowModel& model = task.model;
  const std::size_t to = y * task.width + x;
  const float X = (static_cast<float>(x) - model.centre_x) * model.scale;
  const float Y = (static_cast<float>(y) - model.centre_y) * model.scale;
  const float found = task.moved.depth[to];
  const float q = model.inverse_depth(found), expected = model.inverse_depth(task.depth[to]);
  const float dx = model.flow_x(Y, X, q), dy = model.flow_y(Y, X, q);
  const float off_x = dx - model.flow_x(Y, X, expected), off_y = dy - model.flow_y(Y, X, expected);
  if (std::max(std::abs(off_x), std::abs(off_y)) < 0.5f) return;
  const float px = std::round(static_cast<float>(x) + dx),
              py = std::round(static_cast<float>(y) + dy);
  const bool inside = (px >= 0) & (px < static_cast<float>(task.width)) & (py >= 0) &
                      (py < static_cast<float>(task.height));
  const std::size_t from =
      inside ? static_cast<std::size_t>(py) * task.width + static_cast<std::size_t>(px) : 0;
  if (!inside || !(std::abs(task.past.depth[from] - found) < task.noise.jump(found))) {
    task.moved.count[to] = 0;
    return;
  }
  task.moved.depth[to] = task.past.depth[from];
  task.moved.count[to] = task.past.count[from];
  std::memcpy(task.moved.photo + to * photo_channels, task.past.photo + from * photo_channels,
              photo_channels);
}

BILATERAL_INLINE void warp_row_body(const WarpTask& task, std::size_t y) {
  const std::size_t width = task.width, row = y * width;
  const FlowModel& model = task.model;
  const float position_y = (static_cast<float>(y) - model.centre_y) * model.scale;
  const auto last_x = static_cast<float>(width - 1), last_y = static_cast<float>(task.height - 1);
  const auto pitch = static_cast<std::int32_t>(width);
  const std::int32_t right = width > 1 ? 1 : 0, down = task.height > 1 ? pitch : 0;
  const std::int32_t most_x = pitch - 1 - right;
  const std::int32_t most_y = static_cast<std::int32_t>(task.height) - 1 - (down > 0);
  float fx[warp_chunk], fy[warp_chunk], above[2 * warp_chunk], below[2 * warp_chunk];
  std::int32_t corner[warp_chunk];  // the pixel above and to the left
  std::int32_t nearest[warp_chunk];
  std::uint8_t inside[warp_chunk];
  for (std::size_t first = 0; first < width; first += warp_chunk) {
    const std::size_t n = std::min(warp_chunk, width - first), to = row + first;
    for (std::size_t k = 0; k < n; ++k) {
      const auto x = static_cast<float>(static_cast<std::int32_t>(first + k));
      const float X = (x - model.centre_x) * model.scale;
      const float q = model.inverse_depth(task.depth[to + k]);
      const float dx = model.flow_x(position_y, X, q), dy = model.flow_y(position_y, X, q);
      const float px = x + dx, py = static_cast<float>(y) + dy;
      inside[k] = (px >= 0) & (px <= last_x) & (py >= 0) & (py <= last_y);
      const float inner_x = px >= 0 ? (px < last_x ? px : last_x) : 0.0f;
      const float inner_y = py >= 0 ? (py < last_y ? py : last_y) : 0.0f;
      const std::int32_t x0 = std::min(static_cast<std::int32_t>(inner_x), most_x);
      const std::int32_t y0 = std::min(static_cast<std::int32_t>(inner_y), most_y);
      fx[k] = inner_x - static_cast<float>(x0);
      fy[k] = inner_y - static_cast<float>(y0);
      corner[k] = y0 * pitch + x0;
      nearest[k] = corner[k] + (fx[k] >= 0.5f ? right : 0) + (fy[k] >= 0.5f ? down : 0);
      task.moved.speed[to + k] = std::sqrt(dx * dx + dy * dy);
    }
    for (std::size_t k = 0; k < n; ++k) {
      const float* four = task.past.depth + corner[k];
      above[2 * k] = four[0];
      above[2 * k + 1] = four[right];
      below[2 * k] = four[down];
      below[2 * k + 1] = four[down + right];
      task.moved.depth[to + k] = task.past.depth[nearest[k]];
      task.moved.count[to + k] = inside[k] ? task.past.count[nearest[k]] : std::uint8_t{0};
      // The nearest pixel serves: comparisons are with the range of 3 x 3 pixels.
      std::memcpy(task.moved.photo + (to + k) * photo_channels,
                  task.past.photo + static_cast<std::size_t>(nearest[k]) * photo_channels,
                  photo_channels);
    }
    for (std::size_t k = 0; k < n; ++k) {
      const float a = above[2 * k], b = above[2 * k + 1], c = below[2 * k], d = below[2 * k + 1];
      const float low = std::min(std::min(a, b), std::min(c, d));
      const float high = std::max(std::max(a, b), std::max(c, d));
      const float top = a + fx[k] * (b - a), bottom = c + fx[k] * (d - c);
      const bool one_surface = high - low < task.noise.jump(a);
      const float between = top + fy[k] * (bottom - top);
      task.moved.depth[to + k] = one_surface ? between : task.moved.depth[to + k];
    }
    for (std::size_t k = 0; k < n; ++k) {
      const float expected = task.depth[to + k], found = task.moved.depth[to + k];
      if (inside[k] && std::abs(found - expected) > task.noise.jump(expected))
        check_other_surface(task, first + k, y);
    }
  }
  std::uint8_t* bytes = task.moved.photo + row * photo_channels;
  const float per_gain = 1 / task.gain;
  for (std::size_t k = 0; k < width * photo_channels; ++k)
    bytes[k] = photo_byte((static_cast<float>(bytes[k]) - task.offset) * per_gain);
}
inline constexpr auto warp_row = multiversion<warp_row_body>;

}  // namespace detail

// Between pixels, depth is linear where the four pixels around lie on one surface; at jumps it is
// that of the nearest pixel. The photograph gets the exposure of the frame now.
inline void warp_past(const WarpTask& task, int threads) {
  using namespace detail;
  const int team = team_size(threads, task.height * task.width, 16384);
  parallel_for(team, (task.height + warp_rows - 1) / warp_rows, [&](std::size_t item, std::size_t) {
    for (std::size_t y = item * warp_rows; y < std::min((item + 1) * warp_rows, task.height); ++y)
      warp_row(task, y);
  });
}

}  // namespace bilateral
