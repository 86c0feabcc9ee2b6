// MultigridSteps: steps of conjugate gradients with the multigrid V-cycle as preconditioner.
//
// The grid has two colours. The last half-sweep of every V-cycle solves colour 0 exactly for the
// given colour 1, so the residual of colour 0 stays 0. The steps therefore need neither the first
// half-sweep nor r, q and x of colour 0.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/threads.hpp"
#include "grid/edges.hpp"
#include "grid/grid.hpp"
#include "multigrid/diagonals.hpp"
#include "multigrid/hierarchy.hpp"
#include "multigrid/row_block.hpp"
#include "multigrid/vcycle.hpp"
#include "solve/steps.hpp"

namespace bilateral {

template <class T, std::size_t K>
class MultigridSteps final : public Steps<T, K> {
 public:
  using typename Steps<T, K>::Sums;
  using typename Steps<T, K>::Turn;

  MultigridSteps(const Grid& grid, const Hierarchy<T>& multigrid, Diagonals<T>& diagonals,
                 int threads)
      : grid_(grid),
        multigrid_(multigrid),
        graph_(multigrid.fine),
        diagonals_(diagonals),
        cycle_(multigrid, diagonals),
        mass_(graph_.rows),
        z_(level_vector<T>(graph_.rows, K)),
        d_(level_vector<T>(graph_.rows, K)),
        x_((graph_.rows - second()) * K),
        r_((graph_.rows - second()) * K),
        q_((graph_.rows - second()) * K),
        kept_((graph_.rows - second()) * K),
        parts_(kinds * grid.bands()),
        team_(team_size(threads, grid.vertices, 4096)),
        queue_(grid.band_vertex, team_) {
    for (std::size_t row = 0; row < graph_.rows; ++row)
      mass_[row] =
          graph_.vertex[row] == nowhere ? T{0} : static_cast<T>(grid.mass[graph_.vertex[row]]);
  }

  int team() const override { return team_; }
  bool steady() const override { return true; }

  void set(const LinearSystem<T>& system) override {
    system_ = system;
    stale_ = diagonals_.take_stale();
    queue_.reset();
  }

  // Keeps colour 0 of x in a T and its rounding error in `lack`: the rounding error would appear in
  // the residual lambda times as large.
  Sums begin(const Worker& worker) override {
    if (stale_) diagonals_.refresh(worker);
    T* z = z_.data();
    T* lack = d_.data();
    each(worker, 1, [&](std::size_t row, std::size_t, std::size_t) {
      const V x = from_grid(system_.x, row);
      B::put(x_.data(), row - second(), x);
      B::put(z, row, x);
    });
    worker.barrier.wait();
    each_band(worker, [&](std::size_t band) {
      Sum moved{};
      each_of(band, 0, [&](std::size_t row, std::size_t s, std::size_t lane) {
        const V b = from_grid(system_.b, row);
        const V close = near(row, s, lane), x = close + lacking(row, s, lane, close, b);
        V change = x - from_grid(system_.x, row);
        if (system_.active) change = where_active(row, change);
        B::put(z, row, x);
        B::put(lack, row, lacking(row, s, lane, x, b));
        moved += B::widen(B::each(mass_.data(), row) * change * change);
      });
      part(Kind::movement, band) = B::total(moved);
    });
    worker.barrier.wait();
    const Sums moved = total(Kind::movement);
    const T* inverse = diagonals_.inverse(0);
    const T* weight = diagonals_.weight(0);
    each(worker, 1, [&](std::size_t row, std::size_t s, std::size_t lane) {
      const V x = B::get(x_.data(), row - second());
      const V flow = laplacian_rows<K>(graph_, s, lane, x, z) - pull_all(s, lane, lack);
      V r = from_grid(system_.b, row) - B::each(weight, row) * x - factor() * flow;
      if (system_.active) r = where_active(row, r);
      B::put(r_.data(), row - second(), r);
      B::put(q_.data(), row - second(), V{});
      B::put(d_.data(), row, V{});
      B::put(z, row, B::each(inverse, row) * r);
    });
    return moved;
  }

