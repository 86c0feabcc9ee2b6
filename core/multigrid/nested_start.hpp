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
#include "multigrid/grid_vectors.hpp"
#include "multigrid/hierarchy.hpp"
#include "multigrid/rows.hpp"
#include "multigrid/vcycle.hpp"

namespace bilateral {

namespace detail {

// As in VCycle, the index k stands for level k + 1 of the hierarchy.
template <class T, class Model>
class NestedStart {
 public:
  NestedStart(const Levels<T, Model>& levels, const DiagonalsOf<T, Model>& diagonals)
      : levels_(levels),
        hierarchy_(levels.hierarchy),
        diagonals_(diagonals),
        cycle_(levels, diagonals) {
    for (const Graph<T>& graph : hierarchy_.coarse) {
      b_.push_back(level_vector<T>(graph.rows, R::stride));
      x_.push_back(level_vector<T>(graph.rows, R::stride));
    }
    fine_b_ = level_vector<T>(hierarchy_.fine.rows, R::stride);
    if (R::moves) fine_x_ = level_vector<T>(hierarchy_.fine.rows, R::stride);
  }

  // Computes x from b, both by vertex. All threads of a team call this together.
  void find(const Worker& worker, const T* b, T* x) {
    const GridVectors<T, Model> vectors{hierarchy_.fine};
    const auto& fine = levels_.fine();
    const Slices slices(0, hierarchy_.fine.rows, worker);
    const auto each = [&](auto&& f) { each_block<R>(slices.begin, slices.end, f); };
    // Rows without a parent are not raised: they are solved below.
    each([&](std::size_t row, std::size_t, std::size_t) {
      R::put(fine_b_.data(), row, R::raise(fine, row, vectors.read(b, row)));
    });
    worker.barrier.wait();
    const bool without_edges = hierarchy_.depth() == 0;
    if (!without_edges) {
      cycle_.restrict_to(worker, 0, fine_b_.data(), b_[0].data());
      worker.barrier.wait();
      solve_coarse_levels(worker);
    }
    // A vertex without neighbours has no parent: it is solved exactly.
    const T* inverse = diagonals_.inverse(0);
    const T* b_rows = fine_b_.data();
    if (without_edges) {
      each([&](std::size_t row, std::size_t, std::size_t) {
        vectors.write(x, row, R::times(inverse, row, R::get(b_rows, row)));
      });
      return;
    }
    const std::uint32_t* parent = hierarchy_.transfers[0].parent.data();
    const std::uint32_t none = static_cast<std::uint32_t>(hierarchy_.coarse[0].rows);
    each([&](std::size_t row, std::size_t, std::size_t) {
      const V above = R::lower(fine, row, R::gather(x_[0].data(), parent + row));
      const V alone = R::times(inverse, row, R::get(b_rows, row));
      vectors.write(x, row, above, alone, [&](std::size_t i) { return parent[row + i] == none; });
      if constexpr (R::moves) R::put(fine_x_.data(), row, above);
    });
    if constexpr (R::moves) {
      // The steps begin with colour 0. So one sweep over colour 1 is enough to smooth the start.
      worker.barrier.wait();
      const GridGraph<T>& graph = hierarchy_.fine;
      const Slices second(graph.colour[1], graph.rows, worker);
      const T lambda = diagonals_.smoothness(0);
      each_block<R>(
          second.begin, second.end, [&](std::size_t row, std::size_t s, std::size_t lane) {
            const V sum =
                R::pull(fine, graph.entry.first[s], graph.entry.first[s + 1], lane, fine_x_.data());
            vectors.write(x, row, R::times(inverse, row, vectors.read(b, row) + lambda * sum));
          });
    }
  }

 private:
  using R = Rows<T, Model>;
  using V = typename R::V;

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
    const T* b = b_[k - 1].data();
    if constexpr (R::moves) {
      const auto& level = levels_.coarse(k - 1);
      T* raised = x_[k - 1].data();  // free until the way down
      const Slices slices(0, hierarchy_.coarse[k - 1].rows, worker);
      each_block<R>(slices.begin, slices.end, [&](std::size_t row, std::size_t, std::size_t) {
        R::put(raised, row, R::raise(level, row, R::get(b, row)));
      });
      b = raised;
      worker.barrier.wait();
    }
    cycle_.restrict_to(worker, k, b, b_[k].data());
    worker.barrier.wait();
  }

  // Computes x_[k] from x_[k + 1] and one V-cycle. The coarsest level is solved exactly.
  void improve(const Worker& worker, std::size_t k) {
    const Slices slices(0, hierarchy_.coarse[k].rows, worker);
    const auto each = [&](auto&& f) { each_block<R>(slices.begin, slices.end, f); };
    const T* b = b_[k].data();
    T* x = x_[k].data();
    if (k + 1 == hierarchy_.depth()) {
      const T* inverse = diagonals_.inverse(k + 1);
      each([&](std::size_t row, std::size_t, std::size_t) {
        R::put(x, row, R::times(inverse, row, R::get(b, row)));
      });
      worker.barrier.wait();
      return;
    }
    const auto& level = levels_.coarse(k);
    const std::uint32_t* parent = hierarchy_.transfers[k + 1].parent.data();
    const T* coarse = x_[k + 1].data();
    each([&](std::size_t row, std::size_t, std::size_t) {
      R::put(x, row, R::lower(level, row, R::gather(coarse, parent + row)));
    });
    worker.barrier.wait();
    cycle_.find_residual(worker, k, b, x);
    worker.barrier.wait();
    cycle_.apply(worker, k);
    const T* correction = cycle_.correction(k);
    each([&](std::size_t row, std::size_t, std::size_t) {
      R::put(x, row, R::get(x, row) + R::get(correction, row));
    });
    worker.barrier.wait();
  }

  Levels<T, Model> levels_;
  const Hierarchy<T>& hierarchy_;
  const DiagonalsOf<T, Model>& diagonals_;
  VCycle<T, Model> cycle_;
  std::vector<Buffer<T>> b_, x_;  // by k
  Buffer<T> fine_b_, fine_x_;     // b and x of the grid, by row
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
    detail::NestedStart<T, Constant<K>> start({hierarchy}, diagonals);
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
