// Domain transform, an edge-preserving recursive filter (Gastal & Oliveira 2011). Each iteration
// filters the rows, then the columns, with half the sigma of the previous iteration.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/buffer.hpp"
#include "base/threads.hpp"
#include "filters/domain_weights.hpp"
#include "filters/filter_columns.hpp"
#include "filters/filter_rows.hpp"

namespace bilateral {

// Statistics of the input of a filter.
struct DomainInput {
  bool known = true;   // some pixel is finite in all channels and has mass
  bool large = false;  // differences of values may overflow: the image was not filtered
};

namespace detail {

template <class T>
inline constexpr T largest_value = std::numeric_limits<T>::max() / 4;

// Stores a row, rounded if Pixel is an integer. Values outside the range of Pixel, by a rounding
// error of less than 1/2, are rounded back into it.
template <class T, class Pixel>
void store(const T* from, std::size_t n, Pixel* to) {
  if constexpr (std::is_floating_point_v<Pixel>) {
    std::copy_n(from, n, to);
    return;
  }
  constexpr T shift = T{1} / std::numeric_limits<T>::epsilon();  // above it, T has only integers
  for (std::size_t i = 0; i < n; ++i)
    to[i] = static_cast<Pixel>(static_cast<std::int32_t>((from[i] + shift) - shift));
}

// Pixel is the type of the image, T the type of the computation.
template <class T, class Pixel>
class DomainFilter {
 public:
  DomainFilter(const DomainWeights<T>& weights, int iterations, const Pixel* image, const T* mass,
               std::size_t channels, Pixel* out, int threads)
      : weights_(weights),
        image_(image),
        pixel_mass_(mass),
        out_(out),
        height_(weights.height),
        width_(weights.width),
        channels_(channels),
        iterations_(iterations),
        team_(team_size(threads, height_ * width_ * channels, 65536)),
        scratch_(static_cast<std::size_t>(team_)) {
    if constexpr (in_place) {
      values_ = out;
    } else {
      work_ = Buffer<T>(height_ * width_ * channels_);
      values_ = work_.data();
    }
  }

  DomainInput run() {
    if (pixel_mass_) make_masses();
    filter_all_rows(0, true);
    if (large_) return {true, true};
    if (unknown_ && !masses_) {  // start again, with mass 0 for unknown pixels
      make_masses();
      filter_all_rows(0, true);
    }
    if (masses_ && !known_) return {false, false};
    filter_all_columns(0);
    for (int i = 1; i < iterations_; ++i) {
      filter_all_rows(i);
      filter_all_columns(i);
    }
    return {};
  }

  // Filters the values and masses of an earlier pass, in place.
  void run_pass(bool rows, int pass, T* masses) {
    masses_ = masses;
    rows ? filter_all_rows(pass) : filter_all_columns(pass);
  }

 private:
  static constexpr bool in_place = std::is_same_v<T, Pixel>;
  // The filter reads a strip of columns twice, so the strip should fit into the second-level cache.
  static constexpr std::size_t strip_bytes = std::size_t{1} << 19, strip_step = 8;

  void make_masses() {
    own_masses_ = Buffer<T>(height_ * width_);
    masses_ = own_masses_.data();
  }

  void filter_all_rows(int pass, bool from_image = false) {
    const std::size_t groups = (height_ + rows_at_once<T> - 1) / rows_at_once<T>;
    parallel_for(team_, groups, [&](std::size_t group, std::size_t rank) {
      const std::size_t y = group * rows_at_once<T>, count = std::min(rows_at_once<T>, height_ - y);
      if (from_image)
        for (std::size_t r = 0; r < count; ++r) load(y + r);
      std::vector<T>& scratch = scratch_[rank];
      const std::size_t n = rows_at_once<T> * width_;
      scratch.resize((channels_ + 2) * n + 1);
      T* w = scratch.data() + (channels_ + 1) * n;
      filter_rows(values_ + y * width_ * channels_, masses(y * width_), count, width_, channels_,
                  weights_.across.data() + y * width_, pass, w, scratch.data());
    });
  }