  Sums precondition(const Worker& worker) override {
    const T* inverse = diagonals_.inverse(0);
    T* z = z_.data();
    worker.barrier.wait();
    if (cycle_.depth() > 0) correct(worker);
    each_band(worker, [&](std::size_t band) {
      Sum energy{};
      each_of(band, 1, [&](std::size_t row, std::size_t s, std::size_t lane) {
        const V r = B::get(r_.data(), row - second());
        const V value = B::each(inverse, row) * (r + factor() * pull_all(s, lane, z));
        B::put(z, row, value);
        energy += B::widen(r * value);
      });
      part(Kind::energy, band) = B::total(energy);
    });
    worker.barrier.wait();
    return total(Kind::energy);
  }

  Turn turn(const Worker& worker, const Sums& beta) override {
    const V keep = B::channels(beta);
    const T* inverse = diagonals_.inverse(0);
    const T* weight = diagonals_.weight(0);
    T* z = z_.data();
    T* d = d_.data();
    T* q = q_.data();
    each_band(worker, [&](std::size_t band) {
      Sum moved{};
      each_of(band, 0, [&](std::size_t row, std::size_t s, std::size_t lane) {
        const V value = B::each(inverse, row) * (factor() * pull_all(s, lane, z));
        const V turned = value + keep * B::get(d, row);
        B::put(z, row, value);
        B::put(d, row, turned);
        moved += B::widen(B::each(mass_.data(), row) * turned * turned);
      });
      part(Kind::movement, band) = B::total(moved);
    });
    worker.barrier.wait();
    each_band(worker, [&](std::size_t band) {
      Sum bend{}, moved{};
      each_of(band, 1, [&](std::size_t row, std::size_t s, std::size_t lane) {
        const V value = B::get(z, row);
        const V flow = laplacian_rows<K>(graph_, s, lane, value, z);
        const V product =
            B::each(weight, row) * value + factor() * flow + keep * B::get(q, row - second());
        const V turned = value + keep * B::get(d, row);
        B::put(q, row - second(), product);
        B::put(d, row, turned);
        bend += B::widen(turned * product);
        moved += B::widen(B::each(mass_.data(), row) * turned * turned);
      });
      part(Kind::curvature, band) = B::total(bend);
      const Sums more = B::total(moved);
      for (std::size_t k = 0; k < K; ++k) part(Kind::movement, band)[k] += more[k];
    });
    worker.barrier.wait();
    return {total(Kind::curvature), total(Kind::movement)};
  }

  void descend(const Worker& worker, const Sums& alpha) override {
    const V step = B::channels(alpha);
    const T* inverse = diagonals_.inverse(0);
    each(worker, 1, [&](std::size_t row, std::size_t, std::size_t) {
      const std::size_t at = row - second();
      const V r = B::get(r_.data(), at) - step * B::get(q_.data(), at);
      B::put(x_.data(), at, B::get(x_.data(), at) + step * B::get(d_.data(), row));
      B::put(r_.data(), at, r);
      B::put(z_.data(), row, B::each(inverse, row) * r);
    });
  }

  void keep(const Worker& worker, const std::array<bool, K>& channels) override {
    copy_channels(worker, channels, x_.data(), kept_.data(), graph_.rows - second());
  }

  void restore(const Worker& worker, const std::array<bool, K>& channels) override {
    worker.barrier.wait();
    copy_channels(worker, channels, kept_.data(), x_.data(), graph_.rows - second());
  }

  void end(const Worker& worker) override {
    worker.barrier.wait();
    each(worker, 1, [&](std::size_t row, std::size_t, std::size_t) {
      const V x = B::get(x_.data(), row - second());
      B::put(z_.data(), row, x);
      to_grid(row, x);
    });
    worker.barrier.wait();
    each(worker, 0, [&](std::size_t row, std::size_t s, std::size_t lane) {
      const V close = near(row, s, lane);
      to_grid(row, close + lacking(row, s, lane, close, from_grid(system_.b, row)));
    });
  }

 private:
  using B = Block<T, K>;
  using V = typename B::V;
  using Sum = typename B::Sum;
  enum class Kind : std::size_t { curvature, movement, energy };  // the sums of each band
  static constexpr std::size_t kinds = 3;

  std::size_t second() const { return graph_.colour[1]; }  // first row of colour 1
  T factor() const { return static_cast<T>(system_.smoothness); }

  BILATERAL_INLINE V pull_all(std::size_t s, std::size_t lane, const T* x) const {
    return neighbour_sum<K>(graph_, graph_.entry.first[s], graph_.entry.first[s + 1], lane, x);
  }

