// Preconditioned conjugate gradients (supplement, Algorithm 2), K channels at once, each with its
// own step lengths.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "edges.hpp"
#include "estimate.hpp"
#include "grid.hpp"
#include "laplacian.hpp"
#include "preconditioner.hpp"
#include "threads.hpp"
#include "vectors.hpp"

namespace bilateral {

struct PcgOptions {
  double smoothness = 0;
  int least_steps = 2;
  int most_steps = 25;
  double tolerance = -1;   // negative: always most_steps
  double of_movement = 0;  // stop, too, at an error of this part of the way from the start
  // Called by the calling thread after each step with the step's number and its error estimate;
  // true ends the solve.
  std::function<bool(int, double)> after_step;
};

struct PcgResult {
  std::vector<double> residuals;  // per step: the estimated remaining error, relative to `scale`
  double moved = 0;  // at most how far x went, RMS over the pixels, relative to `scale`
  bool converged = false;
  bool cancelled = false;
};

template <class T, std::size_t K>
class Pcg {
 public:
  using Sums = std::array<double, K>;

  Pcg(const Grid& grid, const T* n, Preconditioning kind, int threads)
      : grid_(grid),
        A_(grid, n),
        M_(grid, kind),
        d_(grid.vertices * K),
        r_(grid.vertices * K),
        q_(grid.vertices * K),
        parts_(kinds * grid.bands()),
        team_(team_size(threads, grid.vertices, 4096)),
        queue_(grid.band_vertex, team_) {}

