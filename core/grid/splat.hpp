// Splat pixels to vertices (S), slice vertices to pixels (S^T), and splat a target with its
// confidence.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/lanes.hpp"
#include "base/multiversion.hpp"
#include "base/vector_loops.hpp"
#include "grid/grid.hpp"

namespace bilateral {

// Calls f(row, index) for every row of tiles; `index` maps each pixel to its vertex within the row.
template <class F>
void each_row(const Grid& grid, int threads, F&& f) {
  std::visit(
      [&](const auto& index) {
        parallel_for(team_size(threads, grid.pixels(), 65536), grid.rows(),
                     [&](std::size_t row, std::size_t) { f(row, index.data()); });
      },
      grid.pixel);
}

// Calls f(begin, end) for the runs of pixels of a row of tiles.
template <class F>
void each_pixel_run(const Grid& grid, std::size_t row, F&& f) {
  const PixelRuns& runs = grid.row_pixels[row];
  for (std::size_t i = 0; i < runs.frames; ++i) {
    const std::size_t begin = runs.first + i * runs.stride;
    f(begin, begin + runs.size);
  }
}

namespace detail {

// Adds lines of one-channel pixels to the sums of their vertices. Neighbouring pixels mostly share
// a vertex, so that each addition along a line waits for the one before. Alternating between
// several lines, each with its own sums, keeps the adders busy.
template <std::size_t Lines, class T, class Index>
void add_in_turns(const T* pixels, const Index* index, std::size_t width, std::size_t count,
                  double* sums) {
  for (std::size_t x = 0; x < width; ++x)
    for (std::size_t lane = 0; lane < Lines; ++lane)
      sums[lane * count + index[lane * width + x]] += static_cast<double>(pixels[lane * width + x]);
}

}  // namespace detail

// S p: sums each channel over the pixels of each vertex.
template <class T>
void splat(const Grid& grid, const T* pixels, std::size_t channels, T* vertices, int threads) {
  each_row(grid, threads, [&](std::size_t row, const auto* index) {
    const std::size_t first = grid.row_vertex[row], count = grid.row_vertex[row + 1] - first;
    constexpr std::size_t lines = 4;
    std::vector<double> sums(channels == 1 ? lines * count : count * channels, 0.0);
    each_pixel_run(grid, row, [&](std::size_t p, std::size_t end) {
      if (channels == 1)
        for (; p + lines * grid.width <= end; p += lines * grid.width)
          detail::add_in_turns<lines>(pixels + p, index + p, grid.width, count, sums.data());
      for (; p < end; ++p)
        for (std::size_t k = 0; k < channels; ++k)
          sums[index[p] * channels + k] += static_cast<double>(pixels[p * channels + k]);
    });
    for (std::size_t i = count * channels; i < sums.size(); ++i) sums[i % count] += sums[i];
    for (std::size_t i = 0; i < count * channels; ++i)
      vertices[first * channels + i] = static_cast<T>(sums[i]);
  });
}

// S^T v: copies the value of its vertex to each pixel.
template <class T>
void slice(const Grid& grid, const T* vertices, std::size_t channels, T* pixels, int threads) {
  each_row(grid, threads, [&](std::size_t row, const auto* index) {
    const T* from = vertices + grid.row_vertex[row] * channels;
    each_pixel_run(grid, row, [&](std::size_t begin, std::size_t end) {
      if (channels == 1) {
        for (std::size_t p = begin; p < end; ++p) pixels[p] = from[index[p]];
      } else {
        for (std::size_t p = begin; p < end; ++p)
          std::copy_n(from + index[p] * channels, channels, pixels + p * channels);
      }
    });
  });
}

// The gradients of target and confidence at each pixel, from values at its vertex (derived in
// numerics/adjoint.py):
//   of_target = c z   and   of_confidence = sum_k z_k (t_k - y_k) + extra.
// `confidence` may be null for 1 everywhere, `extra` for 0, and either result if it is not needed.
template <class T>
struct Gradients {
  const T *z, *y, *extra, *target, *confidence;
  T *of_target, *of_confidence;
};

template <class T>
void slice_gradients(const Grid& grid, const Gradients<T>& g, std::size_t channels, int threads) {
  each_row(grid, threads, [&](std::size_t row, const auto* index) {
    const std::size_t first = grid.row_vertex[row];
    const T* z = g.z + first * channels;
    const T* y = g.y + first * channels;
    const T* extra = g.extra ? g.extra + first : nullptr;
    const T* c = g.confidence;
    const T* t = g.target;
    each_pixel_run(grid, row, [&](std::size_t begin, std::size_t end) {
      if (T* __restrict out = g.of_target; out && channels == 1) {
        for (std::size_t p = begin; p < end; ++p) out[p] = c ? c[p] * z[index[p]] : z[index[p]];
      } else if (out) {
        for (std::size_t p = begin; p < end; ++p)
          for (std::size_t k = 0; k < channels; ++k)
            out[p * channels + k] = (c ? c[p] : T{1}) * z[index[p] * channels + k];
      }
      T* __restrict out = g.of_confidence;
      if (!out) return;
      if (channels == 1) {
        for (std::size_t p = begin; p < end; ++p) out[p] = z[index[p]] * (t[p] - y[index[p]]);
        for (std::size_t p = begin; p < end && extra; ++p) out[p] += extra[index[p]];
        return;
      }
      for (std::size_t p = begin; p < end; ++p) {
        const std::size_t v = index[p];
        T sum = extra ? extra[v] : T{0};
        for (std::size_t k = 0; k < channels; ++k)
          sum += z[v * channels + k] * (t[p * channels + k] - y[v * channels + k]);
        out[p] = sum;
      }
    });
  });
}

// The root mean square of S^T v over the pixels, per channel.
template <class T>
void pixel_rms(const Grid& grid, const T* vertices, std::size_t channels, double* rms) {
  std::fill_n(rms, channels, 0.0);
  if (channels == 1) rms[0] = detail::weighted_square(vertices, grid.mass.data(), grid.vertices);
  for (std::size_t v = 0; v < grid.vertices && channels > 1; ++v)
    for (std::size_t k = 0; k < channels; ++k) {
      const auto value = static_cast<double>(vertices[v * channels + k]);
      rms[k] += static_cast<double>(grid.mass[v]) * value * value;
    }
  for (std::size_t k = 0; k < channels; ++k)
    rms[k] = std::sqrt(rms[k] / static_cast<double>(grid.pixels()));
}

// Statistics of a target and its confidence, found during their splat.
struct InputStats {
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  std::size_t invalid = none;     // first pixel whose confidence is negative or not finite
  std::size_t known = 0;          // pixels with data
  std::vector<double> low, high;  // per channel, over the pixels with data

