// Bind the planar model of a grid, and its float part. Each precision has its own translation unit.
#include "bindings/planes/planes.hpp"
#include "bindings/subjects.hpp"

namespace bilateral {

nb::class_<BoundPlanes> bind_planes_float(nb::module_& m) {
  auto planes = nb::class_<BoundPlanes>(m, "Planes", "The planar model of a grid.");
  planes
      .def(nb::init<nb::object, const std::vector<double>&, int>(), "grid"_a, "cells_per_pixel"_a,
           "threads"_a)
      .def(
          "centres",
          [](const BoundPlanes& self, const Output<double>& out) {
            self.with_centres([&](const auto& centres) {
              require(out.size() == centres.position.size(), "out does not match the grid");
              std::copy_n(centres.position.data(), out.size(), out.data());
            });
          },
          "out"_a.noconvert(), "Write the centre of each vertex: x, y and t, in cells.");
  define_planes<float>(m, planes, "PlaneSolver32");
  return planes;
}

}  // namespace bilateral