  // On entry x is the start, on return the solution. `active` is 1 where x may move, or null for
  // everywhere. `scale` is the size of the answer, per channel, in which the error estimate is
  // given.
  PcgResult run(const T* weight, const std::uint8_t* active, const T* b, T* x, const Sums& scale,
                const PcgOptions& options) {
    active_ = active;
    const bool fresh = A_.set(weight, options.smoothness);
    PcgResult result;
    run_team(team_, [&](const Worker& worker) {
      if (fresh) find_conductances(worker);
      iterate(worker, b, x, scale, options, result);
    });
    return result;
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

  // r^T M^-1 r
  Sums preconditioned_norm() {
    Sums sum = total(energy);
    const Sums above = M_.energy();
    for (std::size_t k = 0; k < K; ++k) sum[k] += above[k];
    return sum;
  }

  void find_conductances(const Worker& worker) {
    each_band(worker, [&](std::size_t band, std::size_t, std::size_t) { A_.prepare(band); });
    worker.barrier.wait();
    each_band(worker, [&](std::size_t band, std::size_t, std::size_t) { A_.sum_degrees(band); });
    worker.barrier.wait();
  }

  void iterate(const Worker& worker, const T* b, T* x, const Sums& scale, const PcgOptions& options,
               PcgResult& result) {
    // Steps too small to change a T are noise.
    const double tolerance =
        std::max(options.tolerance, 0.05 * static_cast<double>(std::numeric_limits<T>::epsilon()));
    M_.prepare(worker, queue_, A_);
    residual(worker, b, x);
    Sums norm = preconditioned_norm();
    direction(worker, Sums{});
    std::array<bool, K> finished{};
    std::array<ErrorEstimate, K> error;
    Sums way{};
    for (int step = 1; step <= options.most_steps; ++step) {
      multiply(worker);
      const Sums bend = total(curvature), moved = total(movement);
      Sums alpha{}, beta{};
      double estimate = 0;
      bool all = true;
      for (std::size_t k = 0; k < K; ++k) {
        if (!finished[k] && bend[k] > 0) alpha[k] = norm[k] / bend[k];
        const double rms = std::sqrt(moved[k] / static_cast<double>(grid_.pixels())) * alpha[k];
        error[k].add(rms / scale[k]);
        way[k] += rms / scale[k];
        const double left = finished[k] ? 0 : error[k].value();
        finished[k] = finished[k] || (step >= options.least_steps &&
                                      left <= std::max(tolerance, options.of_movement * way[k]));
        all = all && finished[k];
        estimate = std::max(estimate, left);
      }
      update(worker, alpha, x);
      if (worker.rank == 0) {
        result.residuals.push_back(estimate);
        result.moved = *std::max_element(way.begin(), way.end());
        result.converged = all;
        result.cancelled = options.after_step && options.after_step(step, estimate);
      }
      if (all || step == options.most_steps) break;
      M_.apply(worker);
      if (result.cancelled) break;
      const Sums next = preconditioned_norm();
      for (std::size_t k = 0; k < K; ++k) beta[k] = norm[k] > 0 ? next[k] / norm[k] : 0;
      norm = next;
      direction(worker, beta);
    }
  }

  // r = b - A x, and M^-1 r.
  void residual(const Worker& worker, const T* b, const T* x) {
    each_band(worker, [&](std::size_t band, std::size_t begin, std::size_t end) {
      A_.template multiply<K>(band, x, q_.data());
      Sums sum{};
      for (std::size_t i = begin; i < end; ++i)
        for (std::size_t k = 0; k < K; ++k) {
          const T r = active_ && !active_[i] ? T{0} : b[i * K + k] - q_[i * K + k];
          r_[i * K + k] = r;
          d_[i * K + k] = T{0};
          sum[k] += static_cast<double>(r * (M_.inverse()[i] * r));
        }
      part(energy, band) = sum;
      M_.lift(band, r_.data());
    });
    M_.apply(worker);
  }

  // q = A d, with d^T q and the sum of mass d^2.
  void multiply(const Worker& worker) {
    each_band(worker, [&](std::size_t band, std::size_t begin, std::size_t end) {
      A_.template multiply<K>(band, d_.data(), q_.data());
      const T* d = d_.data();
      const T* q = q_.data();
      const float* mass = grid_.mass.data();
      Sums bend{}, moved{};
      if constexpr (K == 1) {
        bend[0] = detail::dot(d + begin, q + begin, end - begin);
        moved[0] = detail::weighted_square(d + begin, mass + begin, end - begin);
      } else {
        for (std::size_t i = begin; i < end; ++i)
          for (std::size_t k = 0; k < K; ++k) {
            const T value = d[i * K + k];
            bend[k] += static_cast<double>(value * q[i * K + k]);
            moved[k] += static_cast<double>(static_cast<T>(mass[i]) * value * value);
          }
      }
      part(curvature, band) = bend;
      part(movement, band) = moved;
    });
    worker.barrier.wait();
  }

  // x += alpha d, r -= alpha q; starts M^-1 r.
  void update(const Worker& worker, const Sums& alpha, T* x) {
    std::array<T, K> step;
    for (std::size_t k = 0; k < K; ++k) step[k] = static_cast<T>(alpha[k]);
    each_band(worker, [&](std::size_t band, std::size_t begin, std::size_t end) {
      const T* d = d_.data();
      const T* q = q_.data();
      const T* inverse = M_.inverse();
      T* r = r_.data();
      Sums sum{};
      if constexpr (K == 1) {
        sum[0] = detail::descend(step[0], d + begin, q + begin, inverse + begin, x + begin,
                                 r + begin, end - begin);
      } else {
        for (std::size_t i = begin; i < end; ++i)
          for (std::size_t k = 0; k < K; ++k) {
            x[i * K + k] += step[k] * d[i * K + k];
            const T left = r[i * K + k] - step[k] * q[i * K + k];
            r[i * K + k] = left;
            sum[k] += static_cast<double>(left * (inverse[i] * left));
          }
      }
      part(energy, band) = sum;
      M_.lift(band, r);
    });
  }

  // d = M^-1 r + beta d
  void direction(const Worker& worker, const Sums& beta) {
    std::array<T, K> keep;
    for (std::size_t k = 0; k < K; ++k) keep[k] = static_cast<T>(beta[k]);
    const T* inverse = M_.inverse();
    const T* z = M_.correction();
    const std::uint32_t* parent = M_.parent();
    each_band(worker, [&](std::size_t, std::size_t begin, std::size_t end) {
      T* d = d_.data();
      const T* r = r_.data();
      if constexpr (K == 1) {
        detail::turn(keep[0], inverse + begin, r + begin, z, z ? parent + begin : nullptr,
                     d + begin, end - begin);
      } else {
        for (std::size_t i = begin; i < end; ++i)
          for (std::size_t k = 0; k < K; ++k)
            d[i * K + k] = inverse[i] * r[i * K + k] + (z ? z[parent[i] * K + k] : T{0}) +
                           keep[k] * d[i * K + k];
      }
      if (active_)
        for (std::size_t i = begin; i < end; ++i)
          if (!active_[i]) std::fill_n(d + i * K, K, T{0});
    });
    worker.barrier.wait();
  }

  const Grid& grid_;
  const std::uint8_t* active_ = nullptr;
  Laplacian<T> A_;
  Preconditioner<T, K> M_;
  Buffer<T> d_, r_, q_;
  std::vector<Sums> parts_;
  int team_;
  BandQueue queue_;
};

}  // namespace bilateral