  // Adds the statistics of other pixels.
  void add(const InputStats& other) {
    invalid = std::min(invalid, other.invalid);
    known += other.known;
    for (std::size_t k = 0; k < low.size(); ++k) {
      low[k] = std::min(low[k], other.low[k]);
      high[k] = std::max(high[k], other.high[k]);
    }
  }
};

namespace detail {

template <class T>
BILATERAL_INLINE bool usable(T confidence) {
  return confidence >= T{0} && confidence <= std::numeric_limits<T>::max();
}

// Stores the pairs (c, c t) as float64, which holds the products of float32 numbers exactly.
BILATERAL_INLINE void store_pairs(double* to, Lanes<double, 4> c, Lanes<double, 4> t) {
  store_interleaved<double, 4>(to, c, c * t);
}
BILATERAL_INLINE void store_pairs(double* to, Lanes<float, 8> c, Lanes<float, 8> t) {
  using Half = Lanes<float, 4>;
  using Wide = Lanes<double, 4>;
  const Half c0 = __builtin_shufflevector(c, c, 0, 1, 2, 3);
  const Half t0 = __builtin_shufflevector(t, t, 0, 1, 2, 3);
  const Half c1 = __builtin_shufflevector(c, c, 4, 5, 6, 7);
  const Half t1 = __builtin_shufflevector(t, t, 4, 5, 6, 7);
  store_pairs(to, __builtin_convertvector(c0, Wide), __builtin_convertvector(t0, Wide));
  store_pairs(to + 8, __builtin_convertvector(c1, Wide), __builtin_convertvector(t1, Wide));
}

// Computes the pairs (c, c t) of a run of pixels, (0, 0) where there is no data, and updates the
// range and the number of known pixels. Returns whether every confidence is usable.
template <class T>
BILATERAL_INLINE bool weigh_run(const T* target, const T* confidence, std::size_t n, double* pairs,
                                T& low, T& high, std::size_t& known) {
  constexpr std::size_t width = 32 / sizeof(T);
  using Values = Lanes<T, width>;
  using Mask = Lanes<std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>, width>;
  constexpr T largest = std::numeric_limits<T>::max();
  Values lowest = Values{} + low, highest = Values{} + high;
  Mask count = {}, bad = {};
  std::size_t p = 0;
  for (; p + width <= n; p += width) {
    const auto t = load_lanes<Values>(target + p), c = load_lanes<Values>(confidence + p);
    const Mask data = (c > T{0}) & (t >= -largest) & (t <= largest);
    bad |= ~((c >= T{0}) & (c <= largest));
    count -= data;
    lowest = lanes_least(data ? t : lowest, lowest);
    highest = lanes_most(data ? t : highest, highest);
    store_pairs(pairs + 2 * p, data ? c : Values{}, data ? t : Values{});
  }
  using Count = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  known += static_cast<std::size_t>(fold_lanes<Count, width>(count, lanes_sum));
  low = fold_lanes<T, width>(lowest, lanes_least);
  high = fold_lanes<T, width>(highest, lanes_most);
  bool good = fold_lanes<Count, width>(bad, lanes_least) == 0;
  for (; p < n; ++p) {
    const bool data = confidence[p] > T{0} && std::abs(target[p]) <= largest;
    good = good && usable(confidence[p]);
    known += data;
    low = data && target[p] < low ? target[p] : low;
    high = data && target[p] > high ? target[p] : high;
    const double c = data ? static_cast<double>(confidence[p]) : 0;
    pairs[2 * p] = c;
    pairs[2 * p + 1] = data ? c * static_cast<double>(target[p]) : 0;
  }
  return good;
}

template <class T>
bool weigh(const T* target, const T* confidence, std::size_t n, double* pairs, T& low, T& high,
           std::size_t& known) {
  return multiversion<weigh_run<T>>(target, confidence, n, pairs, low, high, known);
}

// The number of lines whose pairs (c, c t) are added alternately, each line to its own sums, for
// the same reason as in add_in_turns.
inline constexpr std::size_t interleaved = 2;

template <class Index>
void add_runs(const double* pairs, std::size_t run, const Index* index, std::size_t width,
              double* sums, std::size_t count) {
  for (std::size_t x = 0; x < run; ++x)
    for (std::size_t lane = 0; lane < interleaved; ++lane) {
      double* to = sums + 2 * (lane * count + index[lane * width + x]);
      store_lanes(to, load_lanes<Pair>(to) + load_lanes<Pair>(pairs + 2 * (lane * run + x)));
    }
}

// Adds (c, c t) of a run of pixels with several channels to the sums of their vertices. A pixel
// has no data if any channel is not finite. `confidence` may be null for 1 everywhere. Returns
// whether every confidence is usable.
template <class T, class Index>
BILATERAL_INLINE bool add_channels_body(const T* __restrict target, const T* __restrict confidence,
                                        std::size_t n, std::size_t channels,
                                        const Index* __restrict index, double* __restrict sums,
                                        T* __restrict low, T* __restrict high, std::size_t& known) {
  bool good = true;
  for (std::size_t p = 0; p < n; ++p) {
    const T c = confidence ? confidence[p] : T{1};
    const T* __restrict t = target + p * channels;
    unsigned unknown = !(c > T{0});
    for (std::size_t k = 0; k < channels; ++k)
      unknown |= !(std::abs(t[k]) <= std::numeric_limits<T>::max());
    good = good && usable(c);
    if (unknown) continue;
    ++known;
    double* __restrict to = sums + index[p] * (channels + 1);
    to[0] += static_cast<double>(c);
    for (std::size_t k = 0; k < channels; ++k) {
      low[k] = t[k] < low[k] ? t[k] : low[k];
      high[k] = t[k] > high[k] ? t[k] : high[k];
      to[k + 1] += static_cast<double>(c) * static_cast<double>(t[k]);
    }
  }
  return good;
}

template <class T, class Index>
bool add_channels(const T* target, const T* confidence, std::size_t n, std::size_t channels,
                  const Index* index, double* sums, T* low, T* high, std::size_t& known) {
  return multiversion<add_channels_body<T, Index>>(target, confidence, n, channels, index, sums,
                                                   low, high, known);
}

// Sums confidence and confidence * target over the vertices of one row of tiles. A vertex has all
// its pixels in one tile and adds them up in their order, so that the columns beside it do not
// change its sums.
template <class T, class Index>
class RowSplat {
 public:
  RowSplat(const Grid& grid, const Index* index, const T* target, const T* confidence,
           std::size_t channels)
      : grid_(grid), index_(index), target_(target), confidence_(confidence), channels_(channels) {}

