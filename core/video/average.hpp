// Average the present with the steady past. The past is shifted first by the local mean of the
// difference, so that slow changes of depth do not lag.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/multiversion.hpp"
#include "base/threads.hpp"
#include "video/compare.hpp"
#include "video/noise.hpp"
#include "video/warp.hpp"

namespace bilateral {

struct AverageRules {
  std::size_t radius;  // of the window of local means and changes, in pixels
  float least_shift;   // units of noise: a smaller mean difference is noise
  float most_shift;    // units of noise: a larger mean difference is a change of the scene
  float same;          // units of noise: present and past differ by less
  std::uint8_t most;   // largest number of frames in an average
  float settled;       // fillings use the past if a smaller part of their window changed
};

struct AverageTask {
  std::size_t height, width;
  const float* x;             // refined depth now
  const bool* kept;           // data rather than fillings
  const float* past;          // moved past
  const std::uint8_t* count;  // of the moved past
  const std::uint8_t* steadiness;
  const std::int16_t* difference;
  DepthNoise noise;  // in time
  AverageRules rules;
  float* out;               // result
  std::uint8_t* out_count;  // result; no frames: a held filling that the next frame does not use
};

namespace detail {

inline constexpr std::size_t average_rows = 48;  // rows of one item of work

// Sums of differences, their number and the number of changed pixels, along columns and then along
// a row. Sums of integers are exact, so that running sums do not depend on where they start.
struct MeanScratch {
  std::vector<std::uint32_t> sum, number, changes, row_sum, row_number, row_changes;
  std::vector<float> mean;
  std::vector<std::uint8_t> settled, surrounded;

