// MultigridSteps: steps of conjugate gradients with the multigrid V-cycle as preconditioner. On a
// hierarchy of the grid alone, a V-cycle is a symmetric Gauss-Seidel sweep.
//
// The grid has two colours. The last half-sweep of every V-cycle solves colour 0 exactly for the
// given colour 1, so the residual of colour 0 stays 0. The steps therefore need neither the first
// half-sweep nor r, q and x of colour 0.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/threads.hpp"
#include "grid/edges.hpp"
#include "grid/grid.hpp"
#include "multigrid/diagonals.hpp"
#include "multigrid/grid_vectors.hpp"
#include "multigrid/hierarchy.hpp"
#include "multigrid/rows.hpp"
#include "multigrid/vcycle.hpp"
#include "solve/steps.hpp"

namespace bilateral {

template <class T, class Model>
class MultigridSteps final : public Steps<T, Rows<T, Model>::channels> {
  using R = Rows<T, Model>;
  static constexpr std::size_t K = R::channels;

 public:
  using typename Steps<T, K>::Sums;
  using typename Steps<T, K>::Turn;

  MultigridSteps(const Grid& grid, const Levels<T, Model>& levels, DiagonalsOf<T, Model>& diagonals,
                 int threads)
      : grid_(grid),
        levels_(levels),
        multigrid_(levels.hierarchy),
        graph_(multigrid_.fine),
        fine_(levels.fine()),
        vectors_{graph_},
        diagonals_(diagonals),
        cycle_(levels, diagonals),
        moments_(levels.pixel_moments(grid, mass_)),
        z_(level_vector<T>(graph_.rows, R::stride)),
        d_(level_vector<T>(graph_.rows, R::stride)),
        x_((graph_.rows - second()) * R::stride),
        r_((graph_.rows - second()) * R::stride),
        q_((graph_.rows - second()) * R::stride),
        kept_((graph_.rows - second()) * R::stride),
        parts_(kinds * grid.bands()),
        team_(team_size(threads, grid.vertices, 4096)),
        queue_(grid.band_vertex, team_) {}

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
      const V x = vectors_.read(system_.x, row);
      R::put(x_.data(), row - second(), x);
      R::put(z, row, x);
    });
    worker.barrier.wait();
    each_band(worker, [&](std::size_t band) {
      Sum moved{};
      each_of(band, 0, [&](std::size_t row, std::size_t s, std::size_t lane) {
        const V b = vectors_.read(system_.b, row);
        const V close = near(row, s, lane), x = close + lacking(row, s, lane, close, b);
        V change = x - vectors_.read(system_.x, row);
        if (system_.active) change = vectors_.where(system_.active, row, change);
        R::put(z, row, x);
        R::put(lack, row, lacking(row, s, lane, x, b));
        moved += R::square(moments_, row, change);
      });
      part(Kind::movement, band) = R::total(moved);
    });
    worker.barrier.wait();
    const Sums moved = total(Kind::movement);
    const T* inverse = diagonals_.inverse(0);
    const T* weight = diagonals_.weight(0);
    each(worker, 1, [&](std::size_t row, std::size_t s, std::size_t lane) {
      const V x = R::get(x_.data(), row - second());
      const V flow = R::flow(fine_, s, lane, x, z) - pull_all(s, lane, lack);
      V r = vectors_.read(system_.b, row) - R::times(weight, row, x) - factor() * flow;
      if (system_.active) r = vectors_.where(system_.active, row, r);
      R::put(r_.data(), row - second(), r);
      R::put(q_.data(), row - second(), V{});
      R::put(d_.data(), row, V{});
      R::put(z, row, R::times(inverse, row, r));
    });
    return moved;
  }

  Sums precondition(const Worker& worker) override {
    const T* inverse = diagonals_.inverse(0);
    T* z = z_.data();
    worker.barrier.wait();
    if (cycle_.depth() > 0)
      correct(worker);
    else if (graph_.entry.size() > 0)
      relax(worker);
    each_band(worker, [&](std::size_t band) {
      Sum energy{};
      each_of(band, 1, [&](std::size_t row, std::size_t s, std::size_t lane) {
        const V r = R::get(r_.data(), row - second());
        const V value = R::times(inverse, row, r + factor() * pull_all(s, lane, z));
        R::put(z, row, value);
        energy += R::dot(r, value);
      });
      part(Kind::energy, band) = R::total(energy);
    });
    worker.barrier.wait();
    return total(Kind::energy);
  }

  Turn turn(const Worker& worker, const Sums& beta) override {
    const auto keep = R::filled(beta);
    const T* inverse = diagonals_.inverse(0);
    const T* weight = diagonals_.weight(0);
    T* z = z_.data();
    T* d = d_.data();
    T* q = q_.data();
    each_band(worker, [&](std::size_t band) {
      Sum moved{};
      each_of(band, 0, [&](std::size_t row, std::size_t s, std::size_t lane) {
        const V value = R::times(inverse, row, factor() * pull_all(s, lane, z));
        const V turned = value + keep * R::get(d, row);
        R::put(z, row, value);
        R::put(d, row, turned);
        moved += R::square(moments_, row, turned);
      });
      part(Kind::movement, band) = R::total(moved);
    });
    worker.barrier.wait();
    each_band(worker, [&](std::size_t band) {
      Sum bend{}, moved{};
      each_of(band, 1, [&](std::size_t row, std::size_t s, std::size_t lane) {
        const V value = R::get(z, row);
        const V flow = R::flow(fine_, s, lane, value, z);
        const V product =
            R::times(weight, row, value) + factor() * flow + keep * R::get(q, row - second());
        const V turned = value + keep * R::get(d, row);
        R::put(q, row - second(), product);
        R::put(d, row, turned);
        bend += R::dot(turned, product);
        moved += R::square(moments_, row, turned);
      });
      part(Kind::curvature, band) = R::total(bend);
      const Sums more = R::total(moved);
      for (std::size_t k = 0; k < K; ++k) part(Kind::movement, band)[k] += more[k];
    });
    worker.barrier.wait();
    return {total(Kind::curvature), total(Kind::movement)};
  }

  void descend(const Worker& worker, const Sums& alpha) override {
    const auto step = R::filled(alpha);
    const T* inverse = diagonals_.inverse(0);
    each(worker, 1, [&](std::size_t row, std::size_t, std::size_t) {
      const std::size_t at = row - second();
      const V r = R::get(r_.data(), at) - step * R::get(q_.data(), at);
      R::put(x_.data(), at, R::get(x_.data(), at) + step * R::get(d_.data(), row));
      R::put(r_.data(), at, r);
      R::put(z_.data(), row, R::times(inverse, row, r));
    });
  }

  void keep(const Worker& worker, const std::array<bool, K>& channels) override {
    copy_channels(worker, channels, x_.data(), kept_.data(), x_.size() / K);
  }

  void restore(const Worker& worker, const std::array<bool, K>& channels) override {
    worker.barrier.wait();
    copy_channels(worker, channels, kept_.data(), x_.data(), x_.size() / K);
  }

  void end(const Worker& worker) override {
    worker.barrier.wait();
    each(worker, 1, [&](std::size_t row, std::size_t, std::size_t) {
      const V x = R::get(x_.data(), row - second());
      R::put(z_.data(), row, x);
      vectors_.write_where(system_.active, system_.x, row, x);
    });
    worker.barrier.wait();
    each(worker, 0, [&](std::size_t row, std::size_t s, std::size_t lane) {
      const V close = near(row, s, lane);
      const V b = vectors_.read(system_.b, row);
      vectors_.write_where(system_.active, system_.x, row, close + lacking(row, s, lane, close, b));
    });
  }

 private:
  using V = typename R::V;
  using Sum = typename R::Sum;
  enum class Kind : std::size_t { curvature, movement, energy };  // the sums of each band
  static constexpr std::size_t kinds = 3;

  std::size_t second() const { return graph_.colour[1]; }  // first row of colour 1
  T factor() const { return static_cast<T>(system_.smoothness); }

  BILATERAL_INLINE V pull_all(std::size_t s, std::size_t lane, const T* x) const {
    return R::pull(fine_, graph_.entry.first[s], graph_.entry.first[s + 1], lane, x);
  }

  // z of the first neighbour, continued to the row, or 0 without neighbours.
  BILATERAL_INLINE V near(std::size_t row, std::size_t s, std::size_t lane) const {
    const std::size_t column = graph_.entry.first[s];
    if (column == graph_.entry.first[s + 1]) return V{};
    if constexpr (K > 1)
      if (graph_.entry.to[column * slice_rows + lane] == row) return V{};
    const std::uint32_t* to = graph_.entry.to.data() + column * slice_rows + lane;
    return R::beside(fine_, column, R::gather(z_.data(), to));
  }

  // The difference of a value from the solution of a row for the z of its neighbours.
  BILATERAL_INLINE V lacking(std::size_t row, std::size_t s, std::size_t lane, V x, V b) const {
    const V left = b - R::times(diagonals_.weight(0), row, x) -
                   factor() * R::flow(fine_, s, lane, x, z_.data());
    return R::times(diagonals_.inverse(0), row, left);
  }

  // z of colour 0 = the correction of the coarse levels for its residual, after z of colour 1 was
  // set to r / diag(A).
  void correct(const Worker& worker) {
    T* z = z_.data();
    each(worker, 0, [&](std::size_t row, std::size_t s, std::size_t lane) {
      R::put(z, row, R::raise(fine_, row, factor() * pull_all(s, lane, z)));
    });
    worker.barrier.wait();
    const Slices slices(0, multigrid_.coarse[0].rows, worker);
    T* residual = cycle_.residual();
    each_block<R>(slices.begin, slices.end, [&](std::size_t row, std::size_t s, std::size_t lane) {
      R::put(residual, row, R::members(multigrid_.colour0_members, s, lane, z));
    });
    worker.barrier.wait();
    cycle_.apply(worker);
    const std::uint32_t* parent = multigrid_.transfers[0].parent.data();
    const T* above = cycle_.correction();
    each(worker, 0, [&](std::size_t row, std::size_t, std::size_t) {
      R::put(z, row, R::lower(fine_, row, R::gather(above, parent + row)));
    });
    worker.barrier.wait();
  }

  // The same without coarse levels: a half-sweep over colour 0.
  void relax(const Worker& worker) {
    const T* inverse = diagonals_.inverse(0);
    T* z = z_.data();
    each(worker, 0, [&](std::size_t row, std::size_t s, std::size_t lane) {
      R::put(z, row, R::times(inverse, row, factor() * pull_all(s, lane, z)));
    });
    worker.barrier.wait();
  }

  template <class F>
  void each_band(const Worker& worker, F&& f) {
    queue_.each(worker, f);
  }

  template <class F>
  BILATERAL_INLINE void each_of(std::size_t band, std::size_t colour, F&& f) const {
    const auto& rows = graph_.band_row[colour];
    each_block<R>(rows[band] / slice_rows, rows[band + 1] / slice_rows, f);
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
  Levels<T, Model> levels_;
  const Hierarchy<T>& multigrid_;
  const GridGraph<T>& graph_;
  decltype(std::declval<const Levels<T, Model>&>().fine()) fine_;
  GridVectors<T, Model> vectors_;
  DiagonalsOf<T, Model>& diagonals_;
  VCycle<T, Model> cycle_;
  LinearSystem<T> system_;
  bool stale_ = false;
  Buffer<T> mass_;              // memory of moments_, if it needs any
  const T* moments_;            // number of pixels of each row, and moments of their positions
  Buffer<T> z_, d_;             // all rows
  Buffer<T> x_, r_, q_, kept_;  // rows of colour 1
  std::vector<Sums> parts_;
  int team_;
  BandQueue queue_;
};

}  // namespace bilateral
