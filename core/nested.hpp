// The nested start: solve the coarsest level, then carry the solution down, improving it on each
// level by one V-cycle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "channels.hpp"
#include "diagonals.hpp"
#include "multigrid.hpp"
#include "pack.hpp"
#include "vcycle.hpp"

namespace bilateral {

template <class T, std::size_t K>
class NestedStart {
 public:
  NestedStart(const Multigrid<T>& multigrid, const Diagonals<T>& diagonals, VCycle<T, K>& cycle)
      : multigrid_(multigrid), diagonals_(diagonals), cycle_(cycle) {
    for (const Graph<T>& graph : multigrid.coarse) {
      b_.emplace_back(graph.vertices * K);
      y_.emplace_back((graph.vertices + 1) * K, T{0});
    }
  }

  // All threads of a team call it together. Ends with a barrier. Parts of the grid without data
  // get 0.
  void find(const Worker& worker, const T* b, T* x) {
    const std::size_t depth = cycle_.depth(), shared = cycle_.shared();
    for (std::size_t k = 0; k < shared; ++k) restrict_to(worker, k, b);
    if (worker.rank == 0) {
      Barrier none;
      const Worker alone{0, 1, none};
      for (std::size_t k = shared; k < depth; ++k) restrict_to(alone, k, b);
      for (std::size_t k = depth; k-- > shared;) improve(alone, k);
    }
    worker.barrier.wait();
    for (std::size_t k = shared; k-- > 0;) improve(worker, k);
    const Slice slice(0, multigrid_.fine.vertices, worker);
    const T* inverse = diagonals_.inverse();
    const std::uint32_t* parent = depth > 0 ? multigrid_.transfer[0].parent.data() : nullptr;
    const std::size_t top = depth > 0 ? multigrid_.coarse[0].vertices : 0;
    for (std::size_t v = slice.begin; v < slice.end; ++v) {
      if (parent && parent[v] < top)
        put<K>(x + v * K, get<K>(y_[0].data() + parent[v] * K));
      else
        put<K>(x + v * K, inverse[v] * get<K>(b + v * K));
    }
    worker.barrier.wait();
  }

 private:
  void restrict_to(const Worker& worker, std::size_t k, const T* b) {
    cycle_.restrict_to(worker, k, k == 0 ? b : b_[k - 1].data(), b_[k].data());
    worker.barrier.wait();
  }

  void improve(const Worker& worker, std::size_t k) {
    const std::size_t vertices = multigrid_.coarse[k].vertices;
    const Slice slice(0, vertices, worker);
    T* y = y_[k].data();
    if (k + 1 == cycle_.depth()) {
      const T* inverse = diagonals_.coarse_inverse(k);
      for (std::size_t i = slice.begin; i < slice.end; ++i)
        put<K>(y + i * K, inverse[i] * get<K>(b_[k].data() + i * K));
      worker.barrier.wait();
      return;
    }
    const std::uint32_t* parent = multigrid_.transfer[k + 1].parent.data();
    for (std::size_t i = slice.begin; i < slice.end; ++i)
      put<K>(y + i * K, get<K>(y_[k + 1].data() + parent[i] * K));
    worker.barrier.wait();
    cycle_.subtract(worker, k, b_[k].data(), y);
    worker.barrier.wait();
    cycle_.apply(worker, k);
    const T* x = cycle_.correction(k);
    for (std::size_t i = slice.begin; i < slice.end; ++i)
      put<K>(y + i * K, get<K>(y + i * K) + get<K>(x + i * K));
    worker.barrier.wait();
  }

  const Multigrid<T>& multigrid_;
  const Diagonals<T>& diagonals_;
  VCycle<T, K>& cycle_;
  std::vector<Buffer<T>> b_, y_;  // of level k + 1 at [k]
};

// Parts of the grid without data get 0.
template <class T>
void nested_start(const Multigrid<T>& multigrid, const T* weight, const T* weighted,
                  std::size_t channels, double smoothness, T* x, int threads) {
  const std::size_t vertices = multigrid.fine.vertices;
  Diagonals<T> diagonals(multigrid);
  diagonals.set(weight, smoothness);
  each_group(channels, [&](auto K, std::size_t first, std::size_t count) {
    VCycle<T, K> cycle(multigrid, diagonals);
    NestedStart<T, K> start(multigrid, diagonals, cycle);
    const Buffer<T> b = take<K>(weighted, vertices, channels, first, count);
    Buffer<T> y(vertices * K);
    const bool stale = diagonals.take_stale();
    run_team(team_size(threads, vertices, 4096), [&](const Worker& worker) {
      if (stale) diagonals.refresh(worker);
      start.find(worker, b.data(), y.data());
    });
    give<K>(y, vertices, channels, first, count, x);
    return true;
  });
}

}  // namespace bilateral
