// Iteratively reweighted least squares (supplement, section "Robustness"): splat a target with
// confidences that depend on the residuals of the last solution.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "base/lanes.hpp"
#include "base/multiversion.hpp"
#include "base/threads.hpp"
#include "solve/samples.hpp"

namespace bilateral {

// The weight rho'(e) / e of a robust loss, as a function of e^2:
//   power: gain (1 + rate e^2)^exponent, exponential: gain exp(-rate e^2),
//   huber: gain min(1, 1 / sqrt(rate e^2)).
struct Loss {
  enum class Shape { power, exponential, huber };
  Shape shape = Shape::power;
  double gain = 1, rate = 1, exponent = -2;
};

namespace detail {

// Calls f with the weight of the loss, a function of a SIMD vector of e^2.
template <class T, class F>
BILATERAL_INLINE void with_weight(const Loss& loss, F&& f) {
  using V = Lanes<T, Samples<T>::width>;
  const auto gain = static_cast<T>(loss.gain), rate = static_cast<T>(loss.rate);
  const auto exponent = static_cast<T>(loss.exponent);
  const auto one_by_one = [](V square, auto weight) __attribute__((always_inline)) {
    V out;
    for (std::size_t i = 0; i < Samples<T>::width; ++i) out[i] = weight(square[i]);
    return out;
  };
  if (loss.shape == Loss::Shape::exponential) {
    f([=](V square) __attribute__((always_inline)) {
      return one_by_one(square, [=](T s) { return gain * std::exp(-rate * s); });
    });
  } else if (loss.shape == Loss::Shape::huber) {
    f([=](V square) __attribute__((always_inline)) {
      return one_by_one(rate * square, [=](T s) __attribute__((always_inline)) {
        return s > T{1} ? gain / std::sqrt(s) : gain;
      });
    });
  } else if (loss.exponent == -2) {
    f([=](V square) __attribute__((always_inline)) {
      const V base = T{1} / (T{1} + rate * square);
      return gain * base * base;
    });
  } else if (loss.exponent == -1) {
    f([=](V square) __attribute__((always_inline)) { return gain / (T{1} + rate * square); });
  } else if (loss.exponent == -0.5) {
    f([=](V square) __attribute__((always_inline)) {
      return one_by_one(square, [=](T s) __attribute__((always_inline)) {
        return gain / std::sqrt(T{1} + rate * s);
      });
    });
  } else if (loss.exponent == 0) {
    f([=](V) __attribute__((always_inline)) { return V{} + gain; });
  } else {
    f([=](V square) __attribute__((always_inline)) {
      // log1p, since the rate tends to 0 as the exponent tends to -infinity
      return one_by_one(square,
                        [=](T s) { return gain * std::exp(exponent * std::log1p(rate * s)); });
    });
  }
}

// Sums the weights and weighted values of one chunk. `sums` holds the sums of the weights of all
// vertices of the chunk, then those of the weighted values of each channel. K is the number of
// channels, or 0 if it is known only at run time.
template <class T, std::size_t K, class Weight>
BILATERAL_INLINE void weigh_chunk(const T* values, std::size_t steps, const T* y,
                                  std::size_t channels, Weight weight, double* sums, T* part) {
  constexpr std::size_t width = Samples<T>::width, longest_run = 16;  // steps summed in T
  using V = Lanes<T, width>;
  using Wide = Lanes<double, width>;
  if constexpr (K > 0) channels = K;
  std::fill_n(sums, (channels + 1) * width, 0.0);
  while (steps > 0) {
    const std::size_t run = std::min(steps, longest_run);
    steps -= run;
    std::fill_n(part, (channels + 1) * width, T{0});
    for (std::size_t step = 0; step < run; ++step, values += channels * width) {
      V square{};
      for (std::size_t k = 0; k < channels; ++k) {
        const V e = load_lanes<V>(y + k * width) - load_lanes<V>(values + k * width);
        square += e * e;
      }
      // The distance from padding is infinite.
      const V w = square <= std::numeric_limits<T>::max() ? weight(square) : V{};
      store_lanes(part, load_lanes<V>(part) + w);
      for (std::size_t k = 0; k < channels; ++k) {
        T* to = part + (k + 1) * width;
        store_lanes(to, load_lanes<V>(to) + w * load_lanes<V>(values + k * width));
      }
    }
    for (std::size_t k = 0; k <= channels; ++k)
      store_lanes(sums + k * width,
                  load_lanes<Wide>(sums + k * width) +
                      __builtin_convertvector(load_lanes<V>(part + k * width), Wide));
  }
}

// Computes the weights and weighted sums of the vertices of one row of tiles.
template <class T, std::size_t K, class Weight>
BILATERAL_INLINE void weigh_row_body(const typename Samples<T>::Row& row, std::size_t channels,
                                     Weight weight, const T* y, T* out_weight, T* out_weighted) {
  constexpr std::size_t width = Samples<T>::width;
  if constexpr (K > 0) channels = K;
  constexpr std::size_t fixed = K > 0 ? (K + 1) * width : 0;
  T fixed_y[fixed + 1], fixed_part[fixed + 1];
  double fixed_sums[fixed + 1];
  std::vector<T> scratch;
  std::vector<double> scratch_sums;
  T *ys = fixed_y, *part = fixed_part;
  double* sums = fixed_sums;
  if constexpr (K == 0) {
    scratch.resize(2 * (channels + 1) * width);
    scratch_sums.resize((channels + 1) * width);
    ys = scratch.data();
    part = ys + (channels + 1) * width;
    sums = scratch_sums.data();
  }
  using Wide = Lanes<double, width>;
  const T* values = row.values;
  for (std::size_t i = 0; i < row.vertices; i += width) {
    const std::size_t lanes = std::min(width, row.vertices - i), steps = row.steps[i / width];
    std::fill_n(ys, channels * width, T{0});
    for (std::size_t lane = 0; lane < lanes; ++lane)
      for (std::size_t k = 0; k < channels; ++k)
        ys[k * width + lane] = y[row.order[i + lane] * channels + k];
    weigh_chunk<T, K>(values, steps, ys, channels, weight, sums, part);
    values += steps * channels * width;
    for (std::size_t k = 0; k <= channels; ++k)
      store_lanes(part + k * width,
                  __builtin_convertvector(load_lanes<Wide>(sums + k * width), Lanes<T, width>));
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const std::size_t v = row.order[i + lane];
      out_weight[v] = part[lane];
      for (std::size_t k = 0; k < channels; ++k)
        out_weighted[v * channels + k] = part[(k + 1) * width + lane];
    }
  }
}

template <class T>
BILATERAL_INLINE void weigh_row_any(const Loss& loss, const typename Samples<T>::Row& row,
                                    std::size_t channels, const T* y, T* weight, T* weighted) {
  with_weight<T>(loss, [&](auto of_square) __attribute__((always_inline)) {
    if (channels == 1)
      weigh_row_body<T, 1>(row, 1, of_square, y, weight, weighted);
    else
      weigh_row_body<T, 0>(row, channels, of_square, y, weight, weighted);
  });
}

template <class T>
void weigh_row(const Loss& loss, const typename Samples<T>::Row& row, std::size_t channels,
               const T* y, T* weight, T* weighted) {
  multiversion<weigh_row_any<T>>(loss, row, channels, y, weight, weighted);
}

}  // namespace detail

// weight = S c and weighted = S (c * t), with the confidences c of one round: the weight of the
// loss at the distance over all channels of the target from the last solution y.
template <class T>
void splat_robust(const Samples<T>& samples, const Loss& loss, const T* y, T* weight, T* weighted,
                  int threads) {
  const Grid& grid = samples.grid();
  const std::size_t channels = samples.channels();
  parallel_for(team_size(threads, grid.pixels(), 65536), grid.rows(),
               [&](std::size_t r, std::size_t) {
                 const std::size_t first = grid.row_vertex[r];
                 detail::weigh_row(loss, samples.row(r), channels, y + first * channels,
                                   weight + first, weighted + first * channels);
               });
}

}  // namespace bilateral