  InputStats stats;

  template <class Out>
  void run(std::size_t row, Out* weight, Out* weighted) {
    const std::size_t first = grid_.row_vertex[row], count = grid_.row_vertex[row + 1] - first;
    const std::size_t stride = channels_ + 1;
    const std::size_t sets = channels_ == 1 ? interleaved : 1;
    sums_.assign(sets * count * stride, 0.0);
    stats = {};
    low_.assign(channels_, std::numeric_limits<T>::infinity());
    high_.assign(channels_, -std::numeric_limits<T>::infinity());
    each_pixel_run(grid_, row,
                   [&](std::size_t begin, std::size_t end) { add_run(begin, end, count); });
    stats.low.assign(low_.begin(), low_.end());
    stats.high.assign(high_.begin(), high_.end());
    for (std::size_t v = 0; v < count; ++v) {
      double* sums = &sums_[v * stride];
      for (std::size_t set = 1; set < sets; ++set)
        for (std::size_t k = 0; k < stride; ++k) sums[k] += sums[set * count * stride + k];
      // A smaller weight has no finite inverse.
      const bool counts = sums[0] >= static_cast<double>(std::numeric_limits<Out>::min());
      weight[first + v] = counts ? static_cast<Out>(sums[0]) : Out{0};
      for (std::size_t k = 0; k < channels_; ++k)
        weighted[(first + v) * channels_ + k] = counts ? static_cast<Out>(sums[k + 1]) : Out{0};
    }
  }

