// Few channels for many (supplement, section "Multiple Output Channels"): how the channels of a
// right-hand side vary together, and linear maps from some channels to others.
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

inline constexpr std::size_t channel_block = 4096;  // vertices of one unit of work and summation

// f(first, count, block) for each block of vertices.
template <class F>
void each_block(std::size_t vertices, int threads, F&& f) {
  const std::size_t blocks = (vertices + channel_block - 1) / channel_block;
  parallel_for(team_size(threads, vertices, 2 * channel_block), blocks,
               [&](std::size_t block, std::size_t) {
                 const std::size_t first = block * channel_block;
                 f(first, std::min(vertices - first, channel_block), block);
               });
}

// The sums of what f(first, count, to) adds to `entries` numbers for each block of vertices.
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

// Adds the sums of each channel over some vertices, that of the weights last.
template <class T>
BILATERAL_INLINE void add_sums_body(const T* __restrict weight, const T* __restrict b,
                                    std::size_t vertices, std::size_t channels,
                                    double* __restrict sums) {
  for (std::size_t v = 0; v < vertices; ++v) {
    for (std::size_t k = 0; k < channels; ++k) sums[k] += static_cast<double>(b[v * channels + k]);
    sums[channels] += static_cast<double>(weight[v]);
  }
}

// Channels in whole vectors, and the vertices taken at a time in a product of channels.
template <class T>
inline constexpr std::size_t channel_lanes = 32 / sizeof(T);
template <class T>
constexpr std::size_t padded(std::size_t channels) {
  return (channels + channel_lanes<T> - 1) / channel_lanes<T> * channel_lanes<T>;
}
inline constexpr std::size_t at_a_time = 8;

// Adds d d^T with d = (b - weight mean) / sqrt(weight) of some vertices to `sums`, rows of
// padded(channels) of which those up to the row's own column count. `d` and `part` are scratch.
template <class T>
BILATERAL_INLINE void add_products_body(const T* __restrict weight, const T* __restrict b,
                                        const T* __restrict mean, std::size_t vertices,
                                        std::size_t channels, T* __restrict d, T* __restrict part,
                                        double* __restrict sums) {
  using V = Lanes<T, channel_lanes<T>>;
  constexpr std::size_t most = 64;  // products summed up in a T
  const std::size_t stride = padded<T>(channels);
  std::fill_n(d, at_a_time * stride, T{0});
  for (std::size_t begin = 0; begin < vertices; begin += most) {
    std::fill_n(part, channels * stride, T{0});
    for (std::size_t v = begin; v < std::min(vertices, begin + most); v += at_a_time) {
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

// few = basis many + weight offset, for some vertices.
template <class T>
BILATERAL_INLINE void project_body(const T* __restrict many, std::size_t channels,
                                   const T* __restrict basis, std::size_t rank,
                                   const T* __restrict weight, const T* __restrict offset,
                                   std::size_t vertices, T* __restrict few) {
  using V = Lanes<T, channel_lanes<T>>;
  const std::size_t whole = channels / channel_lanes<T> * channel_lanes<T>;
  for (std::size_t v = 0; v < vertices; ++v, many += channels, few += rank)
    for (std::size_t r = 0; r < rank; ++r) {
      const T* row = basis + r * channels;
      V sums{};
      for (std::size_t k = 0; k < whole; k += channel_lanes<T>)
        sums += load_lanes<V>(many + k) * load_lanes<V>(row + k);
      T sum = weight[v] * offset[r] + fold_lanes<T, channel_lanes<T>>(sums, lanes_sum);
      for (std::size_t k = whole; k < channels; ++k) sum += many[k] * row[k];
      few[r] = sum;
    }
}

// many = basis^T few + offset, for some vertices.
template <class T>
BILATERAL_INLINE void expand_body(const T* __restrict few, std::size_t rank,
                                  const T* __restrict basis, std::size_t channels,
                                  const T* __restrict offset, std::size_t vertices,
                                  T* __restrict many) {
  for (std::size_t v = 0; v < vertices; ++v, few += rank, many += channels) {
    for (std::size_t k = 0; k < channels; ++k) many[k] = offset[k] + few[0] * basis[k];
    for (std::size_t r = 1; r < rank; ++r)
      for (std::size_t k = 0; k < channels; ++k) many[k] += few[r] * basis[r * channels + k];
  }
}

#define BILATERAL_CHANNEL_LOOPS(T)                                                                \
  BILATERAL_MULTIVERSION inline void add_sums(const T* weight, const T* b, std::size_t vertices,  \
                                              std::size_t channels, double* sums) {               \
    add_sums_body(weight, b, vertices, channels, sums);                                           \
  }                                                                                               \
  BILATERAL_MULTIVERSION inline void add_products(const T* weight, const T* b, const T* mean,     \
                                                  std::size_t vertices, std::size_t channels,     \
                                                  T* d, T* part, double* sums) {                  \
    add_products_body(weight, b, mean, vertices, channels, d, part, sums);                        \
  }                                                                                               \
  BILATERAL_MULTIVERSION inline void project(const T* many, std::size_t channels, const T* basis, \
                                             std::size_t rank, const T* weight, const T* offset,  \
                                             std::size_t vertices, T* few) {                      \
    project_body(many, channels, basis, rank, weight, offset, vertices, few);                     \
  }                                                                                               \
  BILATERAL_MULTIVERSION inline void expand(const T* few, std::size_t rank, const T* basis,       \
                                            std::size_t channels, const T* offset,                \
                                            std::size_t vertices, T* many) {                      \
    expand_body(few, rank, basis, channels, offset, vertices, many);                              \
  }
BILATERAL_CHANNEL_LOOPS(float)
BILATERAL_CHANNEL_LOOPS(double)
#undef BILATERAL_CHANNEL_LOOPS

}  // namespace detail

// The channels' means and covariance (lower triangle, times the sum of weights) over the vertices,
// each with its weight, for weighted = weight * value.
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

// few = basis (weighted - weight mean): what is left of the channels, for weighted = weight *
// value. `basis` has a row of `channels` numbers for each of `rank`.
template <class T>
void project_channels(const T* weighted, std::size_t channels, const T* basis, std::size_t rank,
                      const T* weight, const T* mean, std::size_t vertices, T* few, int threads) {
  std::vector<T> offset(rank);
  for (std::size_t r = 0; r < rank; ++r)
    offset[r] = -std::inner_product(mean, mean + channels, basis + r * channels, T{0});
  detail::each_block(vertices, threads, [&](std::size_t first, std::size_t count, std::size_t) {
    detail::project(weighted + first * channels, channels, basis, rank, weight + first,
                    offset.data(), count, few + first * rank);
  });
}

// many = basis^T few + mean: the way back.
template <class T>
void expand_channels(const T* few, std::size_t rank, const T* basis, std::size_t channels,
                     const T* mean, std::size_t vertices, T* many, int threads) {
  detail::each_block(vertices, threads, [&](std::size_t first, std::size_t count, std::size_t) {
    detail::expand(few + first * rank, rank, basis, channels, mean, count, many + first * channels);
  });
}

}  // namespace bilateral
