// BoundGrid: the grid that Python holds, with its bistochastization, and with its pyramid and its
// multigrid hierarchies once a call needs them.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "base/buffer.hpp"
#include "grid/grid.hpp"
#include "multigrid/hierarchy.hpp"

namespace bilateral {

class BoundGrid {
 public:
  using Clock = std::chrono::steady_clock;

  // Takes a grid with the weights of B-bar, whose construction began at `began`, and
  // bistochastizes B-bar. For `lowest_eigenvalue` see bistochastize, for `weights` Hierarchy.
  BoundGrid(Grid grid, Clock::time_point began, double lowest_eigenvalue,
            const LevelWeights& weights, int threads);
  ~BoundGrid();

  // The grid; its pyramid may be missing.
  const Grid& grid() const { return grid_; }

  // The grid with its pyramid, which the first call builds.
  const Grid& with_pyramid(int threads) const;

  // The grid, for operations on pixels. Throws std::invalid_argument if the blocks have them.
  const Grid& pixel_grid() const {
    if (!grid_.has_pixels()) throw std::invalid_argument("the pixels of this grid are in blocks");
    return grid_;
  }

  // Seconds for vertices and edges, for the pyramid, and for the bistochastization.
  const std::array<double, 3>& build_seconds(int threads) const {
    with_pyramid(threads);
    return build_seconds_;
  }

  // The vector n of the bistochastization.
  template <class T>
  const T* n(int threads) const;

  template <class T>
  const Hierarchy<T>& multigrid(int threads) const;

  // Makes a hierarchy of at most `max_depth` levels above the grid, with their geometry.
  template <class T, class Geometry>
  std::unique_ptr<Hierarchy<T>> with_geometry(Geometry& geometry, std::size_t max_depth,
                                              int threads) const {
    return std::make_unique<Hierarchy<T>>(grid_, n<T>(threads), weights_, geometry, threads,
                                          max_depth);
  }

  // Builds the geometry of the hierarchy's levels. It needs a hierarchy in the making, so a grid
  // that has one already makes another one, and drops it.
  template <class T, class Geometry>
  void add_geometry(Geometry& geometry, int threads) const {
    auto hierarchy = with_geometry<T>(geometry, Hierarchy<T>::all_levels, threads);
    auto& cached = std::get<Cached<T>>(multigrids_);
    std::call_once(cached.once, [&] { cached.value = std::move(hierarchy); });
  }

 private:
  mutable Grid grid_;  // with_pyramid changes its levels
  mutable std::once_flag pyramid_once_;
  mutable std::array<double, 3> build_seconds_{};
  double lowest_eigenvalue_;
  LevelWeights weights_;
  Buffer<float> n32_;
  mutable std::once_flag n64_once_;
  mutable Buffer<double> n64_;

  template <class T>
  struct Cached {
    std::once_flag once;
    std::unique_ptr<Hierarchy<T>> value;
  };
  mutable std::tuple<Cached<float>, Cached<double>> multigrids_;
};

// bound_grid.cpp defines these, so that the hierarchies are compiled once.
template <>
const float* BoundGrid::n(int threads) const;
template <>
const double* BoundGrid::n(int threads) const;
extern template const Hierarchy<float>& BoundGrid::multigrid<float>(int threads) const;
extern template const Hierarchy<double>& BoundGrid::multigrid<double>(int threads) const;

}  // namespace bilateral
