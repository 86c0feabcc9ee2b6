// Grid vectors: read and write vectors of the grid, which are in the order of its vertices, by
// blocks of a graph's rows.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "multigrid/grid_graph.hpp"
#include "multigrid/rows.hpp"

namespace bilateral {

template <class T, class Model>
struct GridVectors {
  using R = Rows<T, Model>;
  using V = typename R::V;
  static constexpr std::size_t numbers = R::vertex_numbers;

  const GridGraph<T>& graph;

  // Reads a block of rows; rows that stand for no vertex are 0.
  V read(const T* from, std::size_t row) const {
    std::array<T, R::rows * R::stride> values{};
    for (std::size_t i = 0; i < R::rows; ++i)
      if (const std::size_t v = graph.vertex[row + i]; v != nowhere)
        std::copy_n(from + v * numbers, numbers, values.data() + i * R::stride);
    return R::get(values.data(), 0);
  }

  void write(T* to, std::size_t row, V value) const {
    write(to, row, value, value, [](std::size_t) { return false; });
  }

  // Writes a block of rows: `other` where choose(i) is true for row i of the block.
  template <class Choose>
  void write(T* to, std::size_t row, V value, V other, Choose&& choose) const {
    std::array<T, R::rows * R::stride> values, others;
    R::put(values.data(), 0, value);
    R::put(others.data(), 0, other);
    for (std::size_t i = 0; i < R::rows; ++i)
      if (const std::size_t v = graph.vertex[row + i]; v != nowhere)
        std::copy_n((choose(i) ? others : values).data() + i * R::stride, numbers,
                    to + v * numbers);
  }

  // Keeps x only where `active` is not 0.
  V where(const std::uint8_t* active, std::size_t row, V x) const {
    std::array<T, R::rows * R::stride> values;
    R::put(values.data(), 0, x);
    for (std::size_t i = 0; i < R::rows; ++i)
      if (const std::size_t v = graph.vertex[row + i]; v != nowhere && !active[v])
        std::fill_n(values.data() + i * R::stride, R::stride, T{0});
    return R::get(values.data(), 0);
  }

  // Writes a block of rows where `active` is null or not 0.
  void write_where(const std::uint8_t* active, T* to, std::size_t row, V value) const {
    std::array<T, R::rows * R::stride> values;
    R::put(values.data(), 0, value);
    for (std::size_t i = 0; i < R::rows; ++i)
      if (const std::size_t v = graph.vertex[row + i]; v != nowhere && (!active || active[v]))
        std::copy_n(values.data() + i * R::stride, numbers, to + v * numbers);
  }
};

}  // namespace bilateral
