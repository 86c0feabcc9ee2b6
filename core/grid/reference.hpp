// Map reference pixels to packed keys: affine features, divided into cells by their sigmas.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "base/lanes.hpp"
#include "base/multiversion.hpp"
#include "base/threads.hpp"
#include "grid/keys.hpp"

namespace bilateral {

// Coordinates farther than this many cells from 0 share the outermost cell. Finer cells are
// useless, since no two distinct 16-bit colours are that close.
inline constexpr double coordinate_limit = 0x1p40;

using Channels = std::array<double, max_channels>;

// The features of a pixel: sum_j matrix[k][j] * value_j + offset[k] of three values, or
// gain[k] * value_k + offset[k]. A cell of feature k has the size sigma[k].
struct FeatureMap {
  bool mixed = false;  // whether `matrix` replaces `gain`
  std::array<std::array<double, 3>, 3> matrix{};
  Channels gain{}, offset{}, sigma{};
};

// Pixels in row-major order: frames x height x width x channels.
template <class T>
struct Reference {
  const T* data;
  std::size_t frames, height, width, channels;
  FeatureMap map;
  std::optional<double> nominal_max;  // values are usually in [0, nominal_max]
};

// The cells of a pixel: floor(sum_j matrix[k][j] * value_j + shift[k]), or
// floor(gain[k] * value_k + shift[k]), from low[k] to high[k]. A cell outside becomes the nearest
// one inside: another thread may change a reference after its range was found. The cell of a value
// does not depend on the range, so that blocks of an image agree. Keys hold cell - low.
struct Binning {
  std::size_t channels;
  bool mixed;
  std::array<std::array<double, 3>, 3> matrix{};
  Channels gain{}, shift{};
  Channels low{}, high{};
  KeyLayout layout;

