// Solve planar systems on one grid, channel by channel, by PCG with multigrid.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "grid/positions.hpp"
#include "multigrid/nested_start.hpp"
#include "multigrid/plane_diagonals.hpp"
#include "solve/components.hpp"
#include "solve/multigrid_steps.hpp"
#include "solve/pcg.hpp"
#include "solve/plane_fill.hpp"

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
        steps_(grid, levels_, diagonals_, threads),
        components_(find_components(grid, hierarchy)) {}

  // Solves for all channels. `moments` and `weighted` come from splat_planes. x has the start of
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
    PcgResult all;
    all.converged = true;
    for (std::size_t k = 0; k < channels && options.max_iterations > 0 && !all.cancelled; ++k) {
      const LinearSystem<T> system{moments, gaps ? active_.data() : nullptr, weighted + k * numbers,
                                   x + k * numbers, options.smoothness};
      all.join(pcg(steps_, system, grid_.pixels(), std::array{scale[k]}, options));
    }
    if (gaps) {
      const PlaneFill<D> fill(grid_, centres_, active_.data());
      for (std::size_t k = 0; k < channels; ++k) fill.fill(x + k * numbers);
    }
    return all;
  }

  // Whether each vertex was connected to data in the last solve.
  const std::vector<std::uint8_t>& active() const { return active_; }

 private:
  void find_start(const T* weighted, std::size_t channels, T* x) {
    detail::NestedStart<T, Planar<D>> start(levels_, diagonals_);
    const std::size_t numbers = grid_.vertices * (D + 1);
    for (std::size_t k = 0; k < channels; ++k) {
      const bool stale = diagonals_.take_stale();
      run_team(steps_.team(), [&](const Worker& worker) {
        if (stale) diagonals_.refresh(worker);
        start.find(worker, weighted + k * numbers, x + k * numbers);
      });
    }
  }

  const Grid& grid_;
  const Centres<D>& centres_;
  Levels<T, Planar<D>> levels_;
  PlaneDiagonals<T, D> diagonals_;
  MultigridSteps<T, Planar<D>> steps_;
  Components components_;
  std::vector<std::uint8_t> active_;
};

}  // namespace bilateral