  void filter_all_columns(int pass) {
    const std::size_t bytes = height_ * (channels_ + 1) * sizeof(T) * strip_step;
    const std::size_t strip_width = strip_step * std::clamp<std::size_t>(strip_bytes / bytes, 1, 8);
    const std::size_t strips = (width_ + strip_width - 1) / strip_width;
    parallel_for(team_, strips, [&](std::size_t i, std::size_t rank) {
      const std::size_t x = i * strip_width, pixels = std::min(strip_width, width_ - x);
      const std::size_t n = pixels * height_;
      std::vector<T>& scratch = scratch_[rank];
      scratch.resize((channels_ + 2) * n + pixels);
      T* const w = scratch.data();
      T* const masses = masses_ ? w + n : nullptr;
      const Strip<T> strip{w + 2 * n + pixels, w, masses, w + 2 * n, height_, pixels, channels_};
      if (masses) copy_strip(masses_ + x, width_, masses, pixels, pixels);
      const std::size_t row = pixels * channels_, stride = width_ * channels_;
      const bool convert = !in_place && pass == iterations_ - 1;
      filter_strip(strip, values_ + x * channels_, weights_.down.data() + x, pass, width_,
                   !convert);
      if (convert)
        for (std::size_t y = 0; y < height_; ++y)
          store(strip.values + y * row, row, out_ + y * stride + x * channels_);
      if (masses) copy_strip(masses, pixels, masses_ + x, width_, pixels);
    });
  }

  void copy_strip(const T* from, std::size_t from_stride, T* to, std::size_t to_stride,
                  std::size_t n) const {
    for (std::size_t y = 0; y < height_; ++y)
      std::copy_n(from + y * from_stride, n, to + y * to_stride);
  }

  T* masses(std::size_t pixel) { return masses_ ? masses_ + pixel : nullptr; }

  // Converts a row to T. Sets `unknown_` and `large_`, and the masses of the row if there are any.
  void load(std::size_t y) {
    const std::size_t row = width_ * channels_;
    const Pixel* from = image_ + y * row;
    T* to = values_ + y * row;
    for (std::size_t i = 0; i < row; ++i) to[i] = static_cast<T>(from[i]);
    if constexpr (std::is_floating_point_v<Pixel>) {
      if (!bounded(from, row, largest_value<T>)) inspect(to);
    }
    if (masses_) weigh(y, to);
  }

  void inspect(const T* row) {
    for (std::size_t i = 0; i < width_ * channels_; ++i) {
      const T size = std::abs(row[i]);
      if (!(size <= std::numeric_limits<T>::max()))
        unknown_ = true;
      else if (size > largest_value<T>)
        large_ = true;
    }
  }

  // Sets the masses of a row: 0 for a pixel with a value that is not finite.
  void weigh(std::size_t y, T* row) {
    T* mass = masses(y * width_);
    bool any = false;
    for (std::size_t x = 0; x < width_; ++x) {
      T* pixel = row + x * channels_;
      bool finite = true;
      for (std::size_t k = 0; k < channels_; ++k)
        finite &= std::abs(pixel[k]) <= std::numeric_limits<T>::max();
      mass[x] = !finite ? T{0} : pixel_mass_ ? pixel_mass_[y * width_ + x] : T{1};
      if (mass[x] == T{0}) std::fill_n(pixel, channels_, T{0});
      any |= mass[x] > T{0};
    }
    if (any) known_ = true;
  }

  const DomainWeights<T>& weights_;
  const Pixel* image_;
  const T* pixel_mass_;
  Pixel* out_;
  std::size_t height_, width_, channels_;
  int iterations_, team_;
  T* values_;
  Buffer<T> work_, own_masses_;
  T* masses_ = nullptr;  // null if all masses are the same
  std::vector<std::vector<T>> scratch_;
  std::atomic<bool> unknown_{false};               // some value is not finite
  std::atomic<bool> large_{false}, known_{false};  // as in DomainInput
};

}  // namespace detail

// Filters the rows or the columns of values in place, as one pass of the filter does. `masses` may
// be null if all are the same. Blocks of whole rows or columns give the bits of the whole image if
// they begin at a multiple of 64 rows or columns.
template <class T>
void domain_pass(const DomainWeights<T>& weights, bool rows, int pass, T* values, T* masses,
                 std::size_t channels, int threads) {
  detail::DomainFilter<T, T>(weights, pass + 1, values, nullptr, channels, values, threads)
      .run_pass(rows, pass, masses);
}

// Filters an image with interleaved channels. `mass` is at most 1, and 1 everywhere if null; a
// pixel with a value that is not finite has mass 0. Values are rounded if Pixel is an integer.
template <class T, class Pixel>
DomainInput domain_transform(const DomainWeights<T>& weights, int iterations, const Pixel* image,
                             const T* mass, std::size_t channels, Pixel* out, int threads) {
  return detail::DomainFilter<T, Pixel>(weights, iterations, image, mass, channels, out, threads)
      .run();
}

}  // namespace bilateral
