// Bind the class of solvers, and the solver of float systems. Each precision has its own
// translation unit, since the solvers are the largest part of the module.
#include "bindings/solver.hpp"
#include "bindings/subjects.hpp"

namespace bilateral {

void bind_solver_float(nb::module_& m, nb::class_<BoundGrid>& grid) {
  nb::class_<AnySolver>(m, "Solver", "Memory and matrices that the solves on one grid share.")
      .def("with_data", &AnySolver::with_data, "out"_a.noconvert(),
           "Write whether each vertex was connected to data in the last solve.");
  define_solver<float>(m, grid);
}

}  // namespace bilateral
