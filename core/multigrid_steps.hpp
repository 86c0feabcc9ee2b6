// Steps with the multigrid V-cycle. The grid has two colours, and colour 0 is solved exactly for
// colour 1 at all times: at the start, and by the last half-sweep of every V-cycle. So its
// residual stays 0, and both the first half-sweep and half of A z need not be computed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "diagonals.hpp"
#include "edges.hpp"
#include "grid.hpp"
#include "multigrid.hpp"
#include "pack.hpp"
#include "steps.hpp"
#include "threads.hpp"
#include "vcycle.hpp"

namespace bilateral {

template <class T, std::size_t K>
class MultigridSteps final : public Steps<T, K> {
 public:
  using typename Steps<T, K>::Sums;
  using typename Steps<T, K>::Turn;

  MultigridSteps(const Grid& grid, const Multigrid<T>& multigrid, Diagonals<T>& diagonals,
                 int threads)
      : grid_(grid),
        graph_(multigrid.fine),
        multigrid_(multigrid),
        diagonals_(diagonals),
        cycle_(multigrid, diagonals),
        z_(grid.vertices * K),
        d_(grid.vertices * K),
        r_(grid.vertices * K),
        q_(grid.vertices * K),
        parts_(kinds * grid.bands()),
        team_(team_size(threads, grid.vertices, 4096)),
        queue_(grid.band_vertex, team_) {}

  int team() const override { return team_; }

  void set(const Task<T>& task) override {
    task_ = task;
    stale_ = diagonals_.take_stale();
  }

  void begin(const Worker& worker) override {
    if (stale_) diagonals_.refresh(worker);
    const T* inverse = diagonals_.inverse();
    const T* b = task_.b;
    T* x = task_.x;
    each_row(worker, 0, [&](std::size_t row, std::size_t v) {
      if (!task_.active || task_.active[v])
        put<K>(x + v * K, inverse[v] * (get<K>(b + v * K) + factor() * all<K>(row, x)));
    });
    worker.barrier.wait();
    each_band(worker, [&](std::size_t band, std::size_t begin, std::size_t end) {
      for (T* zero : {r_.data(), d_.data(), q_.data()})
        std::fill(zero + begin * K, zero + end * K, T{0});
      each_row_of(band, 1, [&](std::size_t row, std::size_t v) {
        if (task_.active && !task_.active[v]) return;
        const auto mine = get<K>(x + v * K);
        put<K>(r_.data() + v * K, get<K>(b + v * K) - task_.weight[v] * mine -
                                      factor() * differ<K>(graph_, row, mine, x));
      });
      guess(begin, end);
    });
  }

  Sums precondition(const Worker& worker) override {
    const T* inverse = diagonals_.inverse();
    const T* r = r_.data();
    T* z = z_.data();
    worker.barrier.wait();
    if (cycle_.depth() > 0) {
      each_row(worker, 0, [&](std::size_t row, std::size_t v) {
        put<K>(z + v * K, factor() * all<K>(row, z));
      });
      worker.barrier.wait();
      restrict_residual(worker);
      worker.barrier.wait();
      cycle_.apply(worker);
      const std::uint32_t* parent = multigrid_.transfer[0].parent.data();
      const T* above = cycle_.correction();
      each_band(worker, [&](std::size_t, std::size_t begin, std::size_t end) {
        for (std::size_t v = begin; v < end; ++v) put<K>(z + v * K, get<K>(above + parent[v] * K));
      });
      worker.barrier.wait();
    }
    each_band(worker, [&](std::size_t band, std::size_t, std::size_t) {
      Pack<double, K> sum{};
      each_row_of(band, 1, [&](std::size_t row, std::size_t v) {
        const auto left = get<K>(r + v * K);
        const auto value = inverse[v] * (left + factor() * all<K>(row, z));
        put<K>(z + v * K, value);
        sum += widen<K, T>(left * value);
      });
      part(energy, band) = unpack<K>(sum);
    });
    worker.barrier.wait();
    return total(energy);
  }

