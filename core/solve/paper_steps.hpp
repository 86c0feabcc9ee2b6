// PaperSteps: steps of conjugate gradients on the edges of the grid, with the paper's
// preconditioners.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "base/pack.hpp"
#include "base/threads.hpp"
#include "base/vector_loops.hpp"
#include "grid/edges.hpp"
#include "grid/grid.hpp"
#include "grid/laplacian.hpp"
#include "solve/preconditioner.hpp"
#include "solve/steps.hpp"

namespace bilateral {

template <class T, std::size_t K>
class PaperSteps final : public Steps<T, K> {
 public:
  using typename Steps<T, K>::Sums;
  using typename Steps<T, K>::Turn;

  PaperSteps(const Grid& grid, const T* n, Preconditioning kind, int threads)
      : grid_(grid),
        A_(grid, n, K),
        M_(grid, kind),
        d_(grid.vertices * K),
        r_(grid.vertices * K),
        q_(grid.vertices * K),
        kept_(grid.vertices * K),
        parts_(kinds * grid.bands()),
        team_(team_size(threads, grid.vertices, 4096)),
        queue_(grid.band_vertex, team_) {}

  int team() const override { return team_; }
  bool steady() const override { return false; }

  void set(const LinearSystem<T>& system) override {
    system_ = system;
    stale_ = A_.set(system.weight, system.smoothness) || stale_;
    queue_.reset();
  }

  Sums begin(const Worker& worker) override {
    if (stale_) find_conductances(worker);
    M_.prepare(worker, queue_, A_);
    each_band(worker, [&](std::size_t band, std::size_t begin, std::size_t end) {
      A_.template multiply<K>(band, system_.x, q_.data());
      const std::uint8_t* active = system_.active;
      Pack<double, K> sum{};
      for (std::size_t i = begin; i < end; ++i) {
        Pack<T, K> r{};
        if (!active || active[i]) r = get<K>(system_.b + i * K) - get<K>(q_.data() + i * K);
        put<K>(r_.data() + i * K, r);
        put<K>(d_.data() + i * K, Pack<T, K>{});
        sum += widen<K, T>(r * (M_.inverse()[i] * r));
      }
      part(energy, band) = unpack<K>(sum);
      M_.lift(band, r_.data());
    });
    return {};
  }

  Sums precondition(const Worker& worker) override {
    M_.apply(worker);
    Sums sum = total(energy);
    const Sums above = M_.energy();
    for (std::size_t k = 0; k < K; ++k) sum[k] += above[k];
    return sum;
  }

  Turn turn(const Worker& worker, const Sums& beta) override {
    direction(worker, beta);
    multiply(worker);
    return {total(curvature), total(movement)};
  }

  // Also lifts r, the first part of M^-1 r.
  void descend(const Worker& worker, const Sums& alpha) override {
    const auto step = pack<T, K>(alpha);
    each_band(worker, [&](std::size_t band, std::size_t begin, std::size_t end) {
      const T* d = d_.data();
      const T* q = q_.data();
      const T* inverse = M_.inverse();
      T* r = r_.data();
      T* x = system_.x;
      if constexpr (K == 1) {
        part(energy, band)[0] = detail::descend(step, d + begin, q + begin, inverse + begin,
                                                x + begin, r + begin, end - begin);
      } else {
        Pack<double, K> sum{};
        for (std::size_t i = begin; i < end; ++i) {
          put<K>(x + i * K, get<K>(x + i * K) + step * get<K>(d + i * K));
          const auto residual = get<K>(r + i * K) - step * get<K>(q + i * K);
          put<K>(r + i * K, residual);
          sum += widen<K, T>(residual * (inverse[i] * residual));
        }
        part(energy, band) = unpack<K>(sum);
      }
      M_.lift(band, r);
    });
  }

  void keep(const Worker& worker, const std::array<bool, K>& channels) override {
    copy_channels(worker, channels, system_.x, kept_.data(), grid_.vertices);
  }

  void restore(const Worker& worker, const std::array<bool, K>& channels) override {
    worker.barrier.wait();
    copy_channels(worker, channels, kept_.data(), system_.x, grid_.vertices);
  }

