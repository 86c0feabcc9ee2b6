// The nested start: the solution of full multigrid on the levels above the grid.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/channels.hpp"
#include "multigrid/diagonals.hpp"
#include "multigrid/full_cycle.hpp"
#include "multigrid/hierarchy.hpp"
#include "multigrid/row_block.hpp"
#include "multigrid/vcycle.hpp"

namespace bilateral {

namespace detail {

template <class T, std::size_t K>
class NestedStart {
 public:
  NestedStart(const Multigrid<T>& multigrid, const Diagonals<T>& diagonals)
      : multigrid_(multigrid),
        diagonals_(diagonals),
        cycle_(multigrid, diagonals),
        full_(multigrid, diagonals, cycle_),
        b_(level_vector<T>(multigrid.fine.rows, K)) {}

  // All threads of a team call it together.
  void find(const Worker& worker, const T* b, T* x) {
    const std::uint32_t* vertex = multigrid_.fine.vertex.data();
    const Slices own(0, multigrid_.fine.rows, worker);
    for (std::size_t i = own.begin * slice_rows; i < own.end * slice_rows; ++i)
      if (vertex[i] != nowhere) put<K>(b_.data() + i * K, get<K>(b + std::size_t{vertex[i]} * K));
    worker.barrier.wait();
    const bool alone = multigrid_.depth() == 0;
    if (!alone) {
      cycle_.restrict_to(worker, 0, b_.data(), full_.right_side());
      worker.barrier.wait();
      full_.apply(worker);
    }
    // Vertices without neighbours are solved exactly.
    const std::size_t none = alone ? 0 : multigrid_.coarse[0].rows;
    for (std::size_t i = own.begin * slice_rows; i < own.end * slice_rows; ++i) {
      if (vertex[i] == nowhere) continue;
      const std::size_t parent = alone ? none : multigrid_.transfer[0].parent[i];
      put<K>(x + std::size_t{vertex[i]} * K,
             parent == none ? diagonals_.inverse(0)[i] * get<K>(b_.data() + i * K)
                            : get<K>(full_.solution() + parent * K));
    }
  }

 private:
  const Multigrid<T>& multigrid_;
  const Diagonals<T>& diagonals_;
  VCycle<T, K> cycle_;
  FullCycle<T, K> full_;
  Buffer<T> b_;
};

}  // namespace detail

// Parts of the grid without data get 0.
template <class T>
void nested_start(const Multigrid<T>& multigrid, std::size_t vertices, const T* weight,
                  const T* weighted, std::size_t channels, double smoothness, T* x, int threads) {
  Diagonals<T> diagonals(multigrid);
  diagonals.set(weight, smoothness);
  each_group(channels, [&](auto K, std::size_t first, std::size_t count) {
    detail::NestedStart<T, K> start(multigrid, diagonals);
    const bool whole = channels == K, stale = diagonals.take_stale();
    Buffer<T> b, y;
    if (!whole) {
      b = take<K>(weighted, vertices, channels, first, count);
      y = Buffer<T>(vertices * K);
    }
    run_team(team_size(threads, vertices, 4096), [&](const Worker& worker) {
      if (stale) diagonals.refresh(worker);
      start.find(worker, whole ? weighted : b.data(), whole ? x : y.data());
    });
    if (!whole) give<K>(y, vertices, channels, first, count, x);
    return true;
  });
}

}  // namespace bilateral
