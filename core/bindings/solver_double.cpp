// Bind the solver of double systems. Each precision has its own translation unit, since the solvers
// are the largest part of the module.
#include "bindings/solver.hpp"
#include "bindings/subjects.hpp"

namespace bilateral {

void bind_solver_double(nb::module_& m, nb::class_<BoundGrid>& grid) {
  define_solver<double>(m, grid);
}

}  // namespace bilateral
