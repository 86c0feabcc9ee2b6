// Bind the solver of float systems. Each precision compiles by itself, since a solver is the
// largest part of the module.
#include "bindings/solver.hpp"
#include "bindings/subjects.hpp"

namespace bilateral {

void bind_solver_float(nb::module_& m, nb::class_<BoundGrid>& grid) {
  define_solver<float>(m, "Solver32", grid);
}

}  // namespace bilateral
