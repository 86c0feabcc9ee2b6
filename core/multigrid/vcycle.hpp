// The levels above the grid of a multigrid V-cycle: Gauss-Seidel over colours down, and in reverse
// order up. All threads of a team call these functions together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/threads.hpp"
#include "multigrid/diagonals.hpp"
#include "multigrid/hierarchy.hpp"
#include "multigrid/row_block.hpp"

namespace bilateral {

template <class T, std::size_t K>
class VCycle {
 public:
  VCycle(const Multigrid<T>& multigrid, const Diagonals<T>& diagonals)
      : multigrid_(multigrid), diagonals_(diagonals) {
    std::size_t most = 0;  // rows; a coarser level may have more, for its colours
    for (const Graph<T>& graph : multigrid.coarse) {
      most = std::max(most, graph.rows);
      r_.push_back(level_vector<T>(graph.rows, K));
      x_.push_back(level_vector<T>(graph.rows, K));
    }
    left_ = level_vector<T>(most, K);
    // Levels too small to share are left to one thread.
    while (shared_ < depth() && multigrid.coarse[shared_].rows >= 4096) ++shared_;
  }

  std::size_t depth() const { return multigrid_.depth(); }
  std::size_t shared() const { return shared_; }
  T* residual(std::size_t k = 0) { return r_[k].data(); }  // of level k + 1, given by the caller
  T* correction(std::size_t k = 0) { return x_[k].data(); }

  // From residual(k) to correction(k). A barrier comes before and after.
  void apply(const Worker& worker, std::size_t k = 0) {
    for (std::size_t level = k; level < shared_; ++level) descend(worker, level);
    if (worker.rank == 0) {
      Barrier none;
      const Worker alone{0, 1, none};
      const std::size_t first = std::max(k, shared_);
      for (std::size_t level = first; level < depth(); ++level) descend(alone, level);
      for (std::size_t level = depth(); level-- > first;) ascend(alone, level);
    }
    worker.barrier.wait();
    for (std::size_t level = shared_; level-- > k;) ascend(worker, level);
  }

  // residual(k) = b - A_k x
  void subtract(const Worker& worker, std::size_t k, const T* b, const T* x) {
    const Graph<T>& graph = multigrid_.coarse[k];
    const T factor = diagonals_.smoothness(k + 1);
    const T* weight = diagonals_.weight(k + 1);
    T* r = r_[k].data();
    each(Slices(0, graph.rows, worker), [&](std::size_t row, std::size_t s, std::size_t lane) {
      const V mine = B::get(x, row);
      B::put(r, row,
             B::get(b, row) - B::each(weight, row) * mine -
                 factor * differ<K>(graph, s, lane, mine, x));
    });
  }

  // Sums over the children of each of level k + 1's rows.
  void restrict_to(const Worker& worker, std::size_t k, const T* below, T* out) const {
    const Columns& children = multigrid_.transfer[k].children;
    each(Slices(0, multigrid_.coarse[k].rows, worker),
         [&](std::size_t row, std::size_t s, std::size_t lane) {
           B::put(out, row, collect<K>(children, s, lane, below));
         });
  }

 private:
  using B = Block<T, K>;
  using V = typename B::V;

  template <class F>
  static BILATERAL_INLINE void each(const Slices& slices, F&& f) {
    each_block<T, K>(slices.begin, slices.end, f);
  }

  void descend(const Worker& worker, std::size_t k) {
    const Graph<T>& graph = multigrid_.coarse[k];
    const T factor = diagonals_.smoothness(k + 1);
    const T* inverse = diagonals_.inverse(k + 1);
    const T* r = r_[k].data();
    T* x = x_[k].data();
    for (std::size_t c = 0; c < graph.colours(); ++c) {
      each(Slices(graph.colour[c], graph.colour[c + 1], worker),
           [&](std::size_t row, std::size_t s, std::size_t lane) {
             const V sum = pull<K>(graph, graph.entry.first[s], graph.middle[s], lane, x);
             B::put(x, row, B::each(inverse, row) * (B::get(r, row) + factor * sum));
           });
      worker.barrier.wait();
    }
    if (k + 1 == depth()) return;
    T* left = left_.data();
    each(Slices(0, graph.rows, worker), [&](std::size_t row, std::size_t s, std::size_t lane) {
      B::put(left, row,
             factor * pull<K>(graph, graph.middle[s], graph.entry.first[s + 1], lane, x));
    });
    if (worker.rank == 0) std::fill_n(left + graph.rows * K, slice_rows * K, T{0});
    worker.barrier.wait();
    restrict_to(worker, k + 1, left, r_[k + 1].data());
    worker.barrier.wait();
  }

  void ascend(const Worker& worker, std::size_t k) {
    const Graph<T>& graph = multigrid_.coarse[k];
    const T factor = diagonals_.smoothness(k + 1);
    const T* inverse = diagonals_.inverse(k + 1);
    const T* r = r_[k].data();
    T* x = x_[k].data();
    if (k + 1 < depth()) {
      const std::uint32_t* parent = multigrid_.transfer[k + 1].parent.data();
      const T* above = x_[k + 1].data();
      each(Slices(0, graph.rows, worker), [&](std::size_t row, std::size_t, std::size_t) {
        B::put(x, row, B::get(x, row) + B::gather(above, parent + row));
      });
      worker.barrier.wait();
    }
    for (std::size_t c = graph.colours(); c-- > 0;) {
      each(Slices(graph.colour[c], graph.colour[c + 1], worker),
           [&](std::size_t row, std::size_t s, std::size_t lane) {
             const V sum = pull<K>(graph, graph.entry.first[s], graph.entry.first[s + 1], lane, x);
             B::put(x, row, B::each(inverse, row) * (B::get(r, row) + factor * sum));
           });
      worker.barrier.wait();
    }
  }

  const Multigrid<T>& multigrid_;
  const Diagonals<T>& diagonals_;
  std::size_t shared_ = 0;
  std::vector<Buffer<T>> r_, x_;  // of level k + 1 at [k]
  Buffer<T> left_;
};

}  // namespace bilateral