  void end(const Worker& worker) override {
    if (worker.rank == 0) stale_ = false;
  }

 private:
  enum Kind : std::size_t { curvature, movement, energy, kinds };  // the sums kept per band

  template <class F>
  void each_band(const Worker& worker, F&& f) {
    queue_.each(worker, [&](std::size_t band) {
      f(band, grid_.band_vertex[band], grid_.band_vertex[band + 1]);
    });
  }

  Sums& part(Kind kind, std::size_t band) { return parts_[kinds * band + kind]; }

  Sums total(Kind kind) {
    Sums sum{};
    for (std::size_t band = 0; band < grid_.bands(); ++band)
      for (std::size_t k = 0; k < K; ++k) sum[k] += part(kind, band)[k];
    return sum;
  }

  void find_conductances(const Worker& worker) {
    each_band(worker, [&](std::size_t band, std::size_t, std::size_t) { A_.prepare(band); });
    worker.barrier.wait();
    each_band(worker, [&](std::size_t band, std::size_t, std::size_t) { A_.sum_degrees(band); });
    worker.barrier.wait();
  }

  // q = A d. Also sums d^T q and mass d^2.
  void multiply(const Worker& worker) {
    each_band(worker, [&](std::size_t band, std::size_t begin, std::size_t end) {
#if defined(__x86_64__)
      if constexpr (std::is_same_v<T, float> && K == 1)
        if (A_.by_table()) {
          const detail::ProductSums sums = A_.multiply_and_sum(band, d_.data(), q_.data());
          part(curvature, band)[0] = sums.curvature;
          part(movement, band)[0] = sums.movement;
          return;
        }
#endif
      A_.template multiply<K>(band, d_.data(), q_.data());
      const T* d = d_.data();
      const T* q = q_.data();
      const float* mass = grid_.mass.data();
      if constexpr (K == 1) {
        part(curvature, band)[0] = detail::dot(d + begin, q + begin, end - begin);
        part(movement, band)[0] = detail::weighted_square(d + begin, mass + begin, end - begin);
      } else {
        Pack<double, K> curved{}, moved{};
        for (std::size_t i = begin; i < end; ++i) {
          const auto value = get<K>(d + i * K);
          curved += widen<K, T>(value * get<K>(q + i * K));
          moved += widen<K, T>(static_cast<T>(mass[i]) * value * value);
        }
        part(curvature, band) = unpack<K>(curved);
        part(movement, band) = unpack<K>(moved);
      }
    });
    worker.barrier.wait();
  }

  // d = M^-1 r + beta d
  void direction(const Worker& worker, const Sums& beta) {
    const auto packed_beta = pack<T, K>(beta);
    const T* inverse = M_.inverse();
    const T* z = M_.correction();
    const std::uint32_t* parent = M_.parent();
    each_band(worker, [&](std::size_t, std::size_t begin, std::size_t end) {
      T* d = d_.data();
      const T* r = r_.data();
      if constexpr (K == 1) {
        detail::turn(packed_beta, inverse + begin, r + begin, z, z ? parent + begin : nullptr,
                     d + begin, end - begin);
      } else {
        for (std::size_t i = begin; i < end; ++i) {
          auto sum = inverse[i] * get<K>(r + i * K) + packed_beta * get<K>(d + i * K);
          if (z) sum += get<K>(z + parent[i] * K);
          put<K>(d + i * K, sum);
        }
      }
      if (system_.active)
        for (std::size_t i = begin; i < end; ++i)
          if (!system_.active[i]) std::fill_n(d + i * K, K, T{0});
    });
    worker.barrier.wait();
  }

  const Grid& grid_;
  LinearSystem<T> system_;
  bool stale_ = false;  // whether the conductances are out of date
  Laplacian<T> A_;
  Preconditioner<T, K> M_;
  Buffer<T> d_, r_, q_, kept_;
  std::vector<Sums> parts_;
  int team_;
  BandQueue queue_;
};

}  // namespace bilateral
