// Apply the paper's preconditioners (section 4): Jacobi, and the hierarchical (pyramid) one,
//   M^-1 r = P^T ((z_weight P(1) P(r)) / P(diag A)),  z_weight = 1 at level 0, else 2^-(5 + k).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/inverse.hpp"
#include "base/pack.hpp"
#include "base/threads.hpp"
#include "grid/laplacian.hpp"
#include "grid/pyramid_transfer.hpp"

namespace bilateral {

enum class Preconditioning { jacobi, pyramid };

// All threads of a team call the member functions together. The caller computes level 0, the grid
// itself, whose vectors it has in cache: M^-1 r = inverse() r + correction().
template <class T, std::size_t K>
class Preconditioner {
 public:
  using Sums = std::array<double, K>;

  Preconditioner(const Grid& grid, Preconditioning kind)
      : grid_(grid),
        depth_(kind == Preconditioning::pyramid ? grid.levels.size() : 0),
        inverse_(grid.vertices),
        parts_(depth_) {
    if (depth_ == 0) return;
    z_ = pyramid_vector<T>(grid, K);
    scale_ = pyramid_vector<T>(grid, 1);
    for (std::size_t k = 0; k < depth_; ++k) parts_[k].resize(bands(k).size() - 1);
    // One thread computes the levels that are too small to share.
    while (shared_ < depth_ && grid.levels[shared_].parent_band.back() >= 2048) ++shared_;
  }

  // 1 / diag(A), one per vertex.
  const T* inverse() const { return inverse_.data(); }

  // The sum of the levels above the grid in M^-1 r, by parent; null without levels.
  const T* correction() const { return depth_ > 0 ? z_[0].data() : nullptr; }
  const std::uint32_t* parent() const {
    return depth_ > 0 ? grid_.levels[0].parent.data() : nullptr;
  }

  void prepare(const Worker& worker, BandQueue& queue, const Laplacian<T>& A) {
    queue.each(worker, [&](std::size_t band) {
      A.diagonal(band, inverse_.data());
      if (depth_ > 0) lift_band<1>(grid_.levels[0], band, inverse_.data(), scale_[0].data());
      for (std::size_t i = grid_.band_vertex[band]; i < grid_.band_vertex[band + 1]; ++i)
        inverse_[i] = inverse_or_zero(inverse_[i]);
    });
    worker.barrier.wait();
    for (std::size_t k = 1; k < depth_; ++k) {
      const Share share(grid_.levels[k].band, worker);
      for (std::size_t band = share.begin; band < share.end; ++band)
        lift_band<1>(grid_.levels[k], band, scale_[k - 1].data(), scale_[k].data());
      worker.barrier.wait();
    }
    for (std::size_t k = 0; k < depth_; ++k) {
      const double weight = std::pow(2.0, -static_cast<double>(5 + k + 1));
      const Share share(bands(k), worker);
      for (std::size_t i = bands(k)[share.begin]; i < bands(k)[share.end]; ++i) {
        const auto diagonal = static_cast<double>(scale_[k][i]), size = grid_.levels[k].size[i];
        const bool inverts = diagonal >= size * std::numeric_limits<T>::min();
        scale_[k][i] = static_cast<T>(inverts ? weight * size / diagonal : 0);
      }
    }
    worker.barrier.wait();
  }

  // Lifts one band of the residual to the first level.
  void lift(std::size_t band, const T* r) {
    if (depth_ > 0) lift_band<K>(grid_.levels[0], band, r, z_[0].data());
  }

  // Computes the correction from the lifted residual. Ends with a barrier.
  void apply(const Worker& worker) {
    worker.barrier.wait();
    if (depth_ == 0) return;
    for (std::size_t k = 1; k < shared_; ++k) {
      const Share share(grid_.levels[k].band, worker);
      lift_level(k, share.begin, share.end);
      worker.barrier.wait();
    }
    if (worker.rank == 0) {
      for (std::size_t k = std::max<std::size_t>(shared_, 1); k < depth_; ++k)
        lift_level(k, 0, grid_.levels[k].band.size() - 1);
      for (std::size_t k = depth_; k-- > shared_;)
        for (std::size_t band = 0; band + 1 < bands(k).size(); ++band) lower(k, band);
    }
    worker.barrier.wait();
    for (std::size_t k = shared_; k-- > 0;) {
      const Share share(bands(k), worker);
      for (std::size_t band = share.begin; band < share.end; ++band) lower(k, band);
      worker.barrier.wait();
    }
  }

  // The contribution of the levels above the grid to r^T M^-1 r.
  Sums energy() const {
    Sums sum{};
    for (const auto& level : parts_)
      for (const Sums& band : level)
        for (std::size_t k = 0; k < K; ++k) sum[k] += band[k];
    return sum;
  }

 private:
  // The bands of the vertices of level k + 1. The top, one vertex, is one band.
  const std::vector<std::uint32_t>& bands(std::size_t k) const {
    return k + 1 < depth_ ? grid_.levels[k + 1].band : top_;
  }

  void lift_level(std::size_t k, std::size_t begin, std::size_t end) {
    for (std::size_t band = begin; band < end; ++band)
      lift_band<K>(grid_.levels[k], band, z_[k - 1].data(), z_[k].data());
  }

  // Scales one band of level k + 1, sums z^T (scale z), and adds the values of level k + 2.
  void lower(std::size_t k, std::size_t band) {
    Pack<double, K> sum{};
    T* z = z_[k].data();
    const bool top = k + 1 == depth_;
    const std::uint32_t* parent = top ? nullptr : grid_.levels[k + 1].parent.data();
    const T* above = top ? nullptr : z_[k + 1].data();
    for (std::size_t i = bands(k)[band]; i < bands(k)[band + 1]; ++i) {
      const auto lifted = get<K>(z + i * K);
      const auto scaled = scale_[k][i] * lifted;
      sum += widen<K, T>(scaled * lifted);
      put<K>(z + i * K, top ? scaled : scaled + get<K>(above + parent[i] * K));
    }
    parts_[k][band] = unpack<K>(sum);
  }

  const Grid& grid_;
  std::size_t depth_, shared_ = 0;
  Buffer<T> inverse_;
  std::vector<Buffer<T>> z_, scale_;      // of level k + 1 at [k]
  std::vector<std::vector<Sums>> parts_;  // of r^T M^-1 r
  const std::vector<std::uint32_t> top_{0, 1};
};

}  // namespace bilateral
