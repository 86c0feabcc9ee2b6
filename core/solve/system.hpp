// Solve systems A y = b with any number of channels on one grid, by PCG on groups of channels.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <tuple>
#include <vector>

#include "base/channel_groups.hpp"
#include "base/vector_loops.hpp"
#include "grid/grid.hpp"
#include "grid/pyramid_transfer.hpp"
#include "solve/components.hpp"
#include "solve/multigrid_steps.hpp"
#include "solve/paper_steps.hpp"
#include "solve/pcg.hpp"

namespace bilateral {

// Solves systems on one grid, one after another. The systems share memory, conductances and
// connected components.
template <class T>
class SystemSolver {
 public:
  // With one of the paper's preconditioners; n comes from bistochastize.
  SystemSolver(const Grid& grid, const T* n, Preconditioning kind, int threads)
      : grid_(grid), n_(n), kind_(kind), threads_(threads) {}

  // With multigrid.
  SystemSolver(const Grid& grid, const Hierarchy<T>& multigrid, int threads)
      : grid_(grid),
        multigrid_(&multigrid),
        diagonals_(std::make_unique<Diagonals<T>>(multigrid)),
        threads_(threads) {}

  // Whether each vertex was connected to data in the last solve. Empty if all were.
  const std::vector<std::uint8_t>& active() const { return active_; }

  // Solves for all channels. x holds the start on entry and the solution on return. Components
  // without data get the pyramid start if `fill` is set, and keep x otherwise. `scale` is the size
  // of the solution per channel.
  PcgResult solve(const T* weight, const T* weighted, std::size_t channels, const double* scale,
                  T* x, bool fill, const PcgOptions& options) {
    weight_ = weight;
    if (diagonals_) diagonals_->set(weight, options.smoothness);
    find_gaps(weighted, channels, x, fill, options);
    PcgResult all;
    all.converged = true;
    if (options.max_iterations <= 0) return all;
    each_channel_group(channels, [&](auto K, std::size_t first, std::size_t count) {
      all.join(solve_group<K>(weighted, channels, first, count, scale, x, options));
      return !all.cancelled;
    });
    return all;
  }

 private:
  template <std::size_t K>
  using AnySteps = std::unique_ptr<Steps<T, K>>;

  template <std::size_t K>
  Steps<T, K>& steps() {
    AnySteps<K>& steps = std::get<AnySteps<K>>(steps_);
    if (!steps && multigrid_)
      steps = std::make_unique<MultigridSteps<T, Constant<K>>>(
          grid_, Levels<T, Constant<K>>{*multigrid_}, *diagonals_, threads_);
    else if (!steps)
      steps = std::make_unique<PaperSteps<T, K>>(grid_, n_, kind_, threads_);
    return *steps;
  }

  const Components& components() {
    if (components_.count == 0)
      components_ = multigrid_ ? find_components(grid_, *multigrid_) : find_components(grid_);
    return components_;
  }

  // Finds the vertices that may change, and whether the problem is stiff.
  void find_gaps(const T* weighted, std::size_t channels, T* x, bool fill,
                 const PcgOptions& options) {
    const T* weight = weight_;
    const double total =
        detail::eight_sums(grid_.vertices, [=](std::size_t i) { return weight[i]; });
    const double stiffness = options.smoothness * static_cast<double>(grid_.pixels()) / total;
    stiff_ = options.tolerance >= 0 && stiffness > 100;
    hidden_means_ = stiffness * static_cast<double>(std::numeric_limits<T>::epsilon()) > 1;
    const bool gaps = std::any_of(weight, weight + grid_.vertices, [](T w) { return !(w > T{0}); });
    active_.clear();
    if (gaps) active_ = with_data(components(), weight);
    if (std::find(active_.begin(), active_.end(), 0) == active_.end()) {
      active_.clear();
    } else if (fill) {
      Buffer<T> start(grid_.vertices * channels);
      pyramid_start(grid_, weight, weighted, channels, start.data(), threads_);
      for (std::size_t v = 0; v < grid_.vertices; ++v)
        if (!active_[v]) std::copy_n(start.data() + v * channels, channels, x + v * channels);
    }
  }

  template <std::size_t K>
  PcgResult solve_group(const T* weighted, std::size_t channels, std::size_t first,
                        std::size_t count, const double* scale, T* x, const PcgOptions& options) {
    std::array<double, K> group_scale;
    group_scale.fill(1);
    std::copy_n(scale + first, count, group_scale.begin());
    if (channels == K) return solve_channels<K>(weighted, group_scale, x, options);
    const Buffer<T> b = gather_channels<K>(weighted, grid_.vertices, channels, first, count);
    Buffer<T> y = gather_channels<K>(x, grid_.vertices, channels, first, count);
    PcgResult result = solve_channels<K>(b.data(), group_scale, y.data(), options);
    scatter_channels<K>(y, grid_.vertices, channels, first, count, x);
    return result;
  }

  template <std::size_t K>
  PcgResult solve_channels(const T* b, const std::array<double, K>& scale, T* x,
                           PcgOptions options) {
    PcgResult all;
    const int max_iterations = options.max_iterations;
    const auto after_step = options.after_step;
    options.after_step = [&](int step, double residual) {
      return after_step && after_step(static_cast<int>(all.residuals.size()) + step, residual);
    };
    const LinearSystem<T> system{weight_, active_.empty() ? nullptr : active_.data(), b, x,
                                 options.smoothness};
    for (bool done = false; !done;) {
      options.max_iterations = max_iterations - static_cast<int>(all.residuals.size());
      const PcgResult part = pcg(steps<K>(), system, grid_.pixels(), scale, options);
      all.residuals.insert(all.residuals.end(), part.residuals.begin(), part.residuals.end());
      all.moved += part.moved;
      all.converged = part.converged;
      all.cancelled = part.cancelled;
      all.diverged = part.diverged;
      if (diagonals_ && diagonals_->faint() && options.tolerance >= 0) stiff_ = true;
      const bool shifts = part.converged ? stiff_ : hidden_means_ || (stiff_ && part.diverged);
      done = part.cancelled || !part.converged || !stiff_;
      if (shifts && !part.cancelled) {
        const double shift = shift_components<K>(grid_, components(), weight_, b, scale, x);
        all.moved += shift;
        done = done || shift <= std::max(options.tolerance, options.movement_fraction * all.moved);
      }
      if (!done && static_cast<int>(all.residuals.size()) >= max_iterations) {
        all.converged = false;
        done = true;
      }
    }
    return all;
  }

  const Grid& grid_;
  const T* n_ = nullptr;
  Preconditioning kind_ = Preconditioning::jacobi;
  const Hierarchy<T>* multigrid_ = nullptr;
  std::unique_ptr<Diagonals<T>> diagonals_;
  int threads_;
  const T* weight_ = nullptr;
  bool stiff_ = false;                // whether constants need shift_components
  bool hidden_means_ = false;         // whether only shift_components can find the constants
  Components components_;             // found when needed
  std::vector<std::uint8_t> active_;  // empty: all vertices
  std::tuple<AnySteps<1>, AnySteps<4>, AnySteps<8>> steps_;
};

}  // namespace bilateral
