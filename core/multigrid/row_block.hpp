// Row block: the unit that all loops over a graph's rows process at once. A block is eight rows of
// one channel, or one row of K channels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/pack.hpp"
#include "multigrid/graph.hpp"

namespace bilateral {

template <class T, std::size_t K>
struct Block {
  static constexpr std::size_t rows = K == 1 ? slice_rows : 1;
  static constexpr std::size_t lanes = K == 1 ? slice_rows : K;
  using V = Wide<T, lanes>;
  using Sum = Wide<double, lanes>;

  static BILATERAL_INLINE V get(const T* from, std::size_t row) {
    return bilateral::get<lanes>(from + row * K);
  }
  static BILATERAL_INLINE void put(T* to, std::size_t row, V value) {
    bilateral::put<lanes>(to + row * K, value);
  }
  // Reads one number per row, as a factor for a block.
  static BILATERAL_INLINE auto each(const T* from, std::size_t row) {
    if constexpr (K == 1)
      return bilateral::get<lanes>(from + row);
    else
      return from[row];
  }
  // Reads rows that need not be consecutive.
  static BILATERAL_INLINE V gather(const T* from, const std::uint32_t* row) {
    if constexpr (K == 1)
      return V::generate([=](std::size_t i) __attribute__((always_inline)) {
        const std::uint32_t* at = row + i * V::width;
        if constexpr (V::width == 4)
          return typename V::Part{from[at[0]], from[at[1]], from[at[2]], from[at[3]]};
        else
          return typename V::Part{from[at[0]], from[at[1]]};
      });
    else
      return bilateral::get<K>(from + std::size_t{row[0]} * K);
  }

  static BILATERAL_INLINE Sum widen(V value) { return bilateral::widen<lanes, T>(value); }
  // Returns the block whose rows all hold these numbers, one per channel.
  static BILATERAL_INLINE V filled(const std::array<double, K>& numbers) {
    if constexpr (K == 1)
      return V::filled(static_cast<T>(numbers[0]));
    else
      return pack<T, K>(numbers);
  }
  // Adds up the rows: one number per channel.
  static BILATERAL_INLINE std::array<double, K> total(Sum sum) {
    const std::array<double, lanes> numbers = unpack<lanes>(sum);
    std::array<double, K> totals{};
    for (std::size_t i = 0; i < lanes; ++i) totals[i % K] += numbers[i];
    return totals;
  }
};

// Calls f(row, slice, lane) for each block of the slices [begin, end).
template <class B, class F>
BILATERAL_INLINE void each_block(std::size_t begin, std::size_t end, F&& f) {
  for (std::size_t s = begin; s < end; ++s)
    for (std::size_t lane = 0; lane < slice_rows; lane += B::rows)
      f(s * slice_rows + lane, s, lane);
}

// Returns sum_j w_ij x_j over the columns [begin, end).
template <std::size_t K, class T>
BILATERAL_INLINE auto neighbour_sum(const Graph<T>& graph, std::size_t begin, std::size_t end,
                                    std::size_t lane, const T* x) {
  using B = Block<T, K>;
  const std::uint32_t* to = graph.entry.to.data() + lane;
  const T* weight = graph.weight.data() + lane;
  typename B::V sum{};
  for (std::size_t e = begin * slice_rows; e < end * slice_rows; e += slice_rows)
    sum += B::each(weight, e) * B::gather(x, to + e);
  return sum;
}

// Returns (L x)_i = sum_j w_ij (x_i - x_j) over all columns of a slice, with x_i from a register.
template <std::size_t K, class T>
BILATERAL_INLINE auto laplacian_rows(const Graph<T>& graph, std::size_t slice, std::size_t lane,
                                     typename Block<T, K>::V x_i, const T* x) {
  using B = Block<T, K>;
  const std::uint32_t* to = graph.entry.to.data() + lane;
  const T* weight = graph.weight.data() + lane;
  typename B::V sum{};
  for (std::size_t e = graph.entry.first[slice] * slice_rows;
       e < graph.entry.first[slice + 1] * slice_rows; e += slice_rows)
    sum += B::each(weight, e) * (x_i - B::gather(x, to + e));
  return sum;
}

// Returns the sum of x over each row's list of members.
template <std::size_t K, class T>
BILATERAL_INLINE auto sum_members(const Columns& members, std::size_t slice, std::size_t lane,
                                  const T* x) {
  using B = Block<T, K>;
  const std::uint32_t* to = members.to.data() + lane;
  typename B::V sum{};
  for (std::size_t e = members.first[slice] * slice_rows; e < members.first[slice + 1] * slice_rows;
       e += slice_rows)
    sum += B::gather(x, to + e);
  return sum;
}

}  // namespace bilateral
