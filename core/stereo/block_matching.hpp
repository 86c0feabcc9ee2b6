// Block matching of a rectified stereo pair: finds, for each pixel of the left view, the interval
// of disparities whose cost is close to the least cost.
//
// The cost of a pair of pixels is the Hamming distance of their census transforms (bits that tell
// which neighbours are darker than the pixel), summed over a window. Bands of rows are independent.
// Each band keeps the window's sums along columns; from row to row it adds one row and subtracts
// another. All costs are small integers in planes [disparity][column], so that every loop runs
// along columns and the result is exact.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/multiversion.hpp"
#include "base/threads.hpp"

namespace bilateral {

// Two gray views of the same size, and the options of the matching.
struct StereoPair {
  const float* left;
  const float* right;
  std::size_t height, width;
  std::size_t disparities;  // number of disparities 0, 1, ..., at most the width
  std::size_t radius;       // of the window, at most max_match_radius
  float margin;             // costs up to (1 + margin) times the least are in the interval
};

// Costs of at most 62 bits * 21 * 21 fit into signed 16 bits, and so do disparities.
inline constexpr std::size_t max_match_radius = 10, max_match_disparities = 32767;

namespace detail {

inline constexpr std::size_t census_x = 4, census_y = 3, census_bits = 62, match_rows = 48;
static_assert(census_bits == (2 * census_x + 1) * (2 * census_y + 1) - 1);
static_assert(census_bits * (2 * max_match_radius + 1) * (2 * max_match_radius + 1) <
              std::numeric_limits<std::int16_t>::max());

// Writes the census transform of row y: one bit per neighbour, set if the neighbour is darker than
// the pixel. The image's border is repeated. `rows` is scratch for 2 census_y + 1 rows with a
// border of census_x pixels on each side, `words` for two numbers per pixel.
BILATERAL_INLINE void census_row_body(const float* image, std::size_t height, std::size_t width,
                                      std::size_t y, float* rows, std::uint32_t* words,
                                      std::uint64_t* out) {
  const std::size_t pitch = width + 2 * census_x;
  for (std::size_t r = 0; r < 2 * census_y + 1; ++r) {
    const std::size_t from = std::min(std::max(y + r, census_y) - census_y, height - 1);
    const float* row = image + from * width;
    float* to = rows + r * pitch;
    std::fill_n(to, census_x, row[0]);
    std::copy_n(row, width, to + census_x);
    std::fill_n(to + census_x + width, census_x, row[width - 1]);
  }
  std::fill_n(words, 2 * width, 0u);
  const float* centre = rows + census_y * pitch + census_x;
  std::size_t bit = 0;
  for (std::size_t r = 0; r < 2 * census_y + 1; ++r)
    for (std::size_t c = 0; c < 2 * census_x + 1; ++c) {
      if (r == census_y && c == census_x) continue;
      const float* neighbour = rows + r * pitch + c;
      std::uint32_t* word = words + bit / 32 * width;
      const std::uint32_t value = 1u << bit % 32;
      for (std::size_t x = 0; x < width; ++x) word[x] |= neighbour[x] < centre[x] ? value : 0u;
      ++bit;
    }
  for (std::size_t x = 0; x < width; ++x)
    out[x] = static_cast<std::uint64_t>(words[width + x]) << 32 | words[x];
}
inline constexpr auto census_row = multiversion<census_row_body>;

// Memory of one thread. A plane has `disparities` rows.
struct MatchScratch {
  std::vector<float> rows;
  std::vector<std::uint32_t> words;
  std::vector<std::uint64_t> left, right;   // census transforms of one row
  std::vector<std::uint8_t> ring;           // one plane of costs for each row of the window
  std::vector<std::int16_t> columns, sums;  // planes of costs, summed along columns; over windows
  std::vector<std::int16_t> left_least, left_best;    // least cost of each pixel; its disparity
  std::vector<std::int16_t> right_least, right_best;  // the same for the right view

