// Bind the double part of the planar model.
#include "bindings/planes/planes.hpp"
#include "bindings/subjects.hpp"

namespace bilateral {

void bind_planes_double(nb::module_& m, nb::class_<BoundPlanes>& planes) {
  define_planes<double>(m, planes, "PlaneSolver64");
}

}  // namespace bilateral