  bool has_negative_cells() const {
    return std::any_of(low.begin(), low.end(), [](double cell) { return cell < 0; });
  }
};

namespace detail {

template <class T>
BILATERAL_INLINE double cell_of(const T* pixel, const Binning& bins, std::size_t k) {
  double value = bins.shift[k];
  if (bins.mixed)
    value += bins.matrix[k][0] * static_cast<double>(pixel[0]) +
             bins.matrix[k][1] * static_cast<double>(pixel[1]) +
             bins.matrix[k][2] * static_cast<double>(pixel[2]);
  else
    value += bins.gain[k] * static_cast<double>(pixel[k]);
  return value;
}

// Limits a coordinate to [low, high]; NaN becomes low.
BILATERAL_INLINE double limit_cell(double cell, double low, double high) {
  const double above = cell > low ? cell : low;
  return above < high ? above : high;
}

// The field of a coordinate in a key: floor(value) - low. Truncation is enough without negative
// cells.
template <bool negative, class Integer>
BILATERAL_INLINE Integer field_of(double value, double low, double high) {
  const double limited = limit_cell(value, negative ? low : 0, high);
  auto cell = static_cast<Integer>(limited);
  if constexpr (negative) {
    cell -= static_cast<double>(cell) > limited ? Integer{1} : Integer{0};
    cell -= static_cast<Integer>(low);
  }
  return cell;
}

template <class T, bool negative>
BILATERAL_INLINE void rgb_keys(const T* pixels, std::size_t n, const Binning& bins,
                               NarrowKey* keys) {
  const double a00 = bins.matrix[0][0], a01 = bins.matrix[0][1], a02 = bins.matrix[0][2];
  const double a10 = bins.matrix[1][0], a11 = bins.matrix[1][1], a12 = bins.matrix[1][2];
  const double a20 = bins.matrix[2][0], a21 = bins.matrix[2][1], a22 = bins.matrix[2][2];
  const double b0 = bins.shift[0], b1 = bins.shift[1], b2 = bins.shift[2];
  const double l0 = bins.low[0], l1 = bins.low[1], l2 = bins.low[2];
  const double m0 = bins.high[0], m1 = bins.high[1], m2 = bins.high[2];
  const int s0 = bins.layout.shift[0], s1 = bins.layout.shift[1];
  for (std::size_t x = 0; x < n; ++x) {
    const double r = pixels[3 * x], g = pixels[3 * x + 1], b = pixels[3 * x + 2];
    const auto l = field_of<negative, std::int32_t>(a00 * r + a01 * g + a02 * b + b0, l0, m0);
    const auto u = field_of<negative, std::int32_t>(a10 * r + a11 * g + a12 * b + b1, l1, m1);
    const auto v = field_of<negative, std::int32_t>(a20 * r + a21 * g + a22 * b + b2, l2, m2);
    keys[x] = (l << s0) | (u << s1) | v;
  }
}

// Keys whose features each depend on one value. A constant `channels` makes the loop over a gray
// image simple.
template <class T, bool negative, class Count>
BILATERAL_INLINE void plain_keys(const T* pixels, std::size_t n, const Binning& bins,
                                 Count channels, NarrowKey* keys) {
  if (channels != 1) std::fill_n(keys, n, NarrowKey{0});
  for (std::size_t k = 0; k < channels; ++k) {
    const double a = bins.gain[k], b = bins.shift[k], low = bins.low[k], high = bins.high[k];
    const int s = bins.layout.shift[k];
    for (std::size_t x = 0; x < n; ++x) {
      const auto value = static_cast<double>(pixels[x * channels + k]);
      const auto cell = field_of<negative, std::int32_t>(a * value + b, low, high);
      keys[x] = channels == 1 ? cell : keys[x] | (cell << s);
    }
  }
}

template <class T>
BILATERAL_INLINE bool within(const T* values, std::size_t n, T highest) {
  unsigned inside = 1;
  for (std::size_t i = 0; i < n; ++i) inside &= (values[i] >= T{0}) & (values[i] <= highest);
  return inside != 0;
}

// Extends the range of the values of each of C channels by those of n pixels.
template <std::size_t C, class T>
BILATERAL_INLINE void extend_range_of(const T* pixels, std::size_t n, T* low, T* high) {
  constexpr std::size_t width = 32 / sizeof(T);
  using Values = Lanes<T, width>;  // C of them hold the values of `width` pixels
  Values least[C], most[C];
  for (std::size_t i = 0; i < C; ++i) {
    least[i] = Values{} + std::numeric_limits<T>::max();
    most[i] = Values{};
  }
  std::size_t x = 0;
  for (; x + width <= n; x += width)
    for (std::size_t i = 0; i < C; ++i) {
      const auto values = load_lanes<Values>(pixels + x * C + i * width);
      least[i] = lanes_least(values, least[i]);
      most[i] = lanes_most(values, most[i]);
    }
  for (std::size_t j = 0; j < C * width; ++j) {
    low[j % C] = std::min(low[j % C], least[j / width][j % width]);
    high[j % C] = std::max(high[j % C], most[j / width][j % width]);
  }
  for (std::size_t j = x * C; j < n * C; ++j) {
    low[j % C] = std::min(low[j % C], pixels[j]);
    high[j % C] = std::max(high[j % C], pixels[j]);
  }
}

template <class T>
BILATERAL_INLINE void extend_range(const T* pixels, std::size_t n, std::size_t channels, T* low,
                                   T* high) {
  if (channels == 1) return extend_range_of<1>(pixels, n, low, high);
  if (channels == 3) return extend_range_of<3>(pixels, n, low, high);
  for (std::size_t x = 0; x < n; ++x)
    for (std::size_t k = 0; k < channels; ++k) {
      low[k] = std::min(low[k], pixels[x * channels + k]);
      high[k] = std::max(high[k], pixels[x * channels + k]);
    }
}

template <class T>
void rgb_row(const T* pixels, std::size_t n, const Binning& bins, NarrowKey* keys) {
  if (bins.has_negative_cells())
    widest_version<rgb_keys<T, true>>(pixels, n, bins, keys);
  else
    widest_version<rgb_keys<T, false>>(pixels, n, bins, keys);
}

template <class T>
void gray_row(const T* pixels, std::size_t n, const Binning& bins, NarrowKey* keys) {
  using One = std::integral_constant<std::size_t, 1>;
  if (bins.has_negative_cells())
    widest_version<plain_keys<T, true, One>>(pixels, n, bins, One{}, keys);
  else
    widest_version<plain_keys<T, false, One>>(pixels, n, bins, One{}, keys);
}

template <class T>
bool all_within(const T* values, std::size_t n, T highest) {
  return multiversion<within<T>>(values, n, highest);
}

}  // namespace detail

// The keys of n consecutive pixels.
template <class T>
void row_keys(const T* pixels, std::size_t n, const Binning& bins, NarrowKey* keys) {
  if (bins.mixed)
    detail::rgb_row(pixels, n, bins, keys);
  else if (bins.channels == 1)
    detail::gray_row(pixels, n, bins, keys);
  else
    detail::plain_keys<T, true>(pixels, n, bins, bins.channels, keys);
}

template <class T>
void row_keys(const T* pixels, std::size_t n, const Binning& bins, WideKey* keys) {
  for (std::size_t x = 0; x < n; ++x) {
    WideKey key = 0;
    for (std::size_t k = 0; k < bins.channels; ++k) {
      const double cell = detail::cell_of(pixels + x * bins.channels, bins, k);
      const auto field = detail::field_of<true, std::int64_t>(cell, bins.low[k], bins.high[k]);
      key |= static_cast<WideKey>(field) << bins.layout.shift[k];
    }
    keys[x] = key;
  }
}

// The keys of 8-bit pixels whose features each depend on one value, by a table for each feature.
class KeyTables {
 public:
  explicit KeyTables(const Binning& bins) : tables_(bins.channels) {
    std::vector<std::uint8_t> pixels;  // all values of a pixel are equal
    for (std::size_t value = 0; value < 256; ++value)
      pixels.insert(pixels.end(), bins.channels, static_cast<std::uint8_t>(value));
    std::array<NarrowKey, 256> keys;
    row_keys(pixels.data(), keys.size(), bins, keys.data());
    for (std::size_t k = 0; k < bins.channels; ++k) {
      const NarrowKey field = ((NarrowKey{1} << bins.layout.bits[k]) - 1) << bins.layout.shift[k];
      for (std::size_t value = 0; value < 256; ++value) tables_[k][value] = keys[value] & field;
    }
  }