  explicit MatchScratch(const StereoPair& pair)
      : rows((2 * census_y + 1) * (pair.width + 2 * census_x)),
        words(2 * pair.width),
        left(pair.width),
        right(pair.width),
        ring((2 * pair.radius + 1) * pair.disparities * pair.width),
        columns(pair.disparities * (pair.width + 2 * pair.radius)),
        sums(pair.disparities * pair.width),
        left_least(pair.width),
        left_best(pair.width),
        right_least(pair.width),
        right_best(pair.width) {}
};

// Computes the costs of one row at every disparity, and adds them to the sums along columns. A
// pixel whose partner is outside the right view has the largest cost.
BILATERAL_INLINE void add_match_row_body(const StereoPair& pair, MatchScratch& scratch,
                                         std::uint8_t* costs) {
  const std::size_t width = pair.width, pitch = width + 2 * pair.radius;
  const std::uint64_t *left = scratch.left.data(), *right = scratch.right.data();
  for (std::size_t d = 0; d < pair.disparities; ++d) {
    std::uint8_t* cost = costs + d * width;
    std::fill_n(cost, d, static_cast<std::uint8_t>(census_bits));
    for (std::size_t x = d; x < width; ++x)
      cost[x] = static_cast<std::uint8_t>(std::popcount(left[x] ^ right[x - d]));
    std::int16_t* column = scratch.columns.data() + d * pitch + pair.radius;
    for (std::size_t x = 0; x < width; ++x)
      column[x] = static_cast<std::int16_t>(column[x] + cost[x]);
  }
}
inline constexpr auto add_match_row = multiversion<add_match_row_body>;

// Subtracts the costs of one row from the sums along columns.
BILATERAL_INLINE void subtract_match_row_body(const StereoPair& pair, MatchScratch& scratch,
                                              const std::uint8_t* costs) {
  const std::size_t width = pair.width, pitch = width + 2 * pair.radius;
  for (std::size_t d = 0; d < pair.disparities; ++d) {
    const std::uint8_t* cost = costs + d * width;
    std::int16_t* column = scratch.columns.data() + d * pitch + pair.radius;
    for (std::size_t x = 0; x < width; ++x)
      column[x] = static_cast<std::int16_t>(column[x] - cost[x]);
  }
}
inline constexpr auto subtract_match_row = multiversion<subtract_match_row_body>;

// Updates the least cost of n pixels, and its disparity, with the costs of the disparity d.
BILATERAL_INLINE void keep_least(const std::int16_t* cost, std::int16_t d, std::size_t n,
                                 std::int16_t* least, std::int16_t* best) {
  for (std::size_t x = 0; x < n; ++x) {
    best[x] = cost[x] < least[x] ? d : best[x];
    least[x] = std::min(cost[x], least[x]);
  }
}

// Sums the costs over windows, and finds the best disparity in both views. The smallest disparity
// breaks ties. Costs are repeated beyond the border: the right view compares windows of different
// places, so all windows must have the same size.
BILATERAL_INLINE void match_windows_body(const StereoPair& pair, MatchScratch& scratch) {
  const std::size_t width = pair.width, pitch = width + 2 * pair.radius;
  constexpr std::int16_t max = std::numeric_limits<std::int16_t>::max();
  for (auto* least : {&scratch.left_least, &scratch.right_least})
    std::fill(least->begin(), least->end(), max);
  for (std::size_t d = 0; d < pair.disparities; ++d) {
    std::int16_t* column = scratch.columns.data() + d * pitch;
    std::fill_n(column, pair.radius, column[pair.radius]);
    std::fill_n(column + pair.radius + width, pair.radius, column[pair.radius + width - 1]);
    std::int16_t* sum = scratch.sums.data() + d * width;
    std::copy_n(column, width, sum);
    for (std::size_t k = 1; k < 2 * pair.radius + 1; ++k)
      for (std::size_t x = 0; x < width; ++x)
        sum[x] = static_cast<std::int16_t>(sum[x] + column[x + k]);
    const auto disparity = static_cast<std::int16_t>(d);
    keep_least(sum + d, disparity, width - d, scratch.left_least.data() + d,
               scratch.left_best.data() + d);
    keep_least(sum + d, disparity, width - d, scratch.right_least.data(),
               scratch.right_best.data());
  }
}
inline constexpr auto match_windows = multiversion<match_windows_body>;

// Returns the interval around the best disparity of column x in which costs stay within the margin.
// Between two disparities, the cost is taken as linear: an end of the interval is the place where
// it reaches the margin. Next to the best disparity, the slope is the steeper one of the two sides:
// at a margin of 0, the middle of the interval is then where the sides of a symmetric valley meet.
inline std::array<float, 2> match_interval(const StereoPair& pair, const MatchScratch& scratch,
                                           std::size_t x) {
  const auto cost = [&](std::size_t d) {
    return static_cast<float>(scratch.sums[d * pair.width + x]);
  };
  const auto best = static_cast<std::size_t>(scratch.left_best[x]);
  const std::size_t last = std::min(pair.disparities - 1, x);
  const float least = cost(best), limit = least * (1 + pair.margin);
  float steepest = 0;
  if (best > 0 && best < last) steepest = std::max(cost(best - 1) - least, cost(best + 1) - least);
  // Returns how far the interval extends from the disparity `inside` towards `outside`.
  const auto extension = [&](std::size_t inside, std::size_t outside) {
    const float slope = cost(outside) - cost(inside);
    return 1 - (cost(outside) - limit) / (inside == best ? std::max(slope, steepest) : slope);
  };
  std::size_t low = best, high = best;
  while (low > 0 && cost(low - 1) <= limit) --low;
  while (high < last && cost(high + 1) <= limit) ++high;
  auto lower = static_cast<float>(low), upper = static_cast<float>(high);
  if (low > 0) lower -= extension(low, low - 1);
  if (high < last) upper += extension(high, high + 1);
  return {lower, upper};
}

}  // namespace detail

// The result, one number per pixel: the interval of disparities in the left view, and the best
// disparity in both views. In the left view, the interval contains the best disparity.
struct Matches {
  float *lower, *upper, *left, *right;
};

inline void match_blocks(const StereoPair& pair, const Matches& matches, int threads) {
  using namespace detail;
  const std::size_t height = pair.height, width = pair.width, radius = pair.radius;
  const std::size_t window = 2 * radius + 1, plane = pair.disparities * width;
  const std::size_t bands = (height + match_rows - 1) / match_rows;
  const int team = team_size(threads, height * plane, 1 << 20);
  std::vector<std::vector<MatchScratch>> scratches(static_cast<std::size_t>(team));
  parallel_for(team, bands, [&](std::size_t band, std::size_t rank) {
    if (scratches[rank].empty()) scratches[rank].emplace_back(pair);
    MatchScratch& scratch = scratches[rank].front();
    std::fill(scratch.columns.begin(), scratch.columns.end(), std::int16_t{0});
    const std::size_t top = band * match_rows, bottom = std::min(top + match_rows, height);
    const std::size_t first = std::max(top, radius) - radius;
    std::size_t window_begin = first, window_end = first;  // rows in the sums along columns
    for (std::size_t y = top; y < bottom; ++y) {
      for (; window_begin + radius < y; ++window_begin)
        subtract_match_row(pair, scratch, scratch.ring.data() + window_begin % window * plane);
      for (; window_end < std::min(y + radius + 1, height); ++window_end) {
        census_row(pair.left, height, width, window_end, scratch.rows.data(), scratch.words.data(),
                   scratch.left.data());
        census_row(pair.right, height, width, window_end, scratch.rows.data(), scratch.words.data(),
                   scratch.right.data());
        add_match_row(pair, scratch, scratch.ring.data() + window_end % window * plane);
      }
      match_windows(pair, scratch);
      for (std::size_t x = 0; x < width; ++x) {
        const auto [low, high] = match_interval(pair, scratch, x);
        matches.lower[y * width + x] = low;
        matches.upper[y * width + x] = high;
        matches.left[y * width + x] = static_cast<float>(scratch.left_best[x]);
        matches.right[y * width + x] = static_cast<float>(scratch.right_best[x]);
      }
    }
  });
}

}  // namespace bilateral
