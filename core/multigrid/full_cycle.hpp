// Full multigrid above the grid: solve the coarsest level, then carry the solution down, improving
// it on each level by one V-cycle. About one and a half times the work of a V-cycle from the top.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "multigrid/diagonals.hpp"
#include "multigrid/hierarchy.hpp"
#include "multigrid/row_block.hpp"
#include "multigrid/vcycle.hpp"

namespace bilateral {

template <class T, std::size_t K>
class FullCycle {
 public:
  FullCycle(const Multigrid<T>& multigrid, const Diagonals<T>& diagonals, VCycle<T, K>& cycle)
      : multigrid_(multigrid), diagonals_(diagonals), cycle_(cycle) {
    for (const Graph<T>& graph : multigrid.coarse) {
      b_.push_back(level_vector<T>(graph.rows, K));
      y_.push_back(level_vector<T>(graph.rows, K));
    }
  }

  T* right_side() { return b_[0].data(); }  // of level 1, given by the caller
  const T* solution() const { return y_[0].data(); }

  // From right_side() to solution(). A barrier comes before and after.
  void apply(const Worker& worker) {
    const std::size_t depth = multigrid_.depth(), shared = cycle_.shared();
    for (std::size_t k = 1; k < shared; ++k) restrict_to(worker, k);
    if (shared < depth) {
      if (worker.rank == 0) {
        Barrier none;
        const Worker alone{0, 1, none};
        for (std::size_t k = std::max<std::size_t>(shared, 1); k < depth; ++k)
          restrict_to(alone, k);
        for (std::size_t k = depth; k-- > shared;) improve(alone, k);
      }
      worker.barrier.wait();
    }
    for (std::size_t k = shared; k-- > 0;) improve(worker, k);
  }

 private:
  using B = Block<T, K>;

  void restrict_to(const Worker& worker, std::size_t k) {
    cycle_.restrict_to(worker, k, b_[k - 1].data(), b_[k].data());
    worker.barrier.wait();
  }

  void improve(const Worker& worker, std::size_t k) {
    const Slices slices(0, multigrid_.coarse[k].rows, worker);
    const auto each = [&](auto&& f) { each_block<T, K>(slices.begin, slices.end, f); };
    const T* b = b_[k].data();
    T* y = y_[k].data();
    if (k + 1 == multigrid_.depth()) {
      const T* inverse = diagonals_.inverse(k + 1);
      each([&](std::size_t row, std::size_t, std::size_t) {
        B::put(y, row, B::each(inverse, row) * B::get(b, row));
      });
      worker.barrier.wait();
      return;
    }
    const std::uint32_t* parent = multigrid_.transfer[k + 1].parent.data();
    const T* above = y_[k + 1].data();
    each([&](std::size_t row, std::size_t, std::size_t) {
      B::put(y, row, B::gather(above, parent + row));
    });
    worker.barrier.wait();
    cycle_.subtract(worker, k, b, y);
    worker.barrier.wait();
    cycle_.apply(worker, k);
    const T* x = cycle_.correction(k);
    each([&](std::size_t row, std::size_t, std::size_t) {
      B::put(y, row, B::get(y, row) + B::get(x, row));
    });
    worker.barrier.wait();
  }

  const Multigrid<T>& multigrid_;
  const Diagonals<T>& diagonals_;
  VCycle<T, K>& cycle_;
  std::vector<Buffer<T>> b_, y_;  // of level k + 1 at [k]
};

}  // namespace bilateral
