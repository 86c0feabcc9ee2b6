// What smoothness and confidence add to a multigrid hierarchy: the diagonals of
// A_k = lambda_k L_k + diag(c_k), with c_k the sum of the confidences below each vertex.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "edges.hpp"
#include "multigrid.hpp"
#include "threads.hpp"

namespace bilateral {

// The part of [0, count) that one thread of a team works on.
struct Slice {
  std::size_t begin, end;
  Slice(std::size_t first, std::size_t last, const Worker& worker)
      : begin(first + bound(last - first, worker.rank, worker.size)),
        end(first + bound(last - first, worker.rank + 1, worker.size)) {}

 private:
  static std::size_t bound(std::size_t count, int part, int size) {
    return count * static_cast<std::size_t>(part) / static_cast<std::size_t>(size);
  }
};

template <class T>
class Diagonals {
 public:
  explicit Diagonals(const Multigrid<T>& multigrid)
      : multigrid_(multigrid), inverse_(multigrid.fine.vertices) {
    for (const Graph<T>& graph : multigrid.coarse) {
      coarse_weight_.emplace_back(graph.vertices);
      coarse_inverse_.emplace_back(graph.vertices);
    }
  }

  // lambda 1.3^-k: without it, aggregates would make L_k too stiff for the errors it stands for.
  double smoothness(std::size_t level) const {
    return smoothness_ * std::pow(1.3, -static_cast<double>(level));
  }
  const T* weight() const { return weight_; }
  const T* inverse() const { return inverse_.data(); }  // 0 where the diagonal is
  const T* coarse_weight(std::size_t k) const { return coarse_weight_[k].data(); }
  const T* coarse_inverse(std::size_t k) const { return coarse_inverse_[k].data(); }

  // New numbers, also in the same place: `refresh` is due.
  void set(const T* weight, double smoothness) {
    weight_ = weight;
    smoothness_ = smoothness;
    stale_ = true;
  }

  // Whether `refresh` is due; whoever asks sees to it.
  bool take_stale() { return std::exchange(stale_, false); }

  // All threads of a team call it together. Ends with a barrier.
  void refresh(const Worker& worker) {
    invert(worker, multigrid_.fine, weight_, smoothness_, inverse_.data());
    const T* below = weight_;
    for (std::size_t k = 0; k < multigrid_.depth(); ++k) {
      const Transfer& way = multigrid_.transfer[k];
      const Graph<T>& graph = multigrid_.coarse[k];
      const Slice slice(0, graph.vertices, worker);
      T* weight = coarse_weight_[k].data();
      for (std::size_t I = slice.begin; I < slice.end; ++I) {
        T sum{0};
        for (std::uint32_t m = way.first[I]; m < way.first[I + 1]; ++m) sum += below[way.child[m]];
        weight[I] = sum;
      }
      invert(worker, graph, weight, smoothness(k + 1), coarse_inverse_[k].data());
      below = weight;
      worker.barrier.wait();
    }
    worker.barrier.wait();
  }

 private:
  void invert(const Worker& worker, const Graph<T>& graph, const T* weight, double smoothness,
              T* inverse) {
    const Slice slice(0, graph.vertices, worker);
    const T factor = static_cast<T>(smoothness);
    const T* degree = graph.degree.data();
    for (std::size_t i = slice.begin; i < slice.end; ++i) {
      const T diagonal = factor * degree[i] + weight[i];
      inverse[i] = diagonal > T{0} ? T{1} / diagonal : T{0};
    }
  }

  const Multigrid<T>& multigrid_;
  const T* weight_ = nullptr;
  double smoothness_ = 0;
  bool stale_ = false;
  Buffer<T> inverse_;
  std::vector<Buffer<T>> coarse_weight_, coarse_inverse_;  // of level k + 1 at [k]
};

}  // namespace bilateral
