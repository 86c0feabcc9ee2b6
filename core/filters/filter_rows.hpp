// Row filter of the domain transform: runs the recursion from left to right and back.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/lanes.hpp"
#include "base/multiversion.hpp"
#include "filters/recursion.hpp"

namespace bilateral {

// Rows that are filtered at a time, one per lane. A single row would not fill a vector, since each
// pixel waits for the pixel before it.
template <class T>
inline constexpr std::size_t rows_at_once = 32 / sizeof(T);

namespace detail {

// Returns the i-th pixel of a row of n pixels in the order of the filter.
template <bool Forward>
BILATERAL_INLINE std::size_t nth(std::size_t i, std::size_t n) {
  return Forward ? i : n - 1 - i;
}

// Transposes n numbers of each of N rows, which are `stride` apart: each vector gets one number per
// row.
template <std::size_t N, class T>
BILATERAL_INLINE void rows_to_lanes(const T* rows, std::size_t stride, std::size_t n,
                                    Lanes<T, N>* lanes) {
  std::size_t i = 0;
  for (; i + N <= n; i += N) {
    for (std::size_t r = 0; r < N; ++r)
      lanes[i + r] = load_lanes<Lanes<T, N>>(rows + r * stride + i);
    transpose_lanes<T, N>(lanes + i);
  }
  for (; i < n; ++i)
    for (std::size_t r = 0; r < N; ++r) lanes[i][r] = rows[r * stride + i];
}

// Transposes back.
template <std::size_t N, class T>
BILATERAL_INLINE void lanes_to_rows(Lanes<T, N>* lanes, std::size_t stride, std::size_t n,
                                    T* rows) {
  std::size_t i = 0;
  for (; i + N <= n; i += N) {
    transpose_lanes<T, N>(lanes + i);
    for (std::size_t r = 0; r < N; ++r) store_lanes(rows + r * stride + i, lanes[i + r]);
  }
  for (; i < n; ++i)
    for (std::size_t r = 0; r < N; ++r) rows[r * stride + i] = lanes[i][r];
}

// Filters as many rows as a vector has lanes, of K channels, forward and back. w has the weight of
// each pixel's left neighbour, with 0 in the first column, and one more 0 after the last row.
template <std::size_t K, class T>
BILATERAL_INLINE void along_rows(T* rows, T* masses, std::size_t width, const T* w, T* scratch) {
  constexpr std::size_t N = rows_at_once<T>;
  using Values = Lanes<T, N>;
  T* const forward_masses = scratch + width * K * N;
  Values shares[N], m[N], v[K * N], last[K] = {}, mass = {};
  for (std::size_t x = 0; x < width; x += N) {
    const std::size_t n = std::min(N, width - x);
    rows_to_lanes<N>(w + x, width, n, shares);
    if (masses) {
      rows_to_lanes<N>(masses + x, width, n, m);
      for (std::size_t i = 0; i < n; ++i) {
        shares[i] = gather_mass<T>(m[i], mass, shares[i]);
        store_lanes(forward_masses + (x + i) * N, mass = m[i]);
      }
    }
    rows_to_lanes<N>(rows + x * K, width * K, n * K, v);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = 0; k < K; ++k) {
        const Values value = v[i * K + k];
        last[k] = value + shares[i] * (last[k] - value);
        store_lanes(scratch + ((x + i) * K + k) * N, last[k]);
      }
  }
  mass = Values{};
  for (std::size_t x = (width - 1) / N * N + N; x > 0;) {
    x -= N;
    const std::size_t n = std::min(N, width - x);
    rows_to_lanes<N>(w + x + 1, width, n, shares);
    if (masses) {
      for (std::size_t i = n; i-- > 0;) {
        m[i] = load_lanes<Values>(forward_masses + (x + i) * N);
        shares[i] = gather_mass<T>(m[i], mass, shares[i]);
        mass = m[i];
      }
      lanes_to_rows<N>(m, width, n, masses + x);
    }
    for (std::size_t i = n; i-- > 0;)
      for (std::size_t k = 0; k < K; ++k) {
        const auto value = load_lanes<Values>(scratch + ((x + i) * K + k) * N);
        v[i * K + k] = last[k] = value + shares[i] * (last[k] - value);
      }
    lanes_to_rows<N>(v, width * K, n * K, rows + x * K);
  }
}

// Filters one row of any number of channels in one direction. `shares` is scratch for one number
// per pixel.
template <bool Forward, class T>
BILATERAL_INLINE void along_row(T* row, T* masses, std::size_t width, std::size_t channels,
                                const T* w, T* shares) {
  if (masses) {
    for (std::size_t i = 1; i < width; ++i) {
      const std::size_t x = nth<Forward>(i, width);
      shares[x] = gather_mass<T>(masses[x], masses[nth<Forward>(i - 1, width)], w[x]);
    }
    w = shares;
  }
  for (std::size_t i = 1; i < width; ++i) {
    T* __restrict to = row + nth<Forward>(i, width) * channels;
    const T* __restrict from = row + nth<Forward>(i - 1, width) * channels;
    const T share = w[nth<Forward>(i, width)];
    for (std::size_t k = 0; k < channels; ++k) to[k] += share * (from[k] - to[k]);
  }
}

template <class T>
BILATERAL_INLINE void rows_forward_and_back(T* rows, T* masses, std::size_t count,
                                            std::size_t width, std::size_t channels, const T* w,
                                            T* scratch) {
  const bool full = count == rows_at_once<T>;
  if (full && channels == 1) return along_rows<1>(rows, masses, width, w, scratch);
  if (full && channels == 2) return along_rows<2>(rows, masses, width, w, scratch);
  if (full && channels == 3) return along_rows<3>(rows, masses, width, w, scratch);
  for (std::size_t r = 0; r < count; ++r) {
    T* row = rows + r * width * channels;
    T* mass = masses ? masses + r * width : nullptr;
    along_row<true>(row, mass, width, channels, w + r * width, scratch);
    along_row<false>(row, mass, width, channels, w + r * width + 1, scratch);
  }
}

template <class T>
BILATERAL_INLINE void filter_rows_body(T* rows, T* masses, std::size_t count, std::size_t width,
                                       std::size_t channels, const T* weights, int squarings, T* w,
                                       T* scratch) {
  raise(weights, count * width, squarings, w);
  w[count * width] = 0;
  rows_forward_and_back(rows, masses, count, width, channels, w, scratch);
}

}  // namespace detail

// Filters `count` rows, at most rows_at_once, in place. `weights` are those of the first pass. `w`
// has room for one number per pixel and one more, `scratch` for all values and masses of the rows.
template <class T>
void filter_rows(T* rows, T* masses, std::size_t count, std::size_t width, std::size_t channels,
                 const T* weights, int squarings, T* w, T* scratch) {
  multiversion<detail::filter_rows_body<T>>(rows, masses, count, width, channels, weights,
                                            squarings, w, scratch);
}

}  // namespace bilateral
