// The levels above the grid of a multigrid V-cycle: Gauss-Seidel over colours down, and in reverse
// order up. All threads of a team call these functions together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "diagonals.hpp"
#include "multigrid.hpp"
#include "pack.hpp"
#include "threads.hpp"

namespace bilateral {

// sum of w_ij x_j over some entries of a row
template <std::size_t K, class T>
BILATERAL_INLINE Pack<T, K> pull(const Graph<T>& graph, std::uint32_t begin, std::uint32_t end,
                                 const T* x) {
  Pack<T, K> sum{};
  for (std::uint32_t e = begin; e < end; ++e)
    sum += graph.weight[e] * get<K>(x + graph.neighbour[e] * K);
  return sum;
}

// sum of w_ij (y - x_j) over a row
template <std::size_t K, class T>
BILATERAL_INLINE Pack<T, K> differ(const Graph<T>& graph, std::size_t row, Pack<T, K> y,
                                   const T* x) {
  Pack<T, K> sum{};
  for (std::uint32_t e = graph.first[row]; e < graph.first[row + 1]; ++e)
    sum += graph.weight[e] * (y - get<K>(x + graph.neighbour[e] * K));
  return sum;
}

template <class T, std::size_t K>
class VCycle {
 public:
  VCycle(const Multigrid<T>& multigrid, const Diagonals<T>& diagonals)
      : multigrid_(multigrid), diagonals_(diagonals) {
    for (const Graph<T>& graph : multigrid.coarse) {
      r_.emplace_back(graph.vertices * K);
      x_.emplace_back((graph.vertices + 1) * K, T{0});  // one more, for vertices without a parent
    }
    if (!multigrid.coarse.empty()) left_ = Buffer<T>(multigrid.coarse[0].vertices * K);
    // Levels too small to share are left to one thread.
    while (shared_ < multigrid.depth() && multigrid.coarse[shared_].vertices >= 4096) ++shared_;
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
    const T factor = static_cast<T>(diagonals_.smoothness(k + 1));
    const T* weight = diagonals_.coarse_weight(k);
    const Slice slice(0, graph.vertices, worker);
    for (std::size_t i = slice.begin; i < slice.end; ++i) {
      const auto mine = get<K>(x + i * K);
      put<K>(r_[k].data() + i * K,
             get<K>(b + i * K) - weight[i] * mine - factor * differ<K>(graph, i, mine, x));
    }
  }

 private:
  void descend(const Worker& worker, std::size_t k) {
    const Graph<T>& graph = multigrid_.coarse[k];
    const T factor = static_cast<T>(diagonals_.smoothness(k + 1));
    const T* inverse = diagonals_.coarse_inverse(k);
    const T* r = r_[k].data();
    T* x = x_[k].data();
    for (std::size_t c = 0; c < graph.colours(); ++c) {
      const Slice slice(graph.colour[c], graph.colour[c + 1], worker);
      for (std::size_t i = slice.begin; i < slice.end; ++i)
        put<K>(x + i * K, inverse[i] * (get<K>(r + i * K) + factor * pull<K>(graph, graph.first[i],
                                                                             graph.middle[i], x)));
      worker.barrier.wait();
    }
    if (k + 1 == depth()) return;
    const Slice slice(0, graph.vertices, worker);
    for (std::size_t i = slice.begin; i < slice.end; ++i)
      put<K>(left_.data() + i * K, factor * pull<K>(graph, graph.middle[i], graph.first[i + 1], x));
    worker.barrier.wait();
    restrict_to(worker, k + 1, left_.data(), r_[k + 1].data());
    worker.barrier.wait();
  }

  void ascend(const Worker& worker, std::size_t k) {
    const Graph<T>& graph = multigrid_.coarse[k];
    const T factor = static_cast<T>(diagonals_.smoothness(k + 1));
    const T* inverse = diagonals_.coarse_inverse(k);
    const T* r = r_[k].data();
    T* x = x_[k].data();
    if (k + 1 < depth()) {
      const std::uint32_t* parent = multigrid_.transfer[k + 1].parent.data();
      const T* above = x_[k + 1].data();
      const Slice slice(0, graph.vertices, worker);
      for (std::size_t i = slice.begin; i < slice.end; ++i)
        put<K>(x + i * K, get<K>(x + i * K) + get<K>(above + parent[i] * K));
      worker.barrier.wait();
    }
    for (std::size_t c = graph.colours(); c-- > 0;) {
      const Slice slice(graph.colour[c], graph.colour[c + 1], worker);
      for (std::size_t i = slice.begin; i < slice.end; ++i)
        put<K>(x + i * K,
               inverse[i] * (get<K>(r + i * K) +
                             factor * pull<K>(graph, graph.first[i], graph.first[i + 1], x)));
      worker.barrier.wait();
    }
  }

 public:
  // Sums over the children of level k + 1's vertices.
  void restrict_to(const Worker& worker, std::size_t k, const T* below, T* out) const {
    const Transfer& way = multigrid_.transfer[k];
    const Slice slice(0, multigrid_.coarse[k].vertices, worker);
    for (std::size_t I = slice.begin; I < slice.end; ++I) {
      Pack<T, K> sum{};
      for (std::uint32_t m = way.first[I]; m < way.first[I + 1]; ++m)
        sum += get<K>(below + way.child[m] * K);
      put<K>(out + I * K, sum);
    }
  }

 private:
  const Multigrid<T>& multigrid_;
  const Diagonals<T>& diagonals_;
  std::size_t shared_ = 0;
  std::vector<Buffer<T>> r_, x_;  // of level k + 1 at [k]
  Buffer<T> left_;
};

}  // namespace bilateral
