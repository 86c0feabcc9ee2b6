// Rows: the arithmetic of one model on a block of a graph's rows. All loops of multigrid are
// written in terms of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/pack.hpp"
#include "multigrid/graph.hpp"
#include "multigrid/hierarchy.hpp"
#include "multigrid/model.hpp"
#include "multigrid/row_block.hpp"

namespace bilateral {

template <class T, class Model>
struct Rows;

// The levels of a hierarchy with what a model needs to know of each.
template <class T, class Model>
struct Levels;

template <class T, std::size_t K>
struct Levels<T, Constant<K>> {
  const Hierarchy<T>& hierarchy;

  const Graph<T>& fine() const { return hierarchy.fine; }
  const Graph<T>& coarse(std::size_t k) const { return hierarchy.coarse[k]; }

  // The number of pixels of each row of the grid, in memory of the caller.
  const T* pixel_moments(const Grid& grid, Buffer<T>& mass) const {
    mass = Buffer<T>(hierarchy.fine.rows);
    for (std::size_t row = 0; row < mass.size(); ++row) {
      const std::size_t v = hierarchy.fine.vertex[row];
      mass[row] = v == nowhere ? T{0} : static_cast<T>(grid.mass[v]);
    }
    return mass.data();
  }
};

template <class T, std::size_t K>
struct Rows<T, Constant<K>> : Block<T, K> {
  using B = Block<T, K>;
  using typename B::Sum;
  using typename B::V;
  static constexpr std::size_t channels = K;
  static constexpr std::size_t stride = K;          // numbers per row of a level's vectors
  static constexpr std::size_t vertex_numbers = K;  // numbers per vertex of the grid's vectors
  static constexpr std::size_t weight_numbers = 1;  // numbers per vertex of the data term
  static constexpr bool moves = false;              // whether `raise` and `lower` do anything

  // Returns -sum_j A_ij x_j / lambda over the columns [begin, end).
  static BILATERAL_INLINE V pull(const Graph<T>& graph, std::size_t begin, std::size_t end,
                                 std::size_t lane, const T* x) {
    return neighbour_sum<K>(graph, begin, end, lane, x);
  }
  // Returns the smoothness term times x, over lambda, with x_i from a register.
  static BILATERAL_INLINE V flow(const Graph<T>& graph, std::size_t slice, std::size_t lane, V x_i,
                                 const T* x) {
    return laplacian_rows<K>(graph, slice, lane, x_i, x);
  }
  // Returns the sum of x over each row's list of members.
  static BILATERAL_INLINE V members(const Columns& members, std::size_t slice, std::size_t lane,
                                    const T* x) {
    return sum_members<K>(members, slice, lane, x);
  }
  // Returns the product with the inverse of the diagonal, or with the data term.
  static BILATERAL_INLINE V times(const T* diagonal, std::size_t row, V x) {
    return B::each(diagonal, row) * x;
  }
  // Converts a residual for the restriction to the row's parent, and a parent's value to the row's.
  static BILATERAL_INLINE V raise(const Graph<T>&, std::size_t, V r) { return r; }
  static BILATERAL_INLINE V lower(const Graph<T>&, std::size_t, V x) { return x; }
  // Returns what a row would be if it had the value of its neighbour in a column.
  static BILATERAL_INLINE V beside(const Graph<T>&, std::size_t, V x) { return x; }

  static BILATERAL_INLINE Sum dot(V a, V b) { return B::widen(a * b); }
  // Returns the sum of the squares of x over the pixels of the rows.
  static BILATERAL_INLINE Sum square(const T* mass, std::size_t row, V x) {
    return B::widen(B::each(mass, row) * x * x);
  }
};

}  // namespace bilateral
