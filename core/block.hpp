// The unit of work on a graph's rows: eight rows of one channel, or one row of K channels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "graph.hpp"
#include "pack.hpp"

namespace bilateral {

template <class T, std::size_t K>
struct Block {
  static constexpr std::size_t rows = K == 1 ? slice_rows : 1;
  static constexpr std::size_t lanes = K == 1 ? slice_rows : K;
  using V = Lanes<T, lanes>;
  using Sum = Lanes<double, lanes>;

  static BILATERAL_INLINE V get(const T* from, std::size_t row) {
    return load_lanes<V>(from + row * K);
  }
  static BILATERAL_INLINE void put(T* to, std::size_t row, V value) {
    store_lanes(to + row * K, value);
  }
  // One number per row, to be multiplied with a block.
  template <class S>
  static BILATERAL_INLINE auto each(const S* from, std::size_t row) {
    if constexpr (K == 1)
      return __builtin_convertvector((load_lanes<Lanes<S, rows>>(from + row)), V);
    else
      return static_cast<T>(from[row]);
  }
  // Rows that lie anywhere.
  static BILATERAL_INLINE V gather(const T* from, const std::uint32_t* row) {
    if constexpr (K == 1)
      return V{from[row[0]], from[row[1]], from[row[2]], from[row[3]],
               from[row[4]], from[row[5]], from[row[6]], from[row[7]]};
    else
      return load_lanes<V>(from + row[0] * K);
  }

  static BILATERAL_INLINE Sum widen(V value) { return __builtin_convertvector(value, Sum); }
  // One number per channel.
  static BILATERAL_INLINE V channels(const std::array<double, K>& numbers) {
    if constexpr (K == 1)
      return V{} + static_cast<T>(numbers[0]);
    else
      return pack<T, K>(numbers);
  }
  static BILATERAL_INLINE std::array<double, K> total(Sum sum) {
    if constexpr (K == 1)
      return {fold_lanes<double, lanes>(sum, lanes_sum)};
    else
      return unpack<K>(sum);
  }
};

// f(row, slice, lane) for each block of the slices [begin, end).
template <class T, std::size_t K, class F>
BILATERAL_INLINE void each_block(std::size_t begin, std::size_t end, F&& f) {
  for (std::size_t s = begin; s < end; ++s)
    for (std::size_t lane = 0; lane < slice_rows; lane += Block<T, K>::rows)
      f(s * slice_rows + lane, s, lane);
}

// sum of w_ij x_j over the columns [begin, end)
template <std::size_t K, class T>
BILATERAL_INLINE auto pull(const Graph<T>& graph, std::size_t begin, std::size_t end,
                           std::size_t lane, const T* x) {
  using B = Block<T, K>;
  const std::uint32_t* to = graph.entry.to.data() + lane;
  const T* weight = graph.weight.data() + lane;
  typename B::V sum{};
  for (std::size_t e = begin * slice_rows; e < end * slice_rows; e += slice_rows)
    sum += B::each(weight, e) * B::gather(x, to + e);
  return sum;
}

// sum of w_ij (y - x_j) over all columns of a slice
template <std::size_t K, class T>
BILATERAL_INLINE auto differ(const Graph<T>& graph, std::size_t slice, std::size_t lane,
                             typename Block<T, K>::V y, const T* x) {
  using B = Block<T, K>;
  const std::uint32_t* to = graph.entry.to.data() + lane;
  const T* weight = graph.weight.data() + lane;
  typename B::V sum{};
  for (std::size_t e = graph.entry.first[slice] * slice_rows;
       e < graph.entry.first[slice + 1] * slice_rows; e += slice_rows)
    sum += B::each(weight, e) * (y - B::gather(x, to + e));
  return sum;
}

// sum of x over lists of rows
template <std::size_t K, class T>
BILATERAL_INLINE auto collect(const Columns& lists, std::size_t slice, std::size_t lane,
                              const T* x) {
  using B = Block<T, K>;
  const std::uint32_t* to = lists.to.data() + lane;
  typename B::V sum{};
  for (std::size_t e = lists.first[slice] * slice_rows; e < lists.first[slice + 1] * slice_rows;
       e += slice_rows)
    sum += B::gather(x, to + e);
  return sum;
}

}  // namespace bilateral
