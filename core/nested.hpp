// The nested start: solve the coarsest level, then carry the solution down, improving it on each
// level by one V-cycle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "block.hpp"
#include "channels.hpp"
#include "diagonals.hpp"
#include "multigrid.hpp"
#include "vcycle.hpp"

namespace bilateral {

template <class T, std::size_t K>
class NestedStart {
 public:
  NestedStart(const Multigrid<T>& multigrid, const Diagonals<T>& diagonals)
      : multigrid_(multigrid), diagonals_(diagonals), cycle_(multigrid, diagonals) {
    b_.push_back(level_vector<T>(multigrid.fine.rows, K));
    y_.push_back(level_vector<T>(0, K));
    for (const Graph<T>& graph : multigrid.coarse) {
      b_.push_back(level_vector<T>(graph.rows, K));
      y_.push_back(level_vector<T>(graph.rows, K));
    }
  }

  // All threads of a team call it together.
  void find(const Worker& worker, const T* b, T* x) {
    const std::size_t depth = multigrid_.depth(), shared = cycle_.shared();
    const std::uint32_t* vertex = multigrid_.fine.vertex.data();
    const Slices own(0, multigrid_.fine.rows, worker);
    for (std::size_t i = own.begin * slice_rows; i < own.end * slice_rows; ++i)
      if (vertex[i] != nowhere)
        put<K>(b_[0].data() + i * K, get<K>(b + std::size_t{vertex[i]} * K));
      else
        put<K>(b_[0].data() + i * K, Pack<T, K>{});
    worker.barrier.wait();
    for (std::size_t k = 1; k <= shared; ++k) restrict_to(worker, k);
    if (worker.rank == 0) {
      Barrier none;
      const Worker alone{0, 1, none};
      for (std::size_t k = shared + 1; k <= depth; ++k) restrict_to(alone, k);
      for (std::size_t k = depth; k > shared; --k) improve(alone, k);
    }
    worker.barrier.wait();
    for (std::size_t k = shared; k > 0; --k) improve(worker, k);
    finish(own, x);
  }

 private:
  using B = Block<T, K>;

  void restrict_to(const Worker& worker, std::size_t k) {
    cycle_.restrict_to(worker, k - 1, b_[k - 1].data(), b_[k].data());
    worker.barrier.wait();
  }

  void improve(const Worker& worker, std::size_t k) {
    const Slices slices(0, multigrid_.coarse[k - 1].rows, worker);
    T* y = y_[k].data();
    const auto each = [&](auto&& f) { each_block<T, K>(slices.begin, slices.end, f); };
    if (k == multigrid_.depth()) {
      const T* inverse = diagonals_.inverse(k);
      each([&](std::size_t row, std::size_t, std::size_t) {
        B::put(y, row, B::each(inverse, row) * B::get(b_[k].data(), row));
      });
      worker.barrier.wait();
      return;
    }
    const std::uint32_t* parent = multigrid_.transfer[k].parent.data();
    const T* above = y_[k + 1].data();
    each([&](std::size_t row, std::size_t, std::size_t) {
      B::put(y, row, B::gather(above, parent + row));
    });
    worker.barrier.wait();
    cycle_.subtract(worker, k - 1, b_[k].data(), y);
    worker.barrier.wait();
    cycle_.apply(worker, k - 1);
    const T* x = cycle_.correction(k - 1);
    each([&](std::size_t row, std::size_t, std::size_t) {
      B::put(y, row, B::get(y, row) + B::get(x, row));
    });
    worker.barrier.wait();
  }

  // To the grid. Vertices without neighbours are solved exactly.
  void finish(const Slices& own, T* x) const {
    const std::uint32_t* vertex = multigrid_.fine.vertex.data();
    const bool alone = multigrid_.depth() == 0;
    const std::size_t none = alone ? 0 : multigrid_.coarse[0].rows;
    const T* inverse = diagonals_.inverse(0);
    for (std::size_t i = own.begin * slice_rows; i < own.end * slice_rows; ++i) {
      if (vertex[i] == nowhere) continue;
      const std::size_t parent = alone ? 0 : multigrid_.transfer[0].parent[i];
      const auto value = parent == none ? inverse[i] * get<K>(b_[0].data() + i * K)
                                        : get<K>(y_[1].data() + parent * K);
      put<K>(x + std::size_t{vertex[i]} * K, value);
    }
  }

  const Multigrid<T>& multigrid_;
  const Diagonals<T>& diagonals_;
  VCycle<T, K> cycle_;
  std::vector<Buffer<T>> b_, y_;
};

// Parts of the grid without data get 0.
template <class T>
void nested_start(const Multigrid<T>& multigrid, std::size_t vertices, const T* weight,
                  const T* weighted, std::size_t channels, double smoothness, T* x, int threads) {
  Diagonals<T> diagonals(multigrid);
  diagonals.set(weight, smoothness);
  each_group(channels, [&](auto K, std::size_t first, std::size_t count) {
    NestedStart<T, K> start(multigrid, diagonals);
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
