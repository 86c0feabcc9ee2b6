// V-cycle on the levels above the grid. Gauss-Seidel over the colours smooths on the way down, and
// in reverse order on the way up. All threads of a team call these functions together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/threads.hpp"
#include "multigrid/diagonals.hpp"
#include "multigrid/hierarchy.hpp"
#include "multigrid/rows.hpp"

namespace bilateral {

// The index k stands for level k + 1 of the hierarchy.
template <class T, class Model>
class VCycle {
 public:
  VCycle(const Levels<T, Model>& levels, const DiagonalsOf<T, Model>& diagonals)
      : levels_(levels), hierarchy_(levels.hierarchy), diagonals_(diagonals) {
    std::size_t max_rows = 0;  // a coarser level may have more rows, as padding of its colours
    for (const Graph<T>& graph : hierarchy_.coarse) {
      max_rows = std::max(max_rows, graph.rows);
      r_.push_back(level_vector<T>(graph.rows, R::stride));
      x_.push_back(level_vector<T>(graph.rows, R::stride));
    }
    remaining_ = level_vector<T>(max_rows, R::stride);
    while (first_small_ < depth() && hierarchy_.coarse[first_small_].rows >= shared_rows)
      ++first_small_;
  }

  std::size_t depth() const { return hierarchy_.depth(); }
  // The first of the small levels, which one thread processes alone.
  std::size_t first_small() const { return first_small_; }
  // The right-hand side r of A_k x = r, written by the caller.
  T* residual(std::size_t k = 0) { return r_[k].data(); }
  // The approximate solution x.
  T* correction(std::size_t k = 0) { return x_[k].data(); }

  // Computes correction(k) from residual(k). Needs a barrier before, ends with a barrier.
  void apply(const Worker& worker, std::size_t k = 0) {
    for (std::size_t level = k; level < first_small_; ++level) descend(worker, level);
    if (worker.rank == 0) {
      Barrier no_barrier;
      const Worker alone{0, 1, no_barrier};
      const std::size_t first = std::max(k, first_small_);
      for (std::size_t level = first; level < depth(); ++level) descend(alone, level);
      for (std::size_t level = depth(); level-- > first;) ascend(alone, level);
    }
    worker.barrier.wait();
    for (std::size_t level = first_small_; level-- > k;) ascend(worker, level);
  }

  // Writes residual(k) = b - A_k x.
  void find_residual(const Worker& worker, std::size_t k, const T* b, const T* x) {
    const auto& level = levels_.coarse(k);
    const T lambda = diagonals_.smoothness(k + 1);
    const T* weight = diagonals_.weight(k + 1);
    T* r = r_[k].data();
    const std::size_t rows = hierarchy_.coarse[k].rows;
    each(Slices(0, rows, worker), [&](std::size_t row, std::size_t s, std::size_t lane) {
      const V x_i = R::get(x, row);
      R::put(
          r, row,
          R::get(b, row) - R::times(weight, row, x_i) - lambda * R::flow(level, s, lane, x_i, x));
    });
  }

  // Writes P^T fine: sums over the members of each row of level k + 1. The model's `raise` must
  // have converted `fine`.
  void restrict_to(const Worker& worker, std::size_t k, const T* fine, T* coarse) const {
    const Columns& members = hierarchy_.transfers[k].members;
    each(Slices(0, hierarchy_.coarse[k].rows, worker),
         [&](std::size_t row, std::size_t s, std::size_t lane) {
           R::put(coarse, row, R::members(members, s, lane, fine));
         });
  }

 private:
  using R = Rows<T, Model>;
  using V = typename R::V;

  static constexpr std::size_t shared_rows = 4096;  // fewer rows are not worth a barrier

  // A level's part of the system A_k x = r, as Gauss-Seidel needs it.
  struct Level {
    const Graph<T>& graph;
    decltype(std::declval<const Levels<T, Model>&>().coarse(0)) terms;
    T lambda;
    const T* inverse;  // 1 / diag(A_k)
    const T* r;
    T* x;
  };

  Level level_of(std::size_t k) {
    return {hierarchy_.coarse[k],      levels_.coarse(k), diagonals_.smoothness(k + 1),
            diagonals_.inverse(k + 1), r_[k].data(),      x_[k].data()};
  }

  template <class F>
  static BILATERAL_INLINE void each(const Slices& slices, F&& f) {
    each_block<R>(slices.begin, slices.end, f);
  }

  // Gauss-Seidel on the rows of one colour: x_i = (r_i + lambda_k sum_j w_ij x_j) / (A_k)_ii. The
  // sum is over the columns of each slice that lie before end(slice).
  template <class End>
  static BILATERAL_INLINE void relax(const Worker& worker, const Level& level, std::size_t colour,
                                     End&& end) {
    const Graph<T>& graph = level.graph;
    const T lambda = level.lambda;
    const T *inverse = level.inverse, *r = level.r;
    T* x = level.x;
    each(Slices(graph.colour[colour], graph.colour[colour + 1], worker),
         [&](std::size_t row, std::size_t s, std::size_t lane) {
           const V sum = R::pull(level.terms, graph.entry.first[s], end(s), lane, x);
           R::put(x, row, R::times(inverse, row, R::get(r, row) + lambda * sum));
         });
    worker.barrier.wait();
  }

  // Smooths from x = 0, so that rows of later colours do not count yet, and restricts the residual.
  void descend(const Worker& worker, std::size_t k) {
    const Level level = level_of(k);
    const Graph<T>& graph = level.graph;
    for (std::size_t c = 0; c < graph.colours(); ++c)
      relax(worker, level, c, [&](std::size_t s) { return graph.first_later[s]; });
    if (k + 1 == depth()) return;
    // Each row was solved for x = 0 at its neighbours of later colours: that is its residual.
    T* remaining = remaining_.data();
    each(Slices(0, graph.rows, worker), [&](std::size_t row, std::size_t s, std::size_t lane) {
      const V left = level.lambda * R::pull(level.terms, graph.first_later[s],
                                            graph.entry.first[s + 1], lane, level.x);
      R::put(remaining, row, R::raise(level.terms, row, left));
    });
    if (worker.rank == 0)
      std::fill_n(remaining + graph.rows * R::stride, slice_rows * R::stride, T{0});
    worker.barrier.wait();
    restrict_to(worker, k + 1, remaining, r_[k + 1].data());
    worker.barrier.wait();
  }

  // Adds the correction of the next coarser level, and smooths.
  void ascend(const Worker& worker, std::size_t k) {
    const Level level = level_of(k);
    const Graph<T>& graph = level.graph;
    if (k + 1 < depth()) {
      const std::uint32_t* parent = hierarchy_.transfers[k + 1].parent.data();
      const T* coarse = x_[k + 1].data();
      each(Slices(0, graph.rows, worker), [&](std::size_t row, std::size_t, std::size_t) {
        const V above = R::lower(level.terms, row, R::gather(coarse, parent + row));
        R::put(level.x, row, R::get(level.x, row) + above);
      });
      worker.barrier.wait();
    }
    for (std::size_t c = graph.colours(); c-- > 0;)
      relax(worker, level, c, [&](std::size_t s) { return graph.entry.first[s + 1]; });
  }

  Levels<T, Model> levels_;
  const Hierarchy<T>& hierarchy_;
  const DiagonalsOf<T, Model>& diagonals_;
  std::size_t first_small_ = 0;
  std::vector<Buffer<T>> r_, x_;  // by k
  Buffer<T> remaining_;           // residual of the level that descends
};

}  // namespace bilateral
