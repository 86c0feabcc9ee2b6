// Solve planar systems on one grid, channel by channel, by PCG with multigrid, or with sweeps over
// the grid alone.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "multigrid/nested_start.hpp"
#include "planes/diagonals.hpp"
#include "planes/fill.hpp"
#include "planes/positions.hpp"
#include "planes/small_parts.hpp"
#include "planes/sweep_start.hpp"
#include "solve/components.hpp"
#include "solve/multigrid_steps.hpp"
#include "solve/pcg.hpp"

namespace bilateral {

// A hierarchy of the grid alone is enough if all vertices have enough data of their own. Sweeps
// over the grid then find the start.
template <class T, std::size_t D>
class PlaneSolver {
 public:
  PlaneSolver(const Grid& grid, const Centres<D>& centres, const Hierarchy<T>& hierarchy,
              const PlaneGeometry<T, D>& geometry, const SlopeWeights& slopes, int threads)
      : grid_(grid),
        centres_(centres),
        levels_{hierarchy, geometry, {slopes.smoothness, std::max(slopes.ridge, least_ridge)}},
        without_ridge_(slopes.ridge < least_ridge),
        diagonals_(levels_),
        threads_(threads) {}

  // Solves for all channels. Without a ridge, parts with too little data for their slopes take them
  // from their surroundings. `moments` and `weighted` come from splat_planes. x has the start of
  // active vertices on entry, unless `nested` is set, and the solution of all vertices on return.
  // `scale` is the size of the solution per channel.
  PcgResult solve(const T* moments, const T* weighted, std::size_t channels, const double* scale,
                  T* x, bool nested, const PcgOptions& options) {
    find_active(moments);
    const bool gaps = std::find(active_.begin(), active_.end(), 0) != active_.end();
    diagonals_.set(moments, options.smoothness);
    if (nested) find_start(weighted, channels, x);
    PcgResult all = iterate(moments, weighted, channels, scale, x, active_, options);
    if (without_ridge_ && nested) {
      const std::vector<std::uint8_t> loose = without_slopes(moments);
      if (!loose.empty())
        all.join(solve_loose(loose, moments, weighted, channels, scale, x, options));
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

  // Parts whose data determine no slope need a ridge. In all others it changes nothing visible.
  static constexpr double least_ridge = 1e-11;

  // Whether the hierarchy has no levels above a grid with edges.
  bool grid_alone() const {
    return levels_.hierarchy.depth() == 0 && levels_.hierarchy.fine.entry.size() > 0;
  }

  // Components are needed only for small parts, and where data are missing.
  const Components& components() {
    if (components_.count == 0) components_ = find_components(grid_, levels_.hierarchy);
    return components_;
  }

  void find_active(const T* moments) {
    std::vector<T> weight(grid_.vertices);
    for (std::size_t v = 0; v < grid_.vertices; ++v) weight[v] = moments[v * Planar<D>::matrix];
    if (*std::min_element(weight.begin(), weight.end()) > T{0})
      active_.assign(grid_.vertices, 1);
    else
      active_ = with_data(components(), weight.data());
  }

  // Improves x where `active` is set: directly in small components, by PCG elsewhere.
  PcgResult iterate(const T* moments, const T* weighted, std::size_t channels, const double* scale,
                    T* x, std::vector<std::uint8_t> active, const PcgOptions& options) {
    const std::size_t numbers = grid_.vertices * (D + 1);
    if (!small_) small_ = std::make_unique<SmallParts<T, D>>(levels_, components());
    const std::vector<double> moved =
        small_->solve(grid_, moments, weighted, channels, options.smoothness, x, active, threads_);
    const bool everywhere = std::find(active.begin(), active.end(), 0) == active.end();
    PcgResult all;
    all.converged = true;
    for (std::size_t k = 0; k < channels && options.max_iterations > 0 && !all.cancelled; ++k) {
      const LinearSystem<T> system{moments, everywhere ? nullptr : active.data(),
                                   weighted + k * numbers, x + k * numbers, options.smoothness};
      all.join(pcg(steps(), system, grid_.pixels(), std::array{scale[k]}, options));
    }
    for (std::size_t k = 0; k < channels; ++k)
      all.moved = std::hypot(all.moved,
                             std::sqrt(moved[k] / static_cast<double>(grid_.pixels())) / scale[k]);
    return all;
  }

  // Solves the components whose data determine no slope, by the least change of one plane of their
  // surroundings. That plane has no smoothness term, so only the data term changes.
  PcgResult solve_loose(const std::vector<std::uint8_t>& loose, const T* moments, const T* weighted,
                        std::size_t channels, const double* scale, T* x,
                        const PcgOptions& options) {
    constexpr std::size_t unknowns = D + 1;
    std::vector<std::uint8_t> firm(active_);
    for (std::size_t v = 0; v < firm.size(); ++v) firm[v] = firm[v] && !loose[v];
    if (std::find(firm.begin(), firm.end(), 1) != firm.end())
      fill(firm, channels, x);
    else
      fit_one_plane(moments, weighted, channels, x);
    const std::size_t size = channels * grid_.vertices * unknowns;
    Buffer<T> plane(size, T{0}), left(size, T{0});
    std::vector<std::size_t> first(components_.count, grid_.vertices);
    for (std::size_t v = grid_.vertices; v-- > 0;) first[components_.of[v]] = v;
    for (std::size_t k = 0; k < channels; ++k)
      for (std::size_t v = 0; v < grid_.vertices; ++v) {
        if (!loose[v]) continue;
        const std::size_t start = k * grid_.vertices, at = (start + v) * unknowns;
        const std::size_t leader = first[components_.of[v]];
        const T* from = x + (start + leader) * unknowns;
        auto value = static_cast<double>(from[0]);
        for (std::size_t d = 0; d < D; ++d) {
          value += static_cast<double>(from[d + 1]) * (centre_of(v)[d] - centre_of(leader)[d]);
          plane[at + d + 1] = from[d + 1];
        }
        plane[at] = static_cast<T>(value);
        for (std::size_t i = 0; i < unknowns; ++i) {
          auto sum = static_cast<double>(weighted[at + i]);
          for (std::size_t j = 0; j < unknowns; ++j)
            sum -=
                static_cast<double>(
                    moments[v * Planar<D>::matrix + (j <= i ? triangle(i, j) : triangle(j, i))]) *
                static_cast<double>(plane[at + j]);
          left[at + i] = static_cast<T>(sum);
        }
      }
    for (std::size_t i = 0; i < size; ++i)
      if (loose[i / unknowns % grid_.vertices]) x[i] = T{0};
    PcgResult result = iterate(moments, left.data(), channels, scale, x, loose, options);
    for (std::size_t i = 0; i < size; ++i) x[i] += plane[i];
    return result;
  }

  void fill(const std::vector<std::uint8_t>& active, std::size_t channels, T* x) const {
    const PlaneFill<D> fill(grid_, centres_, active.data());
    for (std::size_t k = 0; k < channels; ++k) fill.fill(x + k * grid_.vertices * (D + 1));
  }

  // Gives all vertices the plane that fits all data.
  void fit_one_plane(const T* moments, const T* weighted, std::size_t channels, T* x) const {
    constexpr std::size_t numbers = Planar<D>::matrix, unknowns = D + 1;
    PlaneMatrix<D> sum{};
    for (std::size_t v = 0; v < grid_.vertices; ++v) {
      PlaneMatrix<D> matrix;
      for (std::size_t i = 0; i < numbers; ++i)
        matrix[i] = static_cast<double>(moments[v * numbers + i]);
      add_moved<D, double>(sum, matrix, centre_of(v));
    }
    const PlaneMatrix<D> inverse = inverse_plane<D, double>(sum);
    for (std::size_t k = 0; k < channels; ++k) {
      const T* b = weighted + k * grid_.vertices * unknowns;
      std::array<double, unknowns> total{}, plane{};
      for (std::size_t v = 0; v < grid_.vertices; ++v) {
        const auto value = static_cast<double>(b[v * unknowns]);
        total[0] += value;
        for (std::size_t d = 0; d < D; ++d)
          total[d + 1] += static_cast<double>(b[v * unknowns + d + 1]) + centre_of(v)[d] * value;
      }
      for (std::size_t i = 0; i < unknowns; ++i)
        for (std::size_t j = 0; j < unknowns; ++j)
          plane[i] += inverse[j <= i ? triangle(i, j) : triangle(j, i)] * total[j];
      for (std::size_t v = 0; v < grid_.vertices; ++v) {
        T* out = x + (k * grid_.vertices + v) * unknowns;
        double value = plane[0];
        for (std::size_t d = 0; d < D; ++d) {
          value += plane[d + 1] * centre_of(v)[d];
          out[d + 1] = static_cast<T>(plane[d + 1]);
        }
        out[0] = static_cast<T>(value);
      }
    }
  }

  Position<D> centre_of(std::size_t v) const {
    Position<D> centre;
    std::copy_n(centres_.position.data() + v * D, D, centre.begin());
    return centre;
  }

  // Whether each vertex belongs to a component with data that do not determine all slopes. Empty if
  // none does.
  std::vector<std::uint8_t> without_slopes(const T* moments) {
    struct Sums {
      double weight = 0;
      Position<D> mean{};
      PlaneMatrix<D> matrix{};
    };
    const Components& parts = components();
    std::vector<Sums> sums(parts.count);
    const auto each = [&](auto&& f) {
      for (std::size_t v = 0; v < grid_.vertices; ++v) {
        PlaneMatrix<D> matrix;
        for (std::size_t i = 0; i < matrix.size(); ++i)
          matrix[i] = static_cast<double>(moments[v * matrix.size() + i]);
        f(sums[parts.of[v]], matrix, centres_.position.data() + v * D);
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
    std::vector<std::uint8_t> loose(parts.count);
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
    for (std::size_t v = 0; v < grid_.vertices; ++v) out[v] = loose[parts.of[v]];
    return out;
  }

  void find_start(const T* weighted, std::size_t channels, T* x) {
    if (grid_alone()) return find_start<SweepStart<T, D>>(weighted, channels, x);
    find_start<detail::NestedStart<T, Planar<D>>>(weighted, channels, x);
  }

  template <class Start>
  void find_start(const T* weighted, std::size_t channels, T* x) {
    Start start(levels_, diagonals_);
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
  bool without_ridge_;
  PlaneDiagonals<T, D> diagonals_;
  int threads_;
  Components components_;                                // empty until needed
  std::unique_ptr<SmallParts<T, D>> small_;              // made when needed
  std::unique_ptr<MultigridSteps<T, Planar<D>>> steps_;  // made after the start, to save memory
  std::vector<std::uint8_t> active_;
};

}  // namespace bilateral
