// BoundPlanes: the planar model of a grid as Python holds it, with its geometry once a solve needs
// it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/grid/bound_grid.hpp"
#include "planes/geometry.hpp"
#include "planes/positions.hpp"

namespace bilateral {

class BoundPlanes {
 public:
  // `cells_per_pixel` has one number per spatial axis: x, y and t.
  BoundPlanes(nb::object grid, const std::vector<double>& cells_per_pixel, int threads)
      : owner_(std::move(grid)),
        bound_(nb::cast<const BoundGrid&>(owner_)),
        axes_(make(cells_per_pixel, threads)) {
    bound_.with_pyramid(threads);  // PlaneFill needs it
  }

  const BoundGrid& bound() const { return bound_; }
  const Grid& grid() const { return bound_.pixel_grid(); }
  std::size_t unknowns() const { return grid().space_dimensions + 1; }
  std::size_t matrix() const { return unknowns() * (unknowns() + 1) / 2; }

  // Calls f(centres), with the number of axes as a constant.
  template <class F>
  auto with_centres(F&& f) const {
    return std::visit([&](const auto& axes) { return f(axes->centres); }, axes_);
  }

  // Calls f(centres, hierarchy, geometry), with all levels or with the grid alone.
  template <class T, class F>
  auto with_geometry(bool all_levels, int threads, F&& f) const {
    return std::visit(
        [&](const auto& axes) {
          auto& both = std::get<typename std::decay_t<decltype(*axes)>::template Geometries<T>>(
              axes->geometries);
          auto& cached = all_levels ? both.all : both.grid;
          std::call_once(cached.once, [&] {
            using Geometry = typename std::decay_t<decltype(cached.geometry)>::element_type;
            auto geometry = std::make_unique<Geometry>(axes->centres);
            if (all_levels)
              bound_.add_geometry<T>(*geometry, threads);
            else
              cached.hierarchy = bound_.with_geometry<T>(*geometry, 0, threads);
            cached.geometry = std::move(geometry);
          });
          const Hierarchy<T>& hierarchy =
              all_levels ? bound_.multigrid<T>(threads) : *cached.hierarchy;
          return f(axes->centres, hierarchy, *cached.geometry);
        },
        axes_);
  }

 private:
  template <std::size_t D>
  struct Axes {
    template <class T>
    struct Cached {
      std::once_flag once;
      std::unique_ptr<Hierarchy<T>> hierarchy;  // of the grid alone; BoundGrid has that of all
      std::unique_ptr<PlaneGeometry<T, D>> geometry;
    };
    template <class T>
    struct Geometries {
      Cached<T> all, grid;
    };
    Centres<D> centres;
    mutable std::tuple<Geometries<float>, Geometries<double>> geometries;

    Axes(const Grid& grid, const std::vector<double>& cells_per_pixel, int threads)
        : centres(grid, position(cells_per_pixel), threads) {}

    static Position<D> position(const std::vector<double>& numbers) {
      Position<D> out;
      std::copy_n(numbers.begin(), D, out.begin());
      return out;
    }
  };
  using AnyAxes = std::variant<std::unique_ptr<Axes<2>>, std::unique_ptr<Axes<3>>>;

  AnyAxes make(const std::vector<double>& cells_per_pixel, int threads) const {
    require(cells_per_pixel.size() == grid().space_dimensions, "one number per axis is needed");
    const CoreCall call;
    if (grid().space_dimensions == 2)
      return std::make_unique<Axes<2>>(grid(), cells_per_pixel, threads);
    return std::make_unique<Axes<3>>(grid(), cells_per_pixel, threads);
  }

  nb::object owner_;
  const BoundGrid& bound_;
  AnyAxes axes_;
};

}  // namespace bilateral
