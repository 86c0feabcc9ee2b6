// Bind the solver of systems A y = b on a grid, and the nested start, for one precision.
#pragma once

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/grid/bound_grid.hpp"
#include "grid/pyramid_transfer.hpp"
#include "multigrid/hierarchy.hpp"
#include "multigrid/nested_start.hpp"
#include "solve/system.hpp"

namespace bilateral {

using Callback = std::optional<nb::typed<nb::callable, nb::object(int, double)>>;

// Runs between two steps: handles pending signals of Python (Ctrl-C) now and then, and calls the
// caller's function. An exception ends the solve; `raise` throws it after the threads have joined.
class AfterStep {
 public:
  explicit AfterStep(Callback callback) : callback_(std::move(callback)) {}

  bool operator()(int step, double residual) {
    const auto now = std::chrono::steady_clock::now();
    if (!callback_ && now - last_call_ < std::chrono::milliseconds(50)) return false;
    const nb::gil_scoped_acquire acquire;
    last_call_ = now;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      return callback_ && nb::cast<bool>(nb::bool_((*callback_)(step, residual)));
    } catch (...) {
      error_ = std::current_exception();
      return true;
    }
  }

  void raise() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  Callback callback_;
  std::chrono::steady_clock::time_point last_call_ = std::chrono::steady_clock::now();
  std::exception_ptr error_;
};

// A solver as Python holds it, for either precision.
class AnySolver {
 public:
  virtual ~AnySolver() = default;
  virtual void with_data(const Output<bool>& out) const = 0;
};

// A solver for one precision. It keeps its grid alive.
template <class T>
class BoundSolver final : public AnySolver {
 public:
  BoundSolver(nb::object grid, const std::string& preconditioner, int threads)
      : owner_(std::move(grid)),
        bound_(nb::cast<const BoundGrid&>(owner_)),
        threads_(threads),
        solver_(make(bound_, preconditioner, threads)) {}

  PcgResult solve(const Input<T>& weight, const Input<T>& weighted, const Output<T>& x,
                  const std::vector<double>& scale, bool fill, PcgOptions options,
                  Callback callback) {
    const std::size_t vertices = bound_.grid().vertices;
    const std::size_t channels = channels_over(weighted, vertices);
    require(weight.size() == vertices && x.size() == weighted.size() && scale.size() == channels,
            "sizes do not match");
    AfterStep after_step(std::move(callback));
    options.after_step = std::ref(after_step);
    PcgResult result;
    {
      const CoreCall call;
      if (fill && has_gaps(weight.data(), vertices)) bound_.with_pyramid(threads_);
      result = solver_.solve(weight.data(), weighted.data(), channels, scale.data(), x.data(), fill,
                             options);
    }
    after_step.raise();
    return result;
  }

  void with_data(const Output<bool>& out) const override {
    require(out.size() == bound_.grid().vertices, "out does not match the grid");
    const std::vector<std::uint8_t>& active = solver_.active();
    if (active.empty())
      std::fill_n(out.data(), out.size(), true);
    else
      std::copy(active.begin(), active.end(), out.data());
  }

 private:
  static SystemSolver<T> make(const BoundGrid& grid, const std::string& name, int threads) {
    const CoreCall call;
    if (name == "multigrid")
      return SystemSolver<T>(grid.grid(), grid.multigrid<T>(threads), threads);
    require(name == "pyramid" || name == "jacobi", "no such preconditioner");
    if (name == "jacobi")
      return SystemSolver<T>(grid.grid(), grid.n<T>(threads), Preconditioning::jacobi, threads);
    return SystemSolver<T>(grid.with_pyramid(threads), grid.n<T>(threads), Preconditioning::pyramid,
                           threads);
  }

  nb::object owner_;
  const BoundGrid& bound_;
  int threads_;
  SystemSolver<T> solver_;
};

// The options of PCG as Python passes them.
inline PcgOptions pcg_options(double smoothness, int min_iterations, int max_iterations,
                              double tolerance, double movement_fraction, double step_noise,
                              std::size_t error_window) {
  require(error_window > 0, "error_window must be positive");
  PcgOptions options;
  options.smoothness = smoothness;
  options.min_iterations = min_iterations;
  options.max_iterations = max_iterations;
  options.tolerance = tolerance;
  options.movement_fraction = movement_fraction;
  options.step_noise = step_noise;
  options.error_window = error_window;
  return options;
}

using Solved =
    std::tuple<nb::typed<nb::object, AnySolver>, std::vector<double>, bool, bool, double>;

// Solves with `solver`, or with a new one if there is none. One call does both, so that a solve
// crosses from Python to C++ only once.
template <class T>
Solved bound_solve(AnySolver* solver, nb::handle_t<BoundGrid> grid,
                   const std::string& preconditioner, const Input<T>& weight,
                   const Input<T>& weighted, const Output<T>& x, const std::vector<double>& scale,
                   bool fill, double smoothness, int min_iterations, int max_iterations,
                   double tolerance, double movement_fraction, double step_noise,
                   std::size_t error_window, Callback callback, int threads) {
  const PcgOptions options = pcg_options(smoothness, min_iterations, max_iterations, tolerance,
                                         movement_fraction, step_noise, error_window);
  nb::object owner;
  if (solver) {
    owner = nb::find(solver);
  } else {
    solver = new BoundSolver<T>(nb::borrow(grid), preconditioner, threads);
    owner = nb::cast(solver, nb::rv_policy::take_ownership);
  }
  auto* bound = dynamic_cast<BoundSolver<T>*>(solver);
  require(bound != nullptr, "the solver has another precision than the arrays");
  PcgResult result = bound->solve(weight, weighted, x, scale, fill, options, std::move(callback));
  return {std::move(owner), std::move(result.residuals), result.converged, result.diverged,
          result.moved};
}

template <class T>
void bound_nested_start(const BoundGrid& self, const Input<T>& weight, const Input<T>& weighted,
                        double smoothness, const Output<T>& x, int threads) {
  const Grid& grid = self.grid();
  const std::size_t channels = channels_over(weighted, grid.vertices);
  require(weight.size() == grid.vertices && x.size() == weighted.size(), "sizes do not match");
  const CoreCall call;
  nested_start(self.multigrid<T>(threads), grid.vertices, weight.data(), weighted.data(), channels,
               smoothness, x.data(), threads);
}

template <class T>
void define_solver(nb::module_& m, nb::class_<BoundGrid>& grid) {
  grid.def("nested_start", &bound_nested_start<T>, "weight"_a.noconvert(), "weighted"_a.noconvert(),
           "smoothness"_a, "x"_a.noconvert(), "threads"_a,
           "Write the solution of full multigrid above the grid, 0 where there is no data.");
  m.def("solve", &bound_solve<T>, "solver"_a.none(), "grid"_a, "preconditioner"_a,
        "weight"_a.noconvert(), "weighted"_a.noconvert(), "x"_a.noconvert(), "scale"_a, "fill"_a,
        "smoothness"_a, "min_iterations"_a, "max_iterations"_a, "tolerance"_a,
        "movement_fraction"_a, "step_noise"_a, "error_window"_a, "callback"_a.none(), "threads"_a,
        "Improve x in place by PCG, with a new solver if there is none. Returns the solver, the "
        "error estimate after each step, whether all channels converged, whether one diverged, and "
        "how far x moved.");
}

}  // namespace bilateral
