// Nested start: full multigrid on the levels above the grid gives the start of a solve. It
// restricts b to all levels, solves the coarsest one, then carries the solution down and improves
// it on each level by one V-cycle. The work is about 1.5 V-cycles on these levels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/channel_groups.hpp"
#include "multigrid/diagonals.hpp"
#include "multigrid/hierarchy.hpp"
#include "multigrid/row_block.hpp"
#include "multigrid/vcycle.hpp"

namespace bilateral {

namespace detail {

// As in VCycle, the index k stands for level k + 1 of the hierarchy.
template <class T, std::size_t K>
class NestedStart {
 public:
  NestedStart(const Hierarchy<T>& hierarchy, const Diagonals<T>& diagonals)
      : hierarchy_(hierarchy), diagonals_(diagonals), cycle_(hierarchy, diagonals) {
    for (const Graph<T>& graph : hierarchy.coarse) {
      b_.push_back(level_vector<T>(graph.rows, K));
      x_.push_back(level_vector<T>(graph.rows, K));
    }
    fine_b_ = level_vector<T>(hierarchy.fine.rows, K);
  }

  // Computes x from b, both by vertex. All threads of a team call this together.
  void find(const Worker& worker, const T* b, T* x) {
    const std::uint32_t* vertex = hierarchy_.fine.vertex.data();
    const Slices slices(0, hierarchy_.fine.rows, worker);
    const std::size_t begin = slices.begin * slice_rows, end = slices.end * slice_rows;
    for (std::size_t i = begin; i < end; ++i)
      if (vertex[i] != nowhere)
        put<K>(fine_b_.data() + i * K, get<K>(b + std::size_t{vertex[i]} * K));
    worker.barrier.wait();
    const bool without_edges = hierarchy_.depth() == 0;
    if (!without_edges) {
      cycle_.restrict_to(worker, 0, fine_b_.data(), b_[0].data());
      worker.barrier.wait();
      solve_coarse_levels(worker);
    }
    // A vertex without neighbours has no parent: it is solved exactly.
    const std::size_t no_parent = without_edges ? 0 : hierarchy_.coarse[0].rows;
    for (std::size_t i = begin; i < end; ++i) {
      if (vertex[i] == nowhere) continue;
      const std::size_t parent = without_edges ? no_parent : hierarchy_.transfers[0].parent[i];
      put<K>(x + std::size_t{vertex[i]} * K,
             parent == no_parent ? diagonals_.inverse(0)[i] * get<K>(fine_b_.data() + i * K)
                                 : get<K>(x_[0].data() + parent * K));
    }
  }

 private:
  using B = Block<T, K>;

  // Computes x_[0] from b_[0]. Needs a barrier before, ends with a barrier.
  void solve_coarse_levels(const Worker& worker) {
    const std::size_t depth = hierarchy_.depth(), first_small = cycle_.first_small();
    for (std::size_t k = 1; k < first_small; ++k) restrict_to(worker, k);
    if (first_small < depth) {
      if (worker.rank == 0) {
        Barrier no_barrier;
        const Worker alone{0, 1, no_barrier};
        for (std::size_t k = std::max<std::size_t>(first_small, 1); k < depth; ++k)
          restrict_to(alone, k);
        for (std::size_t k = depth; k-- > first_small;) improve(alone, k);
      }
      worker.barrier.wait();
    }
    for (std::size_t k = first_small; k-- > 0;) improve(worker, k);
  }

  void restrict_to(const Worker& worker, std::size_t k) {
    cycle_.restrict_to(worker, k, b_[k - 1].data(), b_[k].data());
    worker.barrier.wait();
  }

  // Computes x_[k] from x_[k + 1] and one V-cycle. The coarsest level is solved exactly.
  void improve(const Worker& worker, std::size_t k) {
    const Slices slices(0, hierarchy_.coarse[k].rows, worker);
    const auto each = [&](auto&& f) { each_block<T, K>(slices.begin, slices.end, f); };
    const T* b = b_[k].data();
    T* x = x_[k].data();
    if (k + 1 == hierarchy_.depth()) {
      const T* inverse = diagonals_.inverse(k + 1);
      each([&](std::size_t row, std::size_t, std::size_t) {
        B::put(x, row, B::each(inverse, row) * B::get(b, row));
      });
      worker.barrier.wait();
      return;
    }
    const std::uint32_t* parent = hierarchy_.transfers[k + 1].parent.data();
    const T* coarse = x_[k + 1].data();
    each([&](std::size_t row, std::size_t, std::size_t) {
      B::put(x, row, B::gather(coarse, parent + row));
    });
    worker.barrier.wait();
    cycle_.find_residual(worker, k, b, x);
    worker.barrier.wait();
    cycle_.apply(worker, k);
    const T* correction = cycle_.correction(k);
    each([&](std::size_t row, std::size_t, std::size_t) {
      B::put(x, row, B::get(x, row) + B::get(correction, row));
    });
    worker.barrier.wait();
  }

  const Hierarchy<T>& hierarchy_;
  const Diagonals<T>& diagonals_;
  VCycle<T, K> cycle_;
  std::vector<Buffer<T>> b_, x_;  // by k
  Buffer<T> fine_b_;              // b of the grid, by row
};

}  // namespace detail

// Computes a start x for A x = weighted, with A = smoothness L + diag(weight). Components of the
// grid without data get 0.
template <class T>
void nested_start(const Hierarchy<T>& hierarchy, std::size_t vertices, const T* weight,
                  const T* weighted, std::size_t channels, double smoothness, T* x, int threads) {
  Diagonals<T> diagonals(hierarchy);
  diagonals.set(weight, smoothness);
  each_channel_group(channels, [&](auto K, std::size_t first, std::size_t count) {
    detail::NestedStart<T, K> start(hierarchy, diagonals);
    const bool whole = channels == K, stale = diagonals.take_stale();
    Buffer<T> group_b, group_x;
    if (!whole) {
      group_b = gather_channels<K>(weighted, vertices, channels, first, count);
      group_x = Buffer<T>(vertices * K);
    }
    run_team(team_size(threads, vertices, 4096), [&](const Worker& worker) {
      if (stale) diagonals.refresh(worker);
      start.find(worker, whole ? weighted : group_b.data(), whole ? x : group_x.data());
    });
    if (!whole) scatter_channels<K>(group_x, vertices, channels, first, count, x);
    return true;
  });
}

}  // namespace bilateral