  // z of the first neighbour, or 0 without neighbours.
  BILATERAL_INLINE V near(std::size_t row, std::size_t s, std::size_t lane) const {
    const std::size_t column = graph_.entry.first[s];
    if (column == graph_.entry.first[s + 1]) return V{};
    if constexpr (K > 1)
      if (graph_.entry.to[column * slice_rows + lane] == row) return V{};
    return B::gather(z_.data(), graph_.entry.to.data() + column * slice_rows + lane);
  }

  // The difference of a value from the solution of a row for the z of its neighbours.
  BILATERAL_INLINE V lacking(std::size_t row, std::size_t s, std::size_t lane, V x, V b) const {
    const V left = b - B::each(diagonals_.weight(0), row) * x -
                   factor() * laplacian_rows<K>(graph_, s, lane, x, z_.data());
    return B::each(diagonals_.inverse(0), row) * left;
  }

  // z of colour 0 = the correction of the coarse levels for its residual, after z of colour 1 was
  // set to r / diag(A).
  void correct(const Worker& worker) {
    T* z = z_.data();
    each(worker, 0, [&](std::size_t row, std::size_t s, std::size_t lane) {
      B::put(z, row, factor() * pull_all(s, lane, z));
    });
    worker.barrier.wait();
    const Slices slices(0, multigrid_.coarse[0].rows, worker);
    T* residual = cycle_.residual();
    each_block<T, K>(
        slices.begin, slices.end, [&](std::size_t row, std::size_t s, std::size_t lane) {
          B::put(residual, row, sum_members<K>(multigrid_.colour0_members, s, lane, z));
        });
    worker.barrier.wait();
    cycle_.apply(worker);
    const std::uint32_t* parent = multigrid_.transfers[0].parent.data();
    const T* above = cycle_.correction();
    each(worker, 0, [&](std::size_t row, std::size_t, std::size_t) {
      B::put(z, row, B::gather(above, parent + row));
    });
    worker.barrier.wait();
  }

  V from_grid(const T* from, std::size_t row) const {
    std::array<T, B::lanes> values{};
    for (std::size_t i = 0; i < B::rows; ++i)
      if (const std::size_t v = graph_.vertex[row + i]; v != nowhere)
        std::copy_n(from + v * K, K, values.data() + i * K);
    return get<B::lanes>(values.data());
  }

  V where_active(std::size_t row, V value) const {
    std::array<T, B::lanes> values;
    put<B::lanes>(values.data(), value);
    for (std::size_t i = 0; i < B::rows; ++i)
      if (const std::size_t v = graph_.vertex[row + i]; v != nowhere && !system_.active[v])
        std::fill_n(values.data() + i * K, K, T{0});
    return get<B::lanes>(values.data());
  }

  void to_grid(std::size_t row, V value) const {
    std::array<T, B::lanes> values;
    put<B::lanes>(values.data(), value);
    for (std::size_t i = 0; i < B::rows; ++i)
      if (const std::size_t v = graph_.vertex[row + i];
          v != nowhere && (!system_.active || system_.active[v]))
        std::copy_n(values.data() + i * K, K, system_.x + v * K);
  }

  template <class F>
  void each_band(const Worker& worker, F&& f) {
    queue_.each(worker, f);
  }

  template <class F>
  BILATERAL_INLINE void each_of(std::size_t band, std::size_t colour, F&& f) const {
    const auto& rows = graph_.band_row[colour];
    each_block<T, K>(rows[band] / slice_rows, rows[band + 1] / slice_rows, f);
  }

  template <class F>
  void each(const Worker& worker, std::size_t colour, F&& f) {
    queue_.each(worker, [&](std::size_t band) { each_of(band, colour, f); });
  }

  Sums& part(Kind kind, std::size_t band) {
    return parts_[kinds * band + static_cast<std::size_t>(kind)];
  }

  Sums total(Kind kind) {
    Sums sum{};
    for (std::size_t band = 0; band < grid_.bands(); ++band)
      for (std::size_t k = 0; k < K; ++k) sum[k] += part(kind, band)[k];
    return sum;
  }

  const Grid& grid_;
  const Hierarchy<T>& multigrid_;
  const GridGraph<T>& graph_;
  Diagonals<T>& diagonals_;
  VCycle<T, K> cycle_;
  LinearSystem<T> system_;
  bool stale_ = false;
  Buffer<T> mass_;
  Buffer<T> z_, d_;             // all rows
  Buffer<T> x_, r_, q_, kept_;  // rows of colour 1
  std::vector<Sums> parts_;
  int team_;
  BandQueue queue_;
};

}  // namespace bilateral
