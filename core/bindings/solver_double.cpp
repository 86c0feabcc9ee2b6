// Bind the solver of double systems. Each precision compiles by itself, since a solver is the
// largest part of the module.
#include "bindings/solver.hpp"
#include "bindings/subjects.hpp"

namespace bilateral {

void bind_solver_double(nb::module_& m, nb::class_<BoundGrid>& grid) {
  define_solver<double>(m, "Solver64", grid);
}

}  // namespace bilateral