  explicit MeanScratch(std::size_t width)
      : sum(width),
        number(width),
        changes(width),
        row_sum(width + 1),
        row_number(width + 1),
        row_changes(width + 1),
        mean(width),
        settled(width),
        surrounded(width) {}
};

// Adds a row of differences and changes to the sums along columns, or subtracts it.
BILATERAL_INLINE void add_differences_body(const std::int16_t* row, const std::uint8_t* steadiness,
                                           std::size_t width, bool add,
                                           std::uint32_t* __restrict sum,
                                           std::uint32_t* __restrict number,
                                           std::uint32_t* __restrict changes) {
  const std::uint32_t sign = add ? 1u : ~0u;
  for (std::size_t x = 0; x < width; ++x) {
    const std::uint32_t known = row[x] != no_difference;
    sum[x] += sign * static_cast<std::uint32_t>(known ? row[x] : 0);
    number[x] += sign * known;
    changes[x] += sign * ((steadiness[x] == changed) | (steadiness[x] == lost));
  }
}
inline constexpr auto add_differences = multiversion<add_differences_body>;

// Means over the columns [x - radius, x + radius] in units of noise, and whether less than a part
// of the window changed. Where there are few differences, the mean is nearer to 0. `rows` is the
// number of rows in the sums.
BILATERAL_INLINE void mean_row_body(MeanScratch& scratch, std::size_t width, std::size_t rows,
                                    const AverageRules& rules) {
  std::uint32_t *sum = scratch.row_sum.data(), *number = scratch.row_number.data();
  std::uint32_t* changes = scratch.row_changes.data();
  sum[0] = number[0] = changes[0] = 0;
  for (std::size_t x = 0; x < width; ++x) {
    sum[x + 1] = sum[x] + scratch.sum[x];
    number[x + 1] = number[x] + scratch.number[x];
    changes[x + 1] = changes[x] + scratch.changes[x];
  }
  const std::size_t radius = rules.radius;
  const auto side = static_cast<float>(2 * radius + 1), least = 0.05f * side * side;
  const float most = rules.settled * static_cast<float>(rows);
  float* __restrict mean = scratch.mean.data();
  std::uint8_t* __restrict settled = scratch.settled.data();
  const auto window = [&](std::size_t x, std::size_t first,
                          std::size_t end) __attribute__((always_inline)) {
    const auto total = static_cast<float>(static_cast<std::int32_t>(sum[end] - sum[first]));
    const auto known = static_cast<float>(static_cast<std::int32_t>(number[end] - number[first]));
    const auto moved = static_cast<float>(static_cast<std::int32_t>(changes[end] - changes[first]));
    mean[x] = total / (differences_per_noise * std::max(known, least));
    settled[x] = moved < most * static_cast<float>(end - first);
  };
  const std::size_t left = std::min(radius, width), right = width > radius ? width - radius : 0;
  for (std::size_t x = 0; x < left; ++x) window(x, 0, std::min(x + radius + 1, width));
  for (std::size_t x = left; x < right; ++x) window(x, x - radius, x + radius + 1);
  for (std::size_t x = std::max(left, right); x < width; ++x) window(x, x - radius, width);
}
inline constexpr auto mean_row = multiversion<mean_row_body>;

// Marks pixels that are steady together with their neighbours in x and y. A pixel at the former
// edge of a moving thing may look steady, but its neighbours do not.
BILATERAL_INLINE void surrounded_row_body(const AverageTask& task, std::size_t y,
                                          std::uint8_t* __restrict surrounded) {
  const std::size_t width = task.width;
  const std::uint8_t* row = task.steadiness + y * width;
  const std::uint8_t* up = y > 0 ? row - width : row;
  const std::uint8_t* down = y + 1 < task.height ? row + width : row;
  for (std::size_t x = 0; x < width; ++x)
    surrounded[x] = (row[x] != changed) & (up[x] != changed) & (down[x] != changed);
  for (std::size_t x = 1; x < width; ++x) surrounded[x] &= row[x - 1] != changed;
  for (std::size_t x = 0; x + 1 < width; ++x) surrounded[x] &= row[x + 1] != changed;
}
inline constexpr auto surrounded_row = multiversion<surrounded_row_body>;

// Fillings vote: one that agrees with the past makes it stronger by a frame, others make it weaker,
// until the past has no frames left. A past that was measured is better than any filling. Farther
// fillings count more: most holes are shadows of near things, where the farther surface continues.
// A hole beside something that moves is another hole in each frame, so fillings there start anew.
// Lost data count as changes: a thing that left may have had the colour of what is behind it.
BILATERAL_INLINE void average_row_body(const AverageTask& task, const MeanScratch& scratch,
                                       std::size_t y) {
  constexpr int opposed_votes = 2, farther_votes = 6;
  const AverageRules& rules = task.rules;
  const float* mean = scratch.mean.data();
  const std::uint8_t *surrounded = scratch.surrounded.data(), *settled = scratch.settled.data();
  const std::size_t row = y * task.width;
  for (std::size_t i = row; i < row + task.width; ++i) {
    const float x = task.x[i], noise = task.noise.at(x), local = mean[i - row];
    const float size = std::abs(local), beyond = std::max(size - rules.least_shift, 0.0f);
    const float past = task.past[i] + noise * (local < 0 ? -beyond : beyond);
    const std::uint8_t steadiness = task.steadiness[i];
    const bool has_past = (steadiness != changed) & (steadiness != no_past);
    const bool filling = !task.kept[i], usable = !filling | (settled[i - row] != 0);
    const bool still = has_past & usable & (size < rules.most_shift);
    const bool near = still & (std::abs(past - x) < rules.same * noise);
    const bool measured = (task.count[i] & was_measured) != 0;
    const int frames = task.count[i] & frames_mask;
    const bool confirmed = steadiness == supported;
    const bool disputed = steadiness == opposed;
    const bool safe = confirmed | (steadiness == preferred) | (measured & !disputed);
    const int votes = safe ? 0 : disputed ? opposed_votes : x > past ? farther_votes : 1;
    const bool quiet = (surrounded[i - row] != 0) & (frames >= votes);
    const bool hold = still & !near & filling & (confirmed | quiet);
    const bool remembered = measured & filling & (near | hold);
    const int longer = remembered ? frames : std::min<int>(frames + 1, rules.most);
    const int after = near ? longer : hold ? frames - votes : 1;
    const float mixed = past + (x - past) / static_cast<float>(std::max(after, 1));
    task.out[i] = (hold | remembered) ? past : near ? mixed : x;
    task.out_count[i] =
        static_cast<std::uint8_t>(after | ((!filling | remembered) ? was_measured : 0));
  }
}
inline constexpr auto average_row = multiversion<average_row_body>;

}  // namespace detail

inline void average_past(const AverageTask& task, int threads) {
  using namespace detail;
  const std::size_t height = task.height, width = task.width, radius = task.rules.radius;
  const int team = team_size(threads, height * width, 16384);
  std::vector<std::vector<MeanScratch>> scratches(static_cast<std::size_t>(team));
  parallel_for(
      team, (height + average_rows - 1) / average_rows, [&](std::size_t item, std::size_t rank) {
        if (scratches[rank].empty()) scratches[rank].emplace_back(width);
        MeanScratch& scratch = scratches[rank].front();
        std::fill(scratch.sum.begin(), scratch.sum.end(), 0u);
        std::fill(scratch.number.begin(), scratch.number.end(), 0u);
        std::fill(scratch.changes.begin(), scratch.changes.end(), 0u);
        const auto add = [&](std::size_t y, bool plus) {
          add_differences(task.difference + y * width, task.steadiness + y * width, width, plus,
                          scratch.sum.data(), scratch.number.data(), scratch.changes.data());
        };
        const std::size_t top = item * average_rows, bottom = std::min(top + average_rows, height);
        std::size_t begin = std::max(top, radius) - radius, end = begin;  // rows in the sums
        for (std::size_t y = top; y < bottom; ++y) {
          for (; begin + radius < y; ++begin) add(begin, false);
          for (; end < std::min(y + radius + 1, height); ++end) add(end, true);
          mean_row(scratch, width, end - begin, task.rules);
          surrounded_row(task, y, scratch.surrounded.data());
          average_row(task, scratch, y);
        }
      });
}

}  // namespace bilateral
