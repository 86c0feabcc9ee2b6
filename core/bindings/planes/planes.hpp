// Bind the planar model of a grid for one precision: splat, slice and solve.
#pragma once

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/planes/bound_planes.hpp"
#include "bindings/solver.hpp"
#include "planes/fill.hpp"
#include "planes/probes.hpp"
#include "planes/solver.hpp"
#include "planes/splat.hpp"

namespace bilateral {

using PlaneObservation = std::tuple<std::size_t, double, std::vector<double>, std::vector<double>,
                                    std::vector<double>, std::optional<std::size_t>>;

// The number of channels of an array of planes.
template <class Array>
std::size_t plane_channels(const BoundPlanes& planes, const Array& array) {
  return channels_over(array, planes.grid().vertices * planes.unknowns());
}

template <class T>
PlaneObservation bound_splat_planes(const BoundPlanes& self, const Input<T>& target,
                                    const std::optional<Input<T>>& confidence, bool centred,
                                    const Output<T>& moments, const Output<T>& weighted,
                                    int threads) {
  const Grid& grid = self.grid();
  const std::size_t channels = channels_over(target, grid.pixels());
  require(plane_channels(self, weighted) == channels &&
              moments.size() == grid.vertices * self.matrix() &&
              (!confidence || confidence->size() == grid.pixels()),
          "sizes do not match");
  std::vector<double> origin(channels);
  const PlaneSums<T> out{moments.data(), weighted.data(), origin.data(), centred};
  PlaneStats stats;
  {
    const CoreCall call;
    stats = self.with_centres([&]<std::size_t D>(const Centres<D>& centres) {
      return splat_planes<D>(grid, centres, target.data(), data_or_null(confidence), channels, out,
                             threads);
    });
  }
  std::optional<std::size_t> invalid;
  if (stats.invalid != InputStats::none) invalid = stats.invalid;
  return {stats.known, stats.confidence, stats.low, stats.high, std::move(origin), invalid};
}

template <class T>
void bound_slice_planes(const BoundPlanes& self, const Input<T>& planes,
                        const std::vector<double>& origin, const std::vector<double>& low,
                        const std::vector<double>& high, const Output<T>& out, int threads) {
  const Grid& grid = self.grid();
  const std::size_t channels = plane_channels(self, planes);
  require(out.size() == grid.pixels() * channels && origin.size() == channels &&
              low.size() == channels && high.size() == channels,
          "sizes do not match");
  const CoreCall call;
  self.with_centres([&]<std::size_t D>(const Centres<D>& centres) {
    slice_planes<D>(grid, centres, planes.data(), channels, origin.data(), low.data(), high.data(),
                    out.data(), threads);
  });
}

// Fits the plane of each vertex to its own data, with a ridge for the slopes.
template <class T>
void bound_fit_planes(const BoundPlanes& self, const Input<T>& moments, const Input<T>& weighted,
                      double ridge, const Output<T>& x) {
  const std::size_t vertices = self.grid().vertices, channels = plane_channels(self, weighted);
  require(moments.size() == vertices * self.matrix() && x.size() == weighted.size(),
          "sizes do not match");
  const CoreCall call;
  self.with_centres([&]<std::size_t D>(const Centres<D>&) {
    for (std::size_t v = 0; v < vertices; ++v) {
      PlaneMatrix<D> matrix;
      for (std::size_t i = 0; i < matrix.size(); ++i)
        matrix[i] = static_cast<double>(moments.data()[v * matrix.size() + i]);
      for (std::size_t d = 1; d <= D; ++d) matrix[triangle(d, d)] += ridge * matrix[0];
      const PlaneMatrix<D> inverse = inverse_plane<D, double>(matrix);
      for (std::size_t k = 0; k < channels; ++k) {
        const std::size_t at = (k * vertices + v) * (D + 1);
        for (std::size_t i = 0; i <= D; ++i) {
          double sum = 0;
          for (std::size_t j = 0; j <= D; ++j)
            sum += inverse[j <= i ? triangle(i, j) : triangle(j, i)] *
                   static_cast<double>(weighted.data()[at + j]);
          x.data()[at + i] = static_cast<T>(sum);
        }
      }
    }
  });
}

template <class T>
void bound_fill_transposed(const BoundPlanes& self, const Input<bool>& active,
                           const Output<T>& planes) {
  const std::size_t vertices = self.grid().vertices, channels = plane_channels(self, planes);
  require(active.size() == vertices, "sizes do not match");
  const CoreCall call;
  self.with_centres([&]<std::size_t D>(const Centres<D>& centres) {
    const std::vector<std::uint8_t> flags(active.data(), active.data() + vertices);
    const PlaneFill<D> fill(self.grid(), centres, flags.data());
    for (std::size_t k = 0; k < channels; ++k)
      fill.fill_transposed(planes.data() + k * vertices * (D + 1));
  });
}

template <class T>
void bound_plane_probes(const BoundPlanes& self, const Input<T>& moments, double smoothness,
                        double slope_smoothness, double slope_ridge, std::uint64_t seed,
                        const Output<T>& b, int threads) {
  const std::size_t probes = plane_channels(self, b);
  require(moments.size() == self.grid().vertices * self.matrix() && probes <= max_probes,
          "sizes do not match");
  const CoreCall call;
  const T* n = self.bound().n<T>(threads);
  self.with_centres([&]<std::size_t D>(const Centres<D>& centres) {
    draw_plane_probes<D>(self.grid(), centres, n, moments.data(), smoothness,
                         {slope_smoothness, slope_ridge}, seed, probes, b.data(), threads);
  });
}

// Memory and matrices for planar solves on one grid with the same slope weights.
template <class T>
class BoundPlaneSolver {
 public:
  BoundPlaneSolver(nb::object planes, double slope_smoothness, double slope_ridge, bool all_levels,
                   int threads)
      : owner_(std::move(planes)), planes_(nb::cast<const BoundPlanes&>(owner_)) {
    const CoreCall call;
    const SlopeWeights slopes{slope_smoothness, slope_ridge};
    planes_.with_geometry<T>(
        all_levels, threads,
        [&]<std::size_t D>(const Centres<D>& centres, const Hierarchy<T>& hierarchy,
                           const PlaneGeometry<T, D>& geometry) {
          solver_ = std::make_unique<PlaneSolver<T, D>>(planes_.grid(), centres, hierarchy,
                                                        geometry, slopes, threads);
        });
  }