  Turn turn(const Worker& worker, const Sums& beta) override {
    const auto keep = pack<T, K>(beta);
    const T* inverse = diagonals_.inverse();
    const float* mass = grid_.mass.data();
    T* z = z_.data();
    T* d = d_.data();
    T* q = q_.data();
    each_band(worker, [&](std::size_t band, std::size_t, std::size_t) {
      Pack<double, K> moved{};
      each_row_of(band, 0, [&](std::size_t row, std::size_t v) {
        const auto value = inverse[v] * (factor() * all<K>(row, z));
        put<K>(z + v * K, value);
        const auto turned = value + keep * get<K>(d + v * K);
        put<K>(d + v * K, turned);
        moved += widen<K, T>(static_cast<T>(mass[v]) * turned * turned);
      });
      part(movement, band) = unpack<K>(moved);
    });
    worker.barrier.wait();
    each_band(worker, [&](std::size_t band, std::size_t, std::size_t) {
      auto moved = get<K>(part(movement, band).data());
      Pack<double, K> bend{};
      each_row_of(band, 1, [&](std::size_t row, std::size_t v) {
        const auto value = get<K>(z + v * K);
        const auto turned = value + keep * get<K>(d + v * K);
        const auto product = task_.weight[v] * value + factor() * differ<K>(graph_, row, value, z) +
                             keep * get<K>(q + v * K);
        put<K>(d + v * K, turned);
        put<K>(q + v * K, product);
        bend += widen<K, T>(turned * product);
        moved += widen<K, T>(static_cast<T>(mass[v]) * turned * turned);
      });
      part(curvature, band) = unpack<K>(bend);
      part(movement, band) = unpack<K>(moved);
    });
    worker.barrier.wait();
    return {total(curvature), total(movement)};
  }

  void descend(const Worker& worker, const Sums& alpha) override {
    const auto step = pack<T, K>(alpha);
    const T* d = d_.data();
    const T* q = q_.data();
    T* r = r_.data();
    T* x = task_.x;
    each_band(worker, [&](std::size_t, std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        put<K>(x + i * K, get<K>(x + i * K) + step * get<K>(d + i * K));
        put<K>(r + i * K, get<K>(r + i * K) - step * get<K>(q + i * K));
      }
      guess(begin, end);
    });
  }

 private:
  enum Kind : std::size_t { curvature, movement, energy, kinds };  // the sums kept per band

  T factor() const { return static_cast<T>(task_.smoothness); }

  template <std::size_t N>
  BILATERAL_INLINE Pack<T, N> all(std::size_t row, const T* x) const {
    return pull<N>(graph_, graph_.first[row], graph_.first[row + 1], x);
  }

  // The V-cycle's first half-sweep: z = r / diag(A).
  void guess(std::size_t begin, std::size_t end) {
    const T* inverse = diagonals_.inverse();
    for (std::size_t i = begin; i < end; ++i)
      put<K>(z_.data() + i * K, inverse[i] * get<K>(r_.data() + i * K));
  }

  // Of colour 0; the other's is 0.
  void restrict_residual(const Worker& worker) {
    const Transfer& way = multigrid_.transfer[0];
    T* out = cycle_.residual();
    const Slice slice(0, multigrid_.coarse[0].vertices, worker);
    for (std::size_t I = slice.begin; I < slice.end; ++I) {
      Pack<T, K> sum{};
      for (std::uint32_t m = way.first[I]; m < way.middle[I]; ++m)
        sum += get<K>(z_.data() + way.child[m] * K);
      put<K>(out + I * K, sum);
    }
  }

  template <class F>
  void each_band(const Worker& worker, F&& f) {
    queue_.each(worker, [&](std::size_t band) {
      f(band, grid_.band_vertex[band], grid_.band_vertex[band + 1]);
    });
  }

  template <class F>
  BILATERAL_INLINE void each_row_of(std::size_t band, std::size_t colour, F&& f) const {
    const auto& rows = graph_.band_row[colour];
    for (std::size_t row = rows[band]; row < rows[band + 1]; ++row) f(row, graph_.vertex[row]);
  }

  template <class F>
  void each_row(const Worker& worker, std::size_t colour, F&& f) {
    queue_.each(worker, [&](std::size_t band) { each_row_of(band, colour, f); });
  }

  Sums& part(Kind kind, std::size_t band) { return parts_[kinds * band + kind]; }

  Sums total(Kind kind) {
    Sums sum{};
    for (std::size_t band = 0; band < grid_.bands(); ++band)
      for (std::size_t k = 0; k < K; ++k) sum[k] += part(kind, band)[k];
    return sum;
  }

  const Grid& grid_;
  const GridGraph<T>& graph_;
  const Multigrid<T>& multigrid_;
  Diagonals<T>& diagonals_;
  VCycle<T, K> cycle_;
  Task<T> task_;
  bool stale_ = false;
  Buffer<T> z_, d_, r_, q_;
  std::vector<Sums> parts_;
  int team_;
  BandQueue queue_;
};

}  // namespace bilateral
