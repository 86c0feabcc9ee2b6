// Block matching of a rectified pair: for each pixel of the left view, the interval of disparities
// whose cost is near the best one.
//
// The cost of a pair of pixels is the number of differing bits of their census transforms (which
// neighbours are darker than the pixel), summed over a window around them. Bands of rows are
// independent: each keeps the sums of its columns and moves them down by adding a row and taking
// one away. All costs are small integers in planes [disparity][column], so that every loop runs
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

// Two gray views of one size, and how to compare them.
struct StereoPair {
  const float* left;
  const float* right;
  std::size_t height, width;
  std::size_t disparities;  // 0, 1, ..., at most the width
  std::size_t radius;       // of the window, at most most_match_radius
  float margin;             // costs up to (1 + margin) times the best one are near it
};

// 62 bits * 21 * 21 fit 16 bits with a sign, and so do disparities.
inline constexpr std::size_t most_match_radius = 10, most_match_disparities = 32767;

namespace detail {

inline constexpr std::size_t census_x = 4, census_y = 3, census_bits = 62, match_rows = 48;
static_assert(census_bits == (2 * census_x + 1) * (2 * census_y + 1) - 1);
static_assert(census_bits * (2 * most_match_radius + 1) * (2 * most_match_radius + 1) <
              std::numeric_limits<std::int16_t>::max());

// Which of the neighbours of each pixel in row y are darker than it; the border is repeated.
// `rows` is scratch for 2 census_y + 1 rows with a border of census_x on each side.
BILATERAL_MULTIVERSION inline void census_row(const float* image, std::size_t height,
                                              std::size_t width, std::size_t y, float* rows,
                                              std::uint32_t* words, std::uint64_t* out) {
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
      const float* beside = rows + r * pitch + c;
      std::uint32_t* word = words + bit / 32 * width;
      const std::uint32_t value = 1u << bit % 32;
      for (std::size_t x = 0; x < width; ++x) word[x] |= beside[x] < centre[x] ? value : 0u;
      ++bit;
    }
  for (std::size_t x = 0; x < width; ++x)
    out[x] = static_cast<std::uint64_t>(words[width + x]) << 32 | words[x];
}

// What one thread needs for a band: planes of `disparities` rows.
struct MatchScratch {
  std::vector<float> rows;
  std::vector<std::uint32_t> words;
  std::vector<std::uint64_t> left, right;   // census of one row
  std::vector<std::uint8_t> ring;           // costs of the window's rows
  std::vector<std::int16_t> columns, sums;  // costs summed along columns, then over windows
  std::vector<std::int16_t> best, arg, other_best, other_arg;

  explicit MatchScratch(const StereoPair& pair)
      : rows((2 * census_y + 1) * (pair.width + 2 * census_x)),
        words(2 * pair.width),
        left(pair.width),
        right(pair.width),
        ring((2 * pair.radius + 1) * pair.disparities * pair.width),
        columns(pair.disparities * (pair.width + 2 * pair.radius)),
        sums(pair.disparities * pair.width),
        best(pair.width),
        arg(pair.width),
        other_best(pair.width),
        other_arg(pair.width) {}
};

