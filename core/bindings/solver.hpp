// Bind a solver of systems A y = b on a grid, and the nested start.
#pragma once

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bound_grid.hpp"
#include "multigrid/hierarchy.hpp"
#include "multigrid/nested_start.hpp"
#include "solve/system.hpp"

namespace bilateral {

template <class T>
void py_nested_start(const BoundGrid& self, const Input<T>& weight, const Input<T>& weighted,
                     double smoothness, const Output<T>& x, int threads) {
  const Grid& grid = self.grid();
  const std::size_t channels = channels_over(weighted, grid.vertices);
  require(weight.size() == grid.vertices && x.size() == weighted.size(), "sizes do not match");
  const nb::gil_scoped_release release;
  nested_start(self.multigrid<T>(threads), grid.vertices, weight.data(), weighted.data(), channels,
               smoothness, x.data(), threads);
}

// What runs between two steps: now and then Python's pending signals (Ctrl-C), and the caller's
// function. An exception ends the solve and is raised after the threads have joined.
class AfterStep {
 public:
  explicit AfterStep(nb::object callback) : callback_(std::move(callback)) {}

  bool operator()(int step, double residual) {
    const auto now = std::chrono::steady_clock::now();
    if (callback_.is_none() && now - last_ < std::chrono::milliseconds(50)) return false;
    const nb::gil_scoped_acquire acquire;
    last_ = now;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      return !callback_.is_none() && nb::cast<bool>(nb::bool_(callback_(step, residual)));
    } catch (...) {
      error_ = std::current_exception();
      return true;
    }
  }

  void raise() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  nb::object callback_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  std::exception_ptr error_;
};

template <class T>
class PySolver {
 public:
  PySolver(const BoundGrid& grid, const std::string& preconditioner, int threads)
      : grid_(grid.grid()), solver_(make(grid, preconditioner, threads)) {}

  nb::tuple solve(const Input<T>& weight, const Input<T>& weighted, const Output<T>& x,
                  const std::vector<double>& scale, bool fill, double smoothness, int least_steps,
                  int most_steps, double tolerance, double of_movement, nb::object callback) {
    const std::size_t channels = channels_over(weighted, grid_.vertices);
    require(
        weight.size() == grid_.vertices && x.size() == weighted.size() && scale.size() == channels,
        "sizes do not match");
    AfterStep after_step(std::move(callback));
    PcgOptions options;
    options.smoothness = smoothness;
    options.least_steps = least_steps;
    options.most_steps = most_steps;
    options.tolerance = tolerance;
    options.of_movement = of_movement;
    options.after_step = std::ref(after_step);
    PcgResult result;
    {
      const nb::gil_scoped_release release;
      result = solver_.solve(weight.data(), weighted.data(), channels, scale.data(), x.data(), fill,
                             options);
    }
    after_step.raise();
    return nb::make_tuple(result.residuals, result.converged, result.moved);
  }

  void with_data(const Output<bool>& out) const {
    require(out.size() == grid_.vertices, "out does not match the grid");
    const std::vector<std::uint8_t>& active = solver_.active();
    if (active.empty())
      std::fill_n(out.data(), out.size(), true);
    else
      std::copy(active.begin(), active.end(), out.data());
  }

 private:
  static SystemSolver<T> make(const BoundGrid& grid, const std::string& name, int threads) {
    const nb::gil_scoped_release release;
    if (name == "multigrid")
      return SystemSolver<T>(grid.grid(), grid.multigrid<T>(threads), threads);
    require(name == "pyramid" || name == "jacobi", "no such preconditioner");
    const auto kind = name == "pyramid" ? Preconditioning::pyramid : Preconditioning::jacobi;
    return SystemSolver<T>(grid.grid(), grid.n<T>(threads), kind, threads);
  }

  const Grid& grid_;
  SystemSolver<T> solver_;
};

template <class T>
void define_solver(nb::module_& m, const char* name, nb::class_<BoundGrid>& grid) {
  grid.def("nested_start", &py_nested_start<T>, "weight"_a.noconvert(), "weighted"_a.noconvert(),
           "smoothness"_a, "x"_a.noconvert(), "threads"_a);
  nb::class_<PySolver<T>>(m, name)
      .def(nb::init<const BoundGrid&, const std::string&, int>(), "grid"_a, "preconditioner"_a,
           "threads"_a, nb::keep_alive<1, 2>())
      .def("solve", &PySolver<T>::solve, "weight"_a.noconvert(), "weighted"_a.noconvert(),
           "x"_a.noconvert(), "scale"_a, "fill"_a, "smoothness"_a, "least_steps"_a, "most_steps"_a,
           "tolerance"_a, "of_movement"_a, "callback"_a.none())
      .def("with_data", &PySolver<T>::with_data, "out"_a.noconvert());
}

}  // namespace bilateral
