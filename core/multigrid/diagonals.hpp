// Diagonals: the part of a hierarchy's matrices that depends on smoothness and confidence. The
// matrix of level k is A_k = lambda_k L_k + diag(c_k); c_k sums the confidences below each row.
#pragma once

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/inverse.hpp"
#include "base/threads.hpp"
#include "multigrid/hierarchy.hpp"
#include "multigrid/model.hpp"
#include "multigrid/row_block.hpp"

namespace bilateral {

template <class T>
class Diagonals {
 public:
  explicit Diagonals(const Hierarchy<T>& hierarchy) : hierarchy_(hierarchy) {
    for (std::size_t k = 0; k <= hierarchy.depth(); ++k) {
      weight_.push_back(level_vector<T>(graph(k).rows, 1));
      inverse_.push_back(level_vector<T>(graph(k).rows, 1));
    }
  }

  // Returns lambda_k = lambda stiffness^-k. Without this factor, aggregation would make L_k too
  // stiff for the smooth errors that level k must represent.
  T smoothness(std::size_t level) const {
    return static_cast<T>(smoothness_ *
                          std::pow(hierarchy_.weights.stiffness, -static_cast<double>(level)));
  }
  // Returns c_k.
  const T* weight(std::size_t level) const { return weight_[level].data(); }
  // Returns 1 / diag(A_k), or 0 for rows without data and neighbours and for faint components.
  const T* inverse(std::size_t level) const { return inverse_[level].data(); }

  // Takes the confidences of the grid's vertices and the smoothness. Call `refresh` afterwards,
  // even if only the values behind the pointer changed.
  void set(const T* weight, double smoothness) {
    vertex_weight_ = weight;
    smoothness_ = smoothness;
    stale_ = true;
    faint_.store(false, std::memory_order_relaxed);
  }

  // True if some component of the grid has data, but so little relative to the smoothness that
  // rounding errors hide its mean: no iteration can find it. Valid after `refresh`.
  bool faint() const { return faint_.load(std::memory_order_relaxed); }

  // Returns whether `refresh` is due. The caller must then call `refresh`.
  bool take_stale() { return std::exchange(stale_, false); }

  // Computes all diagonals. All threads of a team call this together; it ends with a barrier.
  void refresh(const Worker& worker) {
    const Slices fine(0, hierarchy_.fine.rows, worker);
    const std::uint32_t* vertex = hierarchy_.fine.vertex.data();
    T* weight = weight_[0].data();
    for (std::size_t i = fine.begin * slice_rows; i < fine.end * slice_rows; ++i)
      weight[i] = vertex[i] == nowhere ? T{0} : vertex_weight_[vertex[i]];
    invert(fine, 0);
    worker.barrier.wait();
    for (std::size_t k = 1; k <= hierarchy_.depth(); ++k) {
      const Slices slices(0, graph(k).rows, worker);
      const T* below = weight_[k - 1].data();
      each_block<Block<T, 1>>(
          slices.begin, slices.end, [&](std::size_t row, std::size_t s, std::size_t) {
            Block<T, 1>::put(weight_[k].data(), row,
                             sum_members<1>(hierarchy_.transfers[k - 1].members, s, 0, below));
          });
      invert(slices, k);
      worker.barrier.wait();
    }
  }

 private:
  const Graph<T>& graph(std::size_t level) const {
    return level == 0 ? hierarchy_.fine : hierarchy_.coarse[level - 1];
  }

  void invert(const Slices& slices, std::size_t level) {
    const T lambda = smoothness(level);
    const T* degree = graph(level).degree.data();
    const T* weight = weight_[level].data();
    T* inverse = inverse_[level].data();
    const std::size_t begin = slices.begin * slice_rows, end = slices.end * slice_rows;
    for (std::size_t i = begin; i < end; ++i) {
      inverse[i] = inverse_or_zero(lambda * degree[i] + weight[i]);
    }
    if (level == 0) return;
    const T least = static_cast<T>(hierarchy_.weights.faint_epsilons) *
                    std::numeric_limits<T>::epsilon() * static_cast<T>(smoothness_);
    const T* component_degree = hierarchy_.component_degree[level - 1].data();
    for (std::size_t i = begin; i < end; ++i)
      if (weight[i] < least * component_degree[i]) {
        inverse[i] = T{0};
        if (weight[i] > T{0}) faint_.store(true, std::memory_order_relaxed);
      }
  }

  const Hierarchy<T>& hierarchy_;
  const T* vertex_weight_ = nullptr;
  double smoothness_ = 0;
  bool stale_ = false;
  std::atomic<bool> faint_ = false;
  std::vector<Buffer<T>> weight_, inverse_;
};

// The diagonals that a model needs.
template <class T, class Model>
struct DiagonalsFor;
template <class T, std::size_t K>
struct DiagonalsFor<T, Constant<K>> {
  using type = Diagonals<T>;
};
template <class T, class Model>
using DiagonalsOf = typename DiagonalsFor<T, Model>::type;

}  // namespace bilateral
