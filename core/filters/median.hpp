// Median filter with a window of 3 x 3 or 5 x 5 and a symmetric border. It ignores NaN.
//
// The image is processed in tiles that fit into the cache, the columns of a tile in lanes. Windows
// share their work. Each row of a window is sorted once for all windows that contain it. Two
// windows that lie one above the other share all but one row: the middle ranks of the shared rows
// are found once.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/lanes.hpp"
#include "base/mirrored.hpp"
#include "base/multiversion.hpp"
#include "base/threads.hpp"
#include "filters/sorting_networks.hpp"

namespace bilateral {
namespace detail {

// Rows of output in a tile, and the least number of bytes in each.
inline constexpr std::size_t tile_rows = 16, tile_bytes = 8192;

template <class T>
inline constexpr std::size_t median_lanes = 32 / sizeof(T);
template <class T>
using MedianLanes = Lanes<T, median_lanes<T>>;

// Memory layout of a tile. The input has `rows` + size - 1 rows, `pitch` apart; neighbours in a row
// are `step` apart, since channels are interleaved. Row r, column x of the input is the corner of
// the window of row r, column x of the output, whose rows are `width` apart. The input's rows have
// `used` items; items beyond them are only in windows whose medians are discarded.
struct TileShape {
  std::size_t rows, width, pitch, step, used;
};

// Writes the medians along one vector of columns, for an even number of rows. The result for a
// window with NaN is arbitrary.
template <class T, std::size_t size>
BILATERAL_INLINE void median_columns(const T* in, T* out, const TileShape& tile) {
  using V = MedianLanes<T>;
  // Two windows share `shared` values. One of these can be the median of a window only if its rank
  // among them is one of the `ranks` from `first` on, since the last row adds `size` values.
  constexpr std::size_t shared = size * (size - 1), first = (size * size - 1) / 2 - size;
  constexpr std::size_t ranks = size + 1;
  static_assert(first + ranks <= shared);
  std::array<V, size> row[tile_rows + size - 1];
  for (std::size_t r = 0; r < tile.rows + size - 1; ++r) {
    std::array<V, size> neighbours;
    unroll<size>([&](auto i) __attribute__((always_inline)) {
      neighbours[i] = load_lanes<V>(in + r * tile.pitch + i * tile.step);
    });
    row[r] = sort(neighbours);
  }
  auto pair = merge(row[1], row[2]);
  for (std::size_t r = 0; r < tile.rows; r += 2) {
    std::array<V, ranks> middle;
    if constexpr (size == 3) {
      middle = part<first, ranks>(merge(row[r + 1], row[r + 2]));
    } else {
      const auto next = merge(row[r + 3], row[r + 4]);
      middle = part<first, ranks>(merge(pair, next));
      pair = next;
    }
    store_lanes(out + r * tile.width, merge(middle, row[r])[size]);
    store_lanes(out + (r + 1) * tile.width, merge(middle, row[r + size])[size]);
  }
}

// If some of the windows with the corners `in` contain NaN, writes the medians of the other values:
// the mean of the middle two for an even number of values, NaN for none.
template <class T, std::size_t size>
BILATERAL_INLINE void median_without_nan(const T* in, T* out, const TileShape& tile) {
  using V = MedianLanes<T>;
  using Integer = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  using Count = Lanes<Integer, median_lanes<T>>;
  const V nothing = V{} + std::numeric_limits<T>::quiet_NaN();
  const V infinity = V{} + std::numeric_limits<T>::infinity();
  const auto value_of = [&](std::size_t i) __attribute__((always_inline)) {
    return load_lanes<V>(in + i / size * tile.pitch + i % size * tile.step);
  };
  Count count = {};  // values that are not NaN
  for (std::size_t i = 0; i < size * size; ++i) count -= value_of(i) == value_of(i);
  if (fold_lanes<Integer, median_lanes<T>>(count, lanes_least) == size * size) return;

  constexpr std::size_t kept = size * size / 2 + 1;
  std::array<V, kept> lowest;  // of the values so far, ascending
  lowest.fill(infinity);
  for (std::size_t i = 0; i < size * size; ++i) {
    V value = value_of(i);
    value = value == value ? value : infinity;
    unroll<kept>([&](auto k) __attribute__((always_inline)) {
      const V least = lower(lowest[k], value);
      value = upper(lowest[k], value);
      lowest[k] = least;
    });
  }
  V low = nothing, high = nothing;  // low stays NaN for a window of NaN
  unroll<kept>([&](auto k) __attribute__((always_inline)) {
    constexpr Integer rank = k;
    low = ((count == 2 * rank + 1) | (count == 2 * rank + 2)) ? lowest[k] : low;
    high = ((count == 2 * rank) | (count == 2 * rank + 1)) ? lowest[k] : high;
  });
  const V half_sum = (low + high) * T(0.5), sum_of_halves = low * T(0.5) + high * T(0.5);
  const V mean = half_sum - half_sum == T(0) ? half_sum : sum_of_halves;  // the sum may overflow
  store_lanes(out, mean == mean ? mean : low);  // the mean of -inf and inf is -inf
}

template <class T>
BILATERAL_INLINE bool any_nan(const T* values, std::size_t n) {
  unsigned any = 0;
  for (std::size_t i = 0; i < n; ++i) any |= values[i] != values[i];
  return any != 0;
}

template <class T, std::size_t size>
BILATERAL_INLINE void median_tile(const T* in, T* out, const TileShape& tile) {
  for (std::size_t x = 0; x < tile.width; x += median_lanes<T>)
    median_columns<T, size>(in + x, out + x, tile);
  if constexpr (std::is_floating_point_v<T>) {
    std::size_t clean = 0;  // number of rows without NaN since the last row with NaN
    for (std::size_t r = 0; r < tile.rows + size - 1; ++r) {
      clean = any_nan(in + r * tile.pitch, tile.used) ? 0 : clean + 1;
      if (r < size - 1 || clean >= size) continue;
      const std::size_t top = r - (size - 1);
      for (std::size_t x = 0; x < tile.width; x += median_lanes<T>)
        median_without_nan<T, size>(in + top * tile.pitch + x, out + top * tile.width + x, tile);
    }
  }
}

// Copies the items [begin, end) of a row of `width` pixels, with whole pixels mirrored at its ends.
template <class T>
void copy_mirrored(const T* row, std::size_t width, std::size_t channels, std::ptrdiff_t begin,
                   std::ptrdiff_t end, T* to) {
  const auto items = static_cast<std::ptrdiff_t>(width * channels);
  const auto outside = [&](std::ptrdiff_t from, std::ptrdiff_t until) {
    for (std::ptrdiff_t i = from; i < until; ++i) {
      const auto k = static_cast<std::ptrdiff_t>(channels);
      const std::ptrdiff_t pixel = (i + 2 * k) / k - 2;  // the border has at most two pixels
      to[i - begin] =
          row[mirrored(pixel, width) * channels + static_cast<std::size_t>(i - pixel * k)];
    }
  };
  outside(begin, std::min<std::ptrdiff_t>(0, end));
  std::copy(row + std::max<std::ptrdiff_t>(begin, 0), row + std::min(end, items),
            to + std::max<std::ptrdiff_t>(-begin, 0));
  outside(std::max(items, begin), end);
}

}  // namespace detail

// Filters each channel of an image (H x W x K, row-major). `size` is 3 or 5.
template <class T>
void median(const T* image, std::size_t height, std::size_t width, std::size_t channels,
            std::size_t size, T* out, int threads) {
  using namespace detail;
  constexpr std::size_t lanes = median_lanes<T>;
  const std::size_t items = width * channels, border = size / 2 * channels;
  const auto whole_lanes = [](std::size_t n) { return (n + lanes - 1) / lanes * lanes; };
  const std::size_t tile_width =
      whole_lanes(std::min(items, std::max(tile_bytes / sizeof(T), 4 * channels)));
  const std::size_t pitch = tile_width + 2 * border;
  const std::size_t columns = (items + tile_width - 1) / tile_width;
  const std::size_t rows = (height + tile_rows - 1) / tile_rows;

  struct Scratch {
    std::vector<T> in, out;
  };
  const int team = team_size(threads, height * items, 65536);
  std::vector<Scratch> scratch(static_cast<std::size_t>(team));
  parallel_for(team, rows * columns, [&](std::size_t item, std::size_t rank) {
    auto& [from, to] = scratch[rank];
    from.resize((tile_rows + size - 1) * pitch);
    to.resize(tile_rows * tile_width);
    const std::size_t top = item / columns * tile_rows, left = item % columns * tile_width;
    const std::size_t bottom = std::min(top + tile_rows, height);
    const std::size_t right = std::min(left + tile_width, items);
    const TileShape tile{(bottom - top + 1) / 2 * 2, whole_lanes(right - left), pitch, channels,
                         right - left + 2 * border};
    for (std::size_t r = 0; r < tile.rows + size - 1; ++r) {
      const auto y = static_cast<std::ptrdiff_t>(top + r) - static_cast<std::ptrdiff_t>(size / 2);
      const auto begin = static_cast<std::ptrdiff_t>(left) - static_cast<std::ptrdiff_t>(border);
      copy_mirrored(image + mirrored(y, height) * items, width, channels, begin,
                    static_cast<std::ptrdiff_t>(right + border), from.data() + r * pitch);
    }
    if (size == 3)
      multiversion<median_tile<T, 3>>(from.data(), to.data(), tile);
    else
      multiversion<median_tile<T, 5>>(from.data(), to.data(), tile);
    for (std::size_t y = top; y < bottom; ++y)
      std::copy_n(to.data() + (y - top) * tile.width, right - left, out + y * items + left);
  });
}

}  // namespace bilateral
