// What smoothness and confidence add to a multigrid hierarchy: the diagonals of
// A_k = lambda_k L_k + diag(c_k), with c_k the sum of the confidences below each row.
#pragma once

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/threads.hpp"
#include "multigrid/hierarchy.hpp"
#include "multigrid/row_block.hpp"

namespace bilateral {

// The slices of [first, last) rows that one thread of a team works on.
struct Slices {
  std::size_t begin, end;
  Slices(std::size_t first, std::size_t last, const Worker& worker)
      : begin(bound(first, last, worker.rank, worker.size)),
        end(bound(first, last, worker.rank + 1, worker.size)) {}

 private:
  static std::size_t bound(std::size_t first, std::size_t last, int part, int size) {
    return first / slice_rows + (last - first) / slice_rows * static_cast<std::size_t>(part) /
                                    static_cast<std::size_t>(size);
  }
};

// Vectors have one more slice than their level has rows, and 0 there.
template <class T>
Buffer<T> level_vector(std::size_t rows, std::size_t channels) {
  return Buffer<T>((rows + slice_rows) * channels, T{0});
}

template <class T>
class Diagonals {
 public:
  explicit Diagonals(const Multigrid<T>& multigrid) : multigrid_(multigrid) {
    for (std::size_t k = 0; k <= multigrid.depth(); ++k) {
      weight_.push_back(level_vector<T>(graph(k).rows, 1));
      inverse_.push_back(level_vector<T>(graph(k).rows, 1));
    }
  }

  // lambda 1.3^-k: without it, aggregates would make L_k too stiff for the errors it stands for.
  T smoothness(std::size_t level) const {
    return static_cast<T>(smoothness_ * std::pow(1.3, -static_cast<double>(level)));
  }
  const T* weight(std::size_t level) const { return weight_[level].data(); }
  const T* inverse(std::size_t level) const { return inverse_[level].data(); }  // 0 where it must

  // New confidences of the grid's vertices, also in the same place: `refresh` is due.
  void set(const T* weight, double smoothness) {
    given_ = weight;
    smoothness_ = smoothness;
    stale_ = true;
    faint_.store(false, std::memory_order_relaxed);
  }

  // Whether some component of the grid has data, but so little beside the smoothness that its mean
  // drowns in rounding: no step changes that. Known after `refresh`.
  bool faint() const { return faint_.load(std::memory_order_relaxed); }

  // Whether `refresh` is due; whoever asks sees to it.
  bool take_stale() { return std::exchange(stale_, false); }

  // All threads of a team call it together. Ends with a barrier.
  void refresh(const Worker& worker) {
    const Slices own(0, multigrid_.fine.rows, worker);
    const std::uint32_t* vertex = multigrid_.fine.vertex.data();
    T* weight = weight_[0].data();
    for (std::size_t i = own.begin * slice_rows; i < own.end * slice_rows; ++i)
      weight[i] = vertex[i] == nowhere ? T{0} : given_[vertex[i]];
    invert(own, 0);
    worker.barrier.wait();
    for (std::size_t k = 1; k <= multigrid_.depth(); ++k) {
      const Slices slices(0, graph(k).rows, worker);
      const T* below = weight_[k - 1].data();
      each_block<T, 1>(slices.begin, slices.end, [&](std::size_t row, std::size_t s, std::size_t) {
        Block<T, 1>::put(weight_[k].data(), row,
                         collect<1>(multigrid_.transfer[k - 1].children, s, 0, below));
      });
      invert(slices, k);
      worker.barrier.wait();
    }
  }

 private:
  const Graph<T>& graph(std::size_t level) const {
    return level == 0 ? multigrid_.fine : multigrid_.coarse[level - 1];
  }

  void invert(const Slices& slices, std::size_t level) {
    const T factor = smoothness(level);
    const T* degree = graph(level).degree.data();
    const T* weight = weight_[level].data();
    T* inverse = inverse_[level].data();
    const std::size_t begin = slices.begin * slice_rows, end = slices.end * slice_rows;
    for (std::size_t i = begin; i < end; ++i) {
      const T diagonal = factor * degree[i] + weight[i];
      inverse[i] = diagonal > T{0} ? T{1} / diagonal : T{0};
    }
    if (level == 0) return;
    const T least = 100 * std::numeric_limits<T>::epsilon() * static_cast<T>(smoothness_);
    const T* within = multigrid_.within[level - 1].data();
    for (std::size_t i = begin; i < end; ++i)
      if (weight[i] < least * within[i]) {
        inverse[i] = T{0};
        if (weight[i] > T{0}) faint_.store(true, std::memory_order_relaxed);
      }
  }

  const Multigrid<T>& multigrid_;
  const T* given_ = nullptr;
  double smoothness_ = 0;
  bool stale_ = false;
  std::atomic<bool> faint_ = false;
  std::vector<Buffer<T>> weight_, inverse_;
};

}  // namespace bilateral
