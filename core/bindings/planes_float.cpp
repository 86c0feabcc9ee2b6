// Bind the planar model of a grid, and its float part. Each precision has its own translation unit.
#include "bindings/planes.hpp"
#include "bindings/subjects.hpp"

namespace bilateral {

nb::class_<BoundPlanes> bind_planes_float(nb::module_& m) {
  auto planes = nb::class_<BoundPlanes>(m, "Planes", "The planar model of a grid.");
  planes.def(nb::init<nb::object, const std::vector<double>&, int>(), "grid"_a, "cells_per_pixel"_a,
             "threads"_a);
  define_planes<float>(m, planes, "PlaneSolver32");
  return planes;
}

}  // namespace bilateral
