// Project many channels onto few (supplement, section "Multiple Output Channels"): the covariance
// of the channels of a right-hand side, the projection onto a basis, and its transpose.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "base/lanes.hpp"
#include "base/multiversion.hpp"
#include "base/threads.hpp"

namespace bilateral {

namespace detail {

inline constexpr std::size_t channel_block = 4096;  // vertices per unit of work and summation

// Calls f(first, count, block) for each block of vertices.
template <class F>
void each_block(std::size_t vertices, int threads, F&& f) {
  const std::size_t blocks = (vertices + channel_block - 1) / channel_block;
  parallel_for(team_size(threads, vertices, 2 * channel_block), blocks,
               [&](std::size_t block, std::size_t) {
                 const std::size_t first = block * channel_block;
                 f(first, std::min(vertices - first, channel_block), block);
               });
}

// Calls f(first, count, sums) for each block of vertices, and adds the `entries` sums of all
// blocks.
template <class F>
std::vector<double> block_sums(std::size_t vertices, std::size_t entries, int threads, F&& f) {
  const std::size_t blocks = (vertices + channel_block - 1) / channel_block;
  std::vector<double> parts(blocks * entries, 0.0), sums(entries, 0.0);
  each_block(vertices, threads, [&](std::size_t first, std::size_t count, std::size_t block) {
    f(first, count, parts.data() + block * entries);
  });
  for (std::size_t i = 0; i < parts.size(); ++i) sums[i % entries] += parts[i];
  return sums;
}

// Adds each channel over some vertices, then the weights.
template <class T>
BILATERAL_INLINE void add_sums_body(const T* __restrict weight, const T* __restrict b,
                                    std::size_t vertices, std::size_t channels,
                                    double* __restrict sums) {
  for (std::size_t v = 0; v < vertices; ++v) {
    for (std::size_t k = 0; k < channels; ++k) sums[k] += static_cast<double>(b[v * channels + k]);
    sums[channels] += static_cast<double>(weight[v]);
  }
}

// The channels of a SIMD vector, channels padded to whole vectors, and the vertices per step of a
// product of channels.
template <class T>
inline constexpr std::size_t channel_lanes = 32 / sizeof(T);
template <class T>
constexpr std::size_t padded(std::size_t channels) {
  return (channels + channel_lanes<T> - 1) / channel_lanes<T> * channel_lanes<T>;
}
inline constexpr std::size_t at_a_time = 8;

// Adds d d^T with d = (b - weight mean) / sqrt(weight) of some vertices to `sums`. Rows of `sums`
// have padded(channels) entries; only the lower triangle is valid. `d` and `part` are scratch.
template <class T>
BILATERAL_INLINE void add_products_body(const T* __restrict weight, const T* __restrict b,
                                        const T* __restrict mean, std::size_t vertices,
                                        std::size_t channels, T* __restrict d, T* __restrict part,
                                        double* __restrict sums) {
  using V = Lanes<T, channel_lanes<T>>;
  constexpr std::size_t longest_run = 64;  // products summed in T
  const std::size_t stride = padded<T>(channels);
  std::fill_n(d, at_a_time * stride, T{0});
  for (std::size_t begin = 0; begin < vertices; begin += longest_run) {
    std::fill_n(part, channels * stride, T{0});
    for (std::size_t v = begin; v < std::min(vertices, begin + longest_run); v += at_a_time) {
      for (std::size_t n = 0; n < at_a_time; ++n) {
        const bool there = v + n < vertices && weight[v + n] > T{0};
        const T w = there ? weight[v + n] : T{0}, scale = there ? T{1} / std::sqrt(w) : T{0};
        const T* from = b + (there ? v + n : v) * channels;
        for (std::size_t k = 0; k < channels; ++k)
          d[n * stride + k] = (from[k] - w * mean[k]) * scale;
      }
      for (std::size_t j = 0; j < channels; j += channel_lanes<T>) {
        V column[at_a_time];
        for (std::size_t n = 0; n < at_a_time; ++n) column[n] = load_lanes<V>(d + n * stride + j);
        for (std::size_t i = j; i < channels; ++i) {
          auto sum = load_lanes<V>(part + i * stride + j);
          for (std::size_t n = 0; n < at_a_time; ++n) sum += d[n * stride + i] * column[n];
          store_lanes(part + i * stride + j, sum);
        }
      }
    }
    for (std::size_t i = 0; i < channels * stride; ++i) sums[i] += static_cast<double>(part[i]);
  }
}

// reduced = basis full + weight offset, for some vertices.
template <class T>
BILATERAL_INLINE void project_body(const T* __restrict full, std::size_t channels,
                                   const T* __restrict basis, std::size_t rank,
                                   const T* __restrict weight, const T* __restrict offset,
                                   std::size_t vertices, T* __restrict reduced) {
  using V = Lanes<T, channel_lanes<T>>;
  const std::size_t whole = channels / channel_lanes<T> * channel_lanes<T>;
  for (std::size_t v = 0; v < vertices; ++v, full += channels, reduced += rank)
    for (std::size_t r = 0; r < rank; ++r) {
      const T* row = basis + r * channels;
      V sums{};
      for (std::size_t k = 0; k < whole; k += channel_lanes<T>)
        sums += load_lanes<V>(full + k) * load_lanes<V>(row + k);
      T sum = weight[v] * offset[r] + fold_lanes<T, channel_lanes<T>>(sums, lanes_sum);
      for (std::size_t k = whole; k < channels; ++k) sum += full[k] * row[k];
      reduced[r] = sum;
    }
}

// full = basis^T reduced + offset, for some vertices.
template <class T>
BILATERAL_INLINE void expand_body(const T* __restrict reduced, std::size_t rank,
                                  const T* __restrict basis, std::size_t channels,
                                  const T* __restrict offset, std::size_t vertices,
                                  T* __restrict full) {
  for (std::size_t v = 0; v < vertices; ++v, reduced += rank, full += channels) {
    for (std::size_t k = 0; k < channels; ++k) full[k] = offset[k] + reduced[0] * basis[k];
    for (std::size_t r = 1; r < rank; ++r)
      for (std::size_t k = 0; k < channels; ++k) full[k] += reduced[r] * basis[r * channels + k];
  }
}

template <class T>
void add_sums(const T* weight, const T* b, std::size_t vertices, std::size_t channels,
              double* sums) {
  multiversion<add_sums_body<T>>(weight, b, vertices, channels, sums);
}

template <class T>
void add_products(const T* weight, const T* b, const T* mean, std::size_t vertices,
                  std::size_t channels, T* d, T* part, double* sums) {
  multiversion<add_products_body<T>>(weight, b, mean, vertices, channels, d, part, sums);
}

template <class T>
void project(const T* full, std::size_t channels, const T* basis, std::size_t rank, const T* weight,
             const T* offset, std::size_t vertices, T* reduced) {
  multiversion<project_body<T>>(full, channels, basis, rank, weight, offset, vertices, reduced);
}

template <class T>
void expand(const T* reduced, std::size_t rank, const T* basis, std::size_t channels,
            const T* offset, std::size_t vertices, T* full) {
  multiversion<expand_body<T>>(reduced, rank, basis, channels, offset, vertices, full);
}

}  // namespace detail

// The weighted means of the channels over the vertices, and the lower triangle of their covariance
// times the sum of weights. Values enter as weighted = weight * value.
template <class T>
void channel_covariance(const T* weight, const T* weighted, std::size_t vertices,
                        std::size_t channels, double* mean, double* covariance, int threads) {
  const auto sums = detail::block_sums(
      vertices, channels + 1, threads, [&](std::size_t first, std::size_t count, double* to) {
        detail::add_sums(weight + first, weighted + first * channels, count, channels, to);
      });
  for (std::size_t k = 0; k < channels; ++k) mean[k] = sums[k] / sums[channels];
  const std::vector<T> centre(mean, mean + channels);
  const std::size_t stride = detail::padded<T>(channels);
  const auto products = detail::block_sums(
      vertices, channels * stride, threads, [&](std::size_t first, std::size_t count, double* to) {
        std::vector<T> scratch((detail::at_a_time + channels) * stride);
        detail::add_products(weight + first, weighted + first * channels, centre.data(), count,
                             channels, scratch.data(), scratch.data() + detail::at_a_time * stride,
                             to);
      });
  for (std::size_t i = 0; i < channels; ++i)
    std::copy_n(products.data() + i * stride, channels, covariance + i * channels);
}

// reduced = basis (weighted - weight mean): the channels in terms of the basis, for weighted =
// weight * value. `basis` has `rank` rows of `channels` numbers.
template <class T>
void project_channels(const T* weighted, std::size_t channels, const T* basis, std::size_t rank,
                      const T* weight, const T* mean, std::size_t vertices, T* reduced,
                      int threads) {
  std::vector<T> offset(rank);
  for (std::size_t r = 0; r < rank; ++r)
    offset[r] = -std::inner_product(mean, mean + channels, basis + r * channels, T{0});
  detail::each_block(vertices, threads, [&](std::size_t first, std::size_t count, std::size_t) {
    detail::project(weighted + first * channels, channels, basis, rank, weight + first,
                    offset.data(), count, reduced + first * rank);
  });
}

// full = basis^T reduced + mean: all channels from the projected ones.
template <class T>
void expand_channels(const T* reduced, std::size_t rank, const T* basis, std::size_t channels,
                     const T* mean, std::size_t vertices, T* full, int threads) {
  detail::each_block(vertices, threads, [&](std::size_t first, std::size_t count, std::size_t) {
    detail::expand(reduced + first * rank, rank, basis, channels, mean, count,
                   full + first * channels);
  });
}

}  // namespace bilateral