  std::tuple<std::vector<double>, bool, bool, double> solve(
      const Input<T>& moments, const Input<T>& weighted, const Output<T>& x,
      const std::vector<double>& scale, bool nested, double smoothness, int min_iterations,
      int max_iterations, double tolerance, double movement_fraction, double step_noise,
      std::size_t error_window, Callback callback) {
    const std::size_t channels = plane_channels(planes_, weighted);
    require(moments.size() == planes_.grid().vertices * planes_.matrix() &&
                x.size() == weighted.size() && scale.size() == channels,
            "sizes do not match");
    AfterStep after_step(std::move(callback));
    PcgOptions options = pcg_options(smoothness, min_iterations, max_iterations, tolerance,
                                     movement_fraction, step_noise, error_window);
    options.after_step = std::ref(after_step);
    PcgResult result;
    {
      const CoreCall call;
      result = std::visit(
          [&](auto& solver) {
            return solver->solve(moments.data(), weighted.data(), channels, scale.data(), x.data(),
                                 nested, options);
          },
          solver_);
    }
    after_step.raise();
    return {std::move(result.residuals), result.converged, result.diverged, result.moved};
  }

  void with_data(const Output<bool>& out) const {
    require(out.size() == planes_.grid().vertices, "out does not match the grid");
    const auto& active =
        std::visit([](const auto& solver) -> const auto& { return solver->active(); }, solver_);
    require(active.size() == out.size(), "the solver has not solved a system");
    std::copy(active.begin(), active.end(), out.data());
  }

 private:
  nb::object owner_;
  const BoundPlanes& planes_;
  std::variant<std::unique_ptr<PlaneSolver<T, 2>>, std::unique_ptr<PlaneSolver<T, 3>>> solver_;
};

template <class T>
void define_planes(nb::module_& m, nb::class_<BoundPlanes>& planes, const char* solver) {
  planes
      .def("splat", &bound_splat_planes<T>, "target"_a.noconvert(),
           "confidence"_a.noconvert().none(), "centred"_a, "moments"_a.noconvert(),
           "weighted"_a.noconvert(), "threads"_a,
           "Write the moments of a target and its confidence. Returns the number of known pixels, "
           "their confidence, lowest and highest values, the origin that was subtracted from the "
           "values, and the first pixel with an invalid confidence.")
      .def("slice", &bound_slice_planes<T>, "planes"_a.noconvert(), "origin"_a, "low"_a, "high"_a,
           "out"_a.noconvert(), "threads"_a,
           "Evaluate planes at the pixels, add an origin, and clamp.")
      .def("fit", &bound_fit_planes<T>, "moments"_a.noconvert(), "weighted"_a.noconvert(),
           "ridge"_a, "x"_a.noconvert(), "Fit the plane of each vertex to its own data.")
      .def("fill_transposed", &bound_fill_transposed<T>, "active"_a.noconvert(),
           "planes"_a.noconvert(),
           "Add the transpose of the fill of parts without data to the vertices with data.")
      .def("draw_probes", &bound_plane_probes<T>, "moments"_a.noconvert(), "smoothness"_a,
           "slope_smoothness"_a, "slope_ridge"_a, "seed"_a, "b"_a.noconvert(), "threads"_a,
           "Draw right-hand sides whose covariance is the planar matrix.");
  nb::class_<BoundPlaneSolver<T>>(m, solver, "Memory and matrices for planar solves on one grid.")
      .def(nb::init<nb::object, double, double, bool, int>(), "planes"_a, "slope_smoothness"_a,
           "slope_ridge"_a, "all_levels"_a, "threads"_a)
      .def("solve", &BoundPlaneSolver<T>::solve, "moments"_a.noconvert(), "weighted"_a.noconvert(),
           "x"_a.noconvert(), "scale"_a, "nested"_a, "smoothness"_a, "min_iterations"_a,
           "max_iterations"_a, "tolerance"_a, "movement_fraction"_a, "step_noise"_a,
           "error_window"_a, "callback"_a.none(),
           "Improve x in place by PCG, from the nested start if wanted. Returns the error estimate "
           "after each step, whether all channels converged, whether one diverged, and how far x "
           "moved.")
      .def("with_data", &BoundPlaneSolver<T>::with_data, "out"_a.noconvert(),
           "Write whether each vertex was connected to data in the last solve.");
}

}  // namespace bilateral
