// Compare the present with the moved past: a pixel is steady if neither its photograph nor its
// depth changed by more than noise and a small misalignment explain.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "base/multiversion.hpp"
#include "base/threads.hpp"
#include "video/depth_change.hpp"
#include "video/flow_model.hpp"
#include "video/noise.hpp"
#include "video/photo.hpp"
#include "video/warp.hpp"

namespace bilateral {

// Differences of depth are stored in these units of noise, so that sums of them are exact.
inline constexpr float differences_per_noise = 512;
inline constexpr float largest_difference = 6;  // units of noise
inline constexpr std::int16_t no_difference = std::numeric_limits<std::int16_t>::min();

// How far a pixel agrees with the past.
enum Steadiness : std::uint8_t {
  changed = 0,
  steady = 1,
  supported = 2,  // steady, and a doubtful measurement agrees with the past
  preferred =
      3,        // steady, and a doubtful measurement is far closer to the past than to the filling
  opposed = 4,  // steady, and a doubtful measurement is far closer to the filling
  no_past = 5,  // unchanged as far as one can see, but without a past to use
  lost = 6,     // steady, but the data of the past are gone, and the filling is far from them
};

struct CompareTask {
  std::size_t height, width;
  const float* measured;      // all measurements, doubtful ones too; NaN where unknown
  const float *z, *x;         // measured (NaN where unknown) and refined depth
  const bool* kept;           // refined depth that is data rather than a filling
  const std::uint8_t* photo;  // packed
  const float* before;        // moved past
  const std::uint8_t* count;
  const std::uint8_t* photo_before;
  FlowModel model;
  std::array<float, change_parameters> change;
  DepthNoise noise;          // in time
  float photo_tolerance;     // grey levels
  float photo_shift;         // misalignment in pixels, at most 1
  float depth_tolerance;     // units of noise
  float* past;               // result: depth of the past, with the camera's change of depth
  std::uint8_t* steadiness;  // result
  std::int16_t* difference;  // result: z - past where steady and known, else no_difference
};

namespace detail {

inline constexpr std::size_t compare_rows = 16;  // rows of one item of work

struct CompareScratch {
  std::vector<std::uint8_t> low, high, changed;
  std::vector<float> depth_low, depth_high;