 private:
  static constexpr std::size_t longest_run = 256;

  void add_run(std::size_t p, std::size_t end, std::size_t count) {
    const std::size_t lines = interleaved * grid_.width;
    if (channels_ == 1)
      for (; p + lines <= end; p += lines) add_lines(p, count);
    if (!add_channels(target_ + p * channels_, confidence_ ? confidence_ + p : nullptr, end - p,
                      channels_, index_ + p, sums_.data(), low_.data(), high_.data(), stats.known))
      find_invalid(p, end);
  }

  void add_lines(std::size_t begin, std::size_t count) {
    for (std::size_t x = 0; x < grid_.width; x += longest_run) {
      const std::size_t run = std::min(longest_run, grid_.width - x);
      for (std::size_t lane = 0; lane < interleaved; ++lane) {
        const std::size_t p = begin + lane * grid_.width + x;
        if (!weigh(target_ + p, confidence_ ? confidence_ + p : ones_.data(), run,
                   pairs_.data() + 2 * lane * run, low_[0], high_[0], stats.known))
          find_invalid(p, p + run);
      }
      add_runs(pairs_.data(), run, index_ + begin + x, grid_.width, sums_.data(), count);
    }
  }

  void find_invalid(std::size_t begin, std::size_t end) {
    for (std::size_t p = begin; p < end; ++p)
      if (!usable(confidence_[p])) stats.invalid = std::min(stats.invalid, p);
  }

  const Grid& grid_;
  const Index* index_;
  const T* target_;
  const T* confidence_;
  std::size_t channels_;
  std::vector<double> sums_;
  std::vector<T> low_, high_;
  std::vector<double> pairs_ = std::vector<double>(2 * interleaved * longest_run);
  std::vector<T> ones_ = std::vector<T>(longest_run, T{1});
};

}  // namespace detail

// weight = S c and weighted = S (c * t), summed in float64. A pixel with a non-finite target counts
// as confidence 0. `confidence` may be null for 1 everywhere.
template <class T, class Out>
InputStats splat_target(const Grid& grid, const T* target, const T* confidence,
                        std::size_t channels, Out* weight, Out* weighted, int threads) {
  std::vector<InputStats> row_stats(grid.rows());
  const int team = team_size(threads, grid.pixels(), 65536);
  std::visit(
      [&]<class Index>(const Buffer<Index>& index) {
        std::vector<detail::RowSplat<T, Index>> workers(
            static_cast<std::size_t>(team),
            detail::RowSplat<T, Index>(grid, index.data(), target, confidence, channels));
        parallel_for(team, grid.rows(), [&](std::size_t r, std::size_t rank) {
          workers[rank].run(r, weight, weighted);
          row_stats[r] = workers[rank].stats;
        });
      },
      grid.pixel);
  InputStats all = row_stats[0];
  for (std::size_t row = 1; row < row_stats.size(); ++row) all.add(row_stats[row]);
  return all;
}

}  // namespace bilateral
