// Solve planar systems on one grid, channel by channel, by PCG with multigrid.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "grid/positions.hpp"
#include "multigrid/nested_start.hpp"
#include "multigrid/plane_diagonals.hpp"
#include "solve/components.hpp"
#include "solve/multigrid_steps.hpp"
#include "solve/pcg.hpp"
#include "solve/plane_fill.hpp"
#include "solve/small_parts.hpp"

namespace bilateral {

template <class T, std::size_t D>
class PlaneSolver {
 public:
  PlaneSolver(const Grid& grid, const Centres<D>& centres, const Hierarchy<T>& hierarchy,
              const PlaneGeometry<T, D>& geometry, const SlopeWeights& slopes, int threads)
      : grid_(grid),
        centres_(centres),
        levels_{hierarchy, geometry, slopes},
        diagonals_(levels_),
        components_(find_components(grid, hierarchy)),
        small_(levels_, components_),
        threads_(threads) {}

  // Solves for all channels. Without a ridge, parts with too little data for their slopes take them
  // from their surroundings. `moments` and `weighted` come from splat_planes. x has the start of
  // active vertices on entry, unless `nested` is set, and the solution of all vertices on return.
  // `scale` is the size of the solution per channel.
  PcgResult solve(const T* moments, const T* weighted, std::size_t channels, const double* scale,
                  T* x, bool nested, const PcgOptions& options) {
    constexpr std::size_t matrix = Planar<D>::matrix;
    std::vector<T> weight(grid_.vertices);
    for (std::size_t v = 0; v < grid_.vertices; ++v) weight[v] = moments[v * matrix];
    active_ = with_data(components_, weight.data());
    const bool gaps = std::find(active_.begin(), active_.end(), 0) != active_.end();
    diagonals_.set(moments, options.smoothness);
    const std::size_t numbers = grid_.vertices * (D + 1);
    if (nested) find_start(weighted, channels, x);
    const auto run = [&](const std::uint8_t* active) {
      PcgResult all;
      all.converged = true;
      for (std::size_t k = 0; k < channels && options.max_iterations > 0 && !all.cancelled; ++k) {
        const LinearSystem<T> system{moments, active, weighted + k * numbers, x + k * numbers,
                                     options.smoothness};
        all.join(pcg(steps(), system, grid_.pixels(), std::array{scale[k]}, options));
      }
      return all;
    };
    std::vector<std::uint8_t> iterated(active_);
    const std::vector<double> moved =
        small_.solve(grid_, moments, weighted, channels, options.smoothness, x, iterated, threads_);
    PcgResult all = run(iterated.data());
    for (std::size_t k = 0; k < channels; ++k)
      all.moved = std::hypot(all.moved,
                             std::sqrt(moved[k] / static_cast<double>(grid_.pixels())) / scale[k]);
    if (levels_.slopes.ridge < least_ridge && nested) {
      const std::vector<std::uint8_t> loose = without_slopes(moments);
      if (!loose.empty()) {
        std::vector<std::uint8_t> firm(active_);
        for (std::size_t v = 0; v < firm.size(); ++v) firm[v] = firm[v] && !loose[v];
        fill(firm, channels, x);
        all.join(run(loose.data()));
      }
    }
    if (gaps) fill(active_, channels, x);
    return all;
  }

  // Whether each vertex was connected to data in the last solve.
  const std::vector<std::uint8_t>& active() const { return active_; }

 private:
  MultigridSteps<T, Planar<D>>& steps() {
    if (!steps_)
      steps_ = std::make_unique<MultigridSteps<T, Planar<D>>>(grid_, levels_, diagonals_, threads_);
    return *steps_;
  }

  // Below this ridge, data alone determine slopes.
  static constexpr double least_ridge = 1e-7;

  void fill(const std::vector<std::uint8_t>& active, std::size_t channels, T* x) const {
    if (std::find(active.begin(), active.end(), 1) == active.end()) return;
    const PlaneFill<D> fill(grid_, centres_, active.data());
    for (std::size_t k = 0; k < channels; ++k) fill.fill(x + k * grid_.vertices * (D + 1));
  }

  // Whether each vertex belongs to a component with data that do not determine all slopes. Empty if
  // none does.
  std::vector<std::uint8_t> without_slopes(const T* moments) const {
    struct Sums {
      double weight = 0;
      Position<D> mean{};
      PlaneMatrix<D> matrix{};
    };
    std::vector<Sums> sums(components_.count);
    const auto each = [&](auto&& f) {
      for (std::size_t v = 0; v < grid_.vertices; ++v) {
        PlaneMatrix<D> matrix;
        for (std::size_t i = 0; i < matrix.size(); ++i)
          matrix[i] = static_cast<double>(moments[v * matrix.size() + i]);
        f(sums[components_.of[v]], matrix, centres_.position.data() + v * D);
      }
    };
    each([](Sums& sum, const PlaneMatrix<D>& matrix, const double* centre) {
      sum.weight += matrix[0];
      for (std::size_t d = 0; d < D; ++d)
        sum.mean[d] += matrix[triangle(d + 1, 0)] + centre[d] * matrix[0];
    });
    each([](Sums& sum, const PlaneMatrix<D>& matrix, const double* centre) {
      Position<D> offset;
      for (std::size_t d = 0; d < D; ++d) offset[d] = centre[d] - sum.mean[d] / sum.weight;
      if (sum.weight > 0) add_moved<D, double>(sum.matrix, matrix, offset);
    });
    std::vector<std::uint8_t> loose(components_.count);
    for (std::size_t c = 0; c < sums.size(); ++c) {
      // The least spread of the data, in squared cells, that determines a slope.
      constexpr double least = 1e-7;
      PlaneMatrix<D> matrix = sums[c].matrix;
      for (std::size_t d = 1; d <= D; ++d) matrix[triangle(d, d)] -= least * matrix[0];
      const PlaneFactors<D, double> factors(matrix);
      for (std::size_t d = 1; d <= D; ++d)
        if (sums[c].weight > 0 && !(factors.diagonal[d] > 0)) loose[c] = 1;
    }
    std::vector<std::uint8_t> out;
    if (std::find(loose.begin(), loose.end(), 1) == loose.end()) return out;
    out.resize(grid_.vertices);
    for (std::size_t v = 0; v < grid_.vertices; ++v) out[v] = loose[components_.of[v]];
    return out;
  }

  void find_start(const T* weighted, std::size_t channels, T* x) {
    detail::NestedStart<T, Planar<D>> start(levels_, diagonals_);
    const std::size_t numbers = grid_.vertices * (D + 1);
    for (std::size_t k = 0; k < channels; ++k) {
      const bool stale = diagonals_.take_stale();
      run_team(team_size(threads_, grid_.vertices, 4096), [&](const Worker& worker) {
        if (stale) diagonals_.refresh(worker);
        start.find(worker, weighted + k * numbers, x + k * numbers);
      });
    }
  }

  const Grid& grid_;
  const Centres<D>& centres_;
  Levels<T, Planar<D>> levels_;
  PlaneDiagonals<T, D> diagonals_;
  Components components_;
  SmallParts<T, D> small_;
  int threads_;
  std::unique_ptr<MultigridSteps<T, Planar<D>>> steps_;  // made after the start, to save memory
  std::vector<std::uint8_t> active_;
};

}  // namespace bilateral