  void row(const std::uint8_t* pixels, std::size_t n, NarrowKey* keys) const {
    if (tables_.size() == 3)
      write(pixels, n, std::integral_constant<std::size_t, 3>{}, keys);
    else
      write(pixels, n, tables_.size(), keys);
  }

 private:
  template <class Count>
  void write(const std::uint8_t* pixels, std::size_t n, Count channels, NarrowKey* keys) const {
    for (std::size_t x = 0; x < n; ++x) {
      NarrowKey key = 0;
      for (std::size_t k = 0; k < channels; ++k) key |= tables_[k][pixels[x * channels + k]];
      keys[x] = key;
    }
  }

  std::vector<std::array<NarrowKey, 256>> tables_;
};

// The lowest cell and the highest coordinate of each feature, 0 included.
struct CellRange {
  Channels low{}, high{};
};

namespace detail {

// The range of pixels whose values lie in [0, white].
inline CellRange nominal_range(const Binning& bins, double white) {
  CellRange range;
  for (std::size_t k = 0; k < bins.channels; ++k) {
    range.high[k] = bins.shift[k] + std::max(bins.gain[k], 0.0) * white;
    if (bins.mixed)
      for (const double factor : bins.matrix[k]) range.high[k] += std::max(factor, 0.0) * white;
  }
  return range;
}

// The range of pixels in whole numbers whose features each depend on one value: a cell grows or
// falls with its value, so the lowest and the highest value are enough.
template <class T>
CellRange measured_range_of_integers(const Reference<T>& reference, const Binning& bins,
                                     int threads) {
  const std::size_t rows = reference.frames * reference.height, channels = bins.channels;
  struct Values {
    std::array<T, max_channels> low, high;
  };
  std::vector<Values> row_values(rows);
  parallel_for(team_size(threads, rows * reference.width, 65536), rows,
               [&](std::size_t y, std::size_t) {
                 Values& values = row_values[y];
                 values.low.fill(std::numeric_limits<T>::max());
                 values.high.fill(0);
                 multiversion<extend_range<T>>(reference.data + y * reference.width * channels,
                                               reference.width, channels, values.low.data(),
                                               values.high.data());
               });
  CellRange range;
  for (std::size_t k = 0; k < channels; ++k)
    for (const Values& values : row_values)
      for (const T value : {values.low[k], values.high[k]}) {
        const double cell = std::clamp(bins.shift[k] + bins.gain[k] * static_cast<double>(value),
                                       -coordinate_limit, coordinate_limit);
        range.low[k] = std::min(range.low[k], std::floor(cell));
        range.high[k] = std::max(range.high[k], cell);
      }
  return range;
}

// The range of all pixels.
template <class T>
CellRange measured_range(const Reference<T>& reference, const Binning& bins, int threads) {
  if constexpr (std::is_integral_v<T>)
    if (!bins.mixed) return measured_range_of_integers(reference, bins, threads);
  const std::size_t rows = reference.frames * reference.height;
  const std::size_t row = reference.width * reference.channels;
  std::vector<CellRange> row_ranges(rows);
  parallel_for(threads, rows, [&](std::size_t y, std::size_t) {
    CellRange range;
    for (std::size_t x = 0; x < reference.width; ++x)
      for (std::size_t k = 0; k < bins.channels; ++k) {
        const T* pixel = reference.data + y * row + x * bins.channels;
        const double value = cell_of(pixel, bins, k);
        if (!std::isfinite(value))
          throw std::domain_error(
              "expected values of a size that can be weighed, got larger ones. "
              "Divide them by their maximum.");
        const double cell = std::clamp(value, -coordinate_limit, coordinate_limit);
        range.low[k] = std::min(range.low[k], std::floor(cell));
        range.high[k] = std::max(range.high[k], cell);
      }
    row_ranges[y] = range;
  });
  CellRange all;
  for (const CellRange& range : row_ranges)
    for (std::size_t k = 0; k < bins.channels; ++k) {
      all.low[k] = std::min(all.low[k], range.low[k]);
      all.high[k] = std::max(all.high[k], range.high[k]);
    }
  return all;
}

}  // namespace detail

// Chooses the cells and the key layout of a finite reference. Values outside the nominal range
// cost one more pass, which finds the true range. `edge_guard` is added to a coordinate before
// truncation: a value on the border of two cells falls into the upper cell in spite of rounding
// errors, such as those of .299 k + .587 k + .114 k.
template <class T>
Binning make_binning(const Reference<T>& reference, double edge_guard, int threads) {
  const FeatureMap& map = reference.map;
  Binning bins;
  bins.channels = reference.channels;
  bins.mixed = map.mixed;
  const std::size_t rows = reference.frames * reference.height;
  const std::size_t row = reference.width * reference.channels;
  for (std::size_t k = 0; k < bins.channels; ++k) {
    const double max_inverse = reference.nominal_max ? coordinate_limit / 512 : HUGE_VAL;
    const double inverse = std::min(1 / map.sigma[k], max_inverse);
    if (map.mixed)
      for (std::size_t j = 0; j < 3; ++j) bins.matrix[k][j] = map.matrix[k][j] * inverse;
    bins.gain[k] = map.gain[k] * inverse;
    bins.shift[k] = map.offset[k] * inverse + edge_guard;
  }
  std::atomic<bool> nominal{reference.nominal_max.has_value()};
  const auto limit = static_cast<double>(std::numeric_limits<T>::max());
  const double white = std::min(reference.nominal_max.value_or(0), limit);
  if (nominal && (std::is_floating_point_v<T> || white < limit))
    parallel_for(threads, rows, [&](std::size_t y, std::size_t) {
      if (!detail::all_within(reference.data + y * row, row, static_cast<T>(white)))
        nominal.store(false, std::memory_order_relaxed);
    });
  const CellRange range = nominal ? detail::nominal_range(bins, white)
                                  : detail::measured_range(reference, bins, threads);
  std::vector<std::uint64_t> largest;
  for (std::size_t k = 0; k < bins.channels; ++k) {
    bins.low[k] = range.low[k];
    bins.high[k] = std::floor(range.high[k]);
    largest.push_back(static_cast<std::uint64_t>(bins.high[k] - bins.low[k]));
  }
  bins.layout = KeyLayout::of(largest);
  for (std::size_t k = 0; k < bins.channels; ++k)
    bins.layout.low[k] = static_cast<std::int64_t>(bins.low[k]);
  if (bins.layout.total_bits() > most_key_bits)
    throw std::domain_error(
        "expected at most 2^127 cells of all features together, got more. "
        "Use larger sigmas, or clip far-off values.");
  return bins;
}

}  // namespace bilateral