  explicit CompareScratch(std::size_t width)
      : low((width + 2) * photo_channels),
        high((width + 2) * photo_channels),
        changed(width * photo_channels),
        depth_low(width + 2),
        depth_high(width + 2) {}
};

// Writes the lowest and highest of three rows, each with `border` items repeated at both ends.
template <class T>
BILATERAL_INLINE void column_range(const T* a, const T* b, const T* c, std::size_t n,
                                   std::size_t border, T* __restrict low, T* __restrict high) {
  for (std::size_t i = 0; i < n; ++i) {
    low[border + i] = std::min(std::min(a[i], b[i]), c[i]);
    high[border + i] = std::max(std::max(a[i], b[i]), c[i]);
  }
  for (T* row : {low, high}) {
    std::copy_n(row + border, border, row);
    std::copy_n(row + n, border, row + n + border);
  }
}

// Marks the bytes of a photograph that differ by more than a shift and the tolerance explain. A
// shift changes a byte by at most `shift` / 256 of the way to the lowest and highest of 3 x 3
// pixels.
BILATERAL_INLINE void photo_changed(const std::uint8_t* now, const std::uint8_t* before,
                                    const std::uint8_t* __restrict low,
                                    const std::uint8_t* __restrict high, std::uint8_t tolerance,
                                    std::uint16_t shift, std::size_t bytes,
                                    std::uint8_t* __restrict changed) {
  constexpr std::size_t k = photo_channels;
  const auto part = [shift](int way) __attribute__((always_inline)) {
    return static_cast<std::uint8_t>(static_cast<std::uint16_t>(way * shift) >> 8);
  };
  for (std::size_t i = 0; i < bytes; ++i) {
    const std::uint8_t lowest = std::min(std::min(low[i], low[i + k]), low[i + 2 * k]);
    const std::uint8_t highest = std::max(std::max(high[i], high[i + k]), high[i + 2 * k]);
    const auto least = static_cast<std::uint8_t>(before[i] - part(before[i] - lowest));
    const auto most = static_cast<std::uint8_t>(before[i] + part(highest - before[i]));
    const auto above = static_cast<std::uint8_t>(now[i] > most ? now[i] - most : 0);
    const auto below = static_cast<std::uint8_t>(now[i] < least ? least - now[i] : 0);
    changed[i] = (above > tolerance) | (below > tolerance);
  }
}

BILATERAL_INLINE void compare_row_body(const CompareTask& task, CompareScratch& scratch,
                                       std::size_t y) {
  const std::size_t width = task.width, row = y * width, bytes = width * photo_channels;
  const std::size_t up = y > 0 ? row - width : row, down = y + 1 < task.height ? row + width : row;
  const std::uint8_t* photo = task.photo_before;
  column_range(photo + up * photo_channels, photo + row * photo_channels,
               photo + down * photo_channels, bytes, photo_channels, scratch.low.data(),
               scratch.high.data());
  photo_changed(task.photo + row * photo_channels, photo + row * photo_channels, scratch.low.data(),
                scratch.high.data(), static_cast<std::uint8_t>(task.photo_tolerance),
                static_cast<std::uint16_t>(256 * task.photo_shift), bytes, scratch.changed.data());
  column_range(task.before + up, task.before + row, task.before + down, width, 1,
               scratch.depth_low.data(), scratch.depth_high.data());
  const float *low = scratch.depth_low.data(), *high = scratch.depth_high.data();
  const float Y = (static_cast<float>(y) - task.model.centre_y) * task.model.scale;
  const float change_y = task.change[2] * Y + task.change[3];
  const std::uint8_t* channel_changed = scratch.changed.data();
  const float *z = task.z + row, *x = task.x + row, *before = task.before + row;
  for (std::size_t i = 0; i < width; ++i) {
    std::uint32_t any_channel;
    std::memcpy(&any_channel, channel_changed + i * photo_channels, sizeof any_channel);
    const float X = (static_cast<float>(i) - task.model.centre_x) * task.model.scale;
    const float past = before[i] + task.change[0] + (task.change[1] * X + change_y) * x[i];
    const float noise = task.noise.at(x[i]), size = std::abs(x[i]);
    const float least = std::min(std::min(low[i], low[i + 1]), low[i + 2]);
    const float most = std::max(std::max(high[i], high[i + 1]), high[i + 2]);
    const float tolerance =
        task.depth_tolerance * noise + 0.5f * std::min(most - least, 0.02f * size);
    const float value = task.kept[row + i] ? x[i] : z[i];
    const bool moved = std::abs(value - past) > tolerance;  // false for NaN
    const bool same = (any_channel == 0) & !moved, still = same & (task.count[row + i] > 0);
    const float e = (z[i] - past) / noise;
    const float limited = std::max(std::min(e, largest_difference), -largest_difference);
    const float known = e == e ? limited : 0;
    const auto units = static_cast<std::int16_t>(
        static_cast<std::int32_t>(std::nearbyint(known * differences_per_noise)));
    task.past[row + i] = past;
    const bool had_data = (task.count[row + i] & was_measured) != 0;
    const bool gone = had_data & (std::abs(x[i] - past) > tolerance);
    // Of a doubtful measurement. Comparisons with NaN are false.
    const float from_past = std::abs(task.measured[row + i] - past);
    const float from_filling = std::abs(task.measured[row + i] - x[i]);
    const Steadiness side = from_past <= tolerance            ? supported
                            : from_past < 0.5f * from_filling ? preferred
                            : from_filling < 0.5f * from_past ? opposed
                            : gone                            ? lost
                                                              : steady;
    const Steadiness agreement = task.kept[row + i] ? steady : side;
    task.steadiness[row + i] = still ? agreement : same ? no_past : changed;
    task.difference[row + i] = (still & (e == e)) ? units : no_difference;
  }
}
inline constexpr auto compare_row = multiversion<compare_row_body>;

}  // namespace detail

inline void compare_past(const CompareTask& task, int threads) {
  using namespace detail;
  const int team = team_size(threads, task.height * task.width, 16384);
  std::vector<std::vector<CompareScratch>> scratches(static_cast<std::size_t>(team));
  parallel_for(team, (task.height + compare_rows - 1) / compare_rows,
               [&](std::size_t item, std::size_t rank) {
                 if (scratches[rank].empty()) scratches[rank].emplace_back(task.width);
                 for (std::size_t y = item * compare_rows;
                      y < std::min((item + 1) * compare_rows, task.height); ++y)
                   compare_row(task, scratches[rank].front(), y);
               });
}

}  // namespace bilateral