// Costs of one row at every disparity, added to the sums along columns. A pixel whose partner lies
// outside the right view differs from it in every bit.
BILATERAL_MULTIVERSION inline void add_match_row(const StereoPair& pair, MatchScratch& scratch,
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

BILATERAL_MULTIVERSION inline void take_match_row(const StereoPair& pair, MatchScratch& scratch,
                                                  const std::uint8_t* costs) {
  const std::size_t width = pair.width, pitch = width + 2 * pair.radius;
  for (std::size_t d = 0; d < pair.disparities; ++d) {
    const std::uint8_t* cost = costs + d * width;
    std::int16_t* column = scratch.columns.data() + d * pitch + pair.radius;
    for (std::size_t x = 0; x < width; ++x)
      column[x] = static_cast<std::int16_t>(column[x] - cost[x]);
  }
}

BILATERAL_INLINE void keep_least(const std::int16_t* cost, std::int16_t d, std::size_t n,
                                 std::int16_t* best, std::int16_t* arg) {
  for (std::size_t x = 0; x < n; ++x) {
    arg[x] = cost[x] < best[x] ? d : arg[x];
    best[x] = std::min(cost[x], best[x]);
  }
}

// Sums over windows, and the best disparity in both views; of equal ones the least. The border's
// costs are repeated beyond it, since the right view compares windows of different places.
BILATERAL_MULTIVERSION inline void match_windows(const StereoPair& pair, MatchScratch& scratch) {
  const std::size_t width = pair.width, pitch = width + 2 * pair.radius;
  constexpr std::int16_t most = std::numeric_limits<std::int16_t>::max();
  for (auto* best : {&scratch.best, &scratch.other_best})
    std::fill(best->begin(), best->end(), most);
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
    keep_least(sum + d, disparity, width - d, scratch.best.data() + d, scratch.arg.data() + d);
    keep_least(sum + d, disparity, width - d, scratch.other_best.data(), scratch.other_arg.data());
  }
}

// Around the best disparity of column x, as far as costs stay within the margin. The ends lie
// between two disparities, where the cost reaches it along a straight line: the one through both
// or, beside the best disparity, the steeper of its two sides. At a margin of 0, their middle is
// then where the two sides of a symmetric valley meet.
inline std::array<float, 2> match_interval(const StereoPair& pair, const MatchScratch& scratch,
                                           std::size_t x) {
  const auto cost = [&](std::size_t d) {
    return static_cast<float>(scratch.sums[d * pair.width + x]);
  };
  const auto best = static_cast<std::size_t>(scratch.arg[x]);
  const std::size_t last = std::min(pair.disparities - 1, x);
  const float least = cost(best), level = least * (1 + pair.margin);
  float steepest = 0;
  if (best > 0 && best < last) steepest = std::max(cost(best - 1) - least, cost(best + 1) - least);
  const auto beyond = [&](std::size_t inside, std::size_t outside) {
    const float slope = cost(outside) - cost(inside);
    return 1 - (cost(outside) - level) / (inside == best ? std::max(slope, steepest) : slope);
  };
  std::size_t low = best, high = best;
  while (low > 0 && cost(low - 1) <= level) --low;
  while (high < last && cost(high + 1) <= level) ++high;
  auto lower = static_cast<float>(low), upper = static_cast<float>(high);
  if (low > 0) lower -= beyond(low, low - 1);
  if (high < last) upper += beyond(high, high + 1);
  return {lower, upper};
}

}  // namespace detail

// What is found for each pixel: in the left view the interval and the best disparity, which lies in
// it, and in the right view the best disparity.
struct Matches {
  float *lower, *upper, *left, *right;
};

inline void match_blocks(const StereoPair& pair, const Matches& found, int threads) {
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
    std::size_t next = first, gone = first;  // rows within the window: [gone, next)
    for (std::size_t y = top; y < bottom; ++y) {
      for (; gone + radius < y; ++gone)
        take_match_row(pair, scratch, scratch.ring.data() + gone % window * plane);
      for (; next < std::min(y + radius + 1, height); ++next) {
        census_row(pair.left, height, width, next, scratch.rows.data(), scratch.words.data(),
                   scratch.left.data());
        census_row(pair.right, height, width, next, scratch.rows.data(), scratch.words.data(),
                   scratch.right.data());
        add_match_row(pair, scratch, scratch.ring.data() + next % window * plane);
      }
      match_windows(pair, scratch);
      for (std::size_t x = 0; x < width; ++x) {
        const auto [low, high] = match_interval(pair, scratch, x);
        found.lower[y * width + x] = low;
        found.upper[y * width + x] = high;
        found.left[y * width + x] = static_cast<float>(scratch.arg[x]);
        found.right[y * width + x] = static_cast<float>(scratch.other_arg[x]);
      }
    }
  });
}

}  // namespace bilateral
