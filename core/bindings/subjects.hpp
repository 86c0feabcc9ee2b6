// Declare the subjects of the module. Each has one function and one translation unit, so that they
// compile in parallel.
#pragma once

#include "bindings/arrays.hpp"
#include "bindings/grid/bound_grid.hpp"

namespace bilateral {

class BoundPlanes;

nb::class_<BoundGrid> bind_grid(nb::module_& m);
void bind_build(nb::module_& m);
void bind_state(nb::module_& m, nb::class_<BoundGrid>& grid);
void bind_block(nb::module_& m);
void bind_solver_float(nb::module_& m, nb::class_<BoundGrid>& grid);
void bind_solver_double(nb::module_& m, nb::class_<BoundGrid>& grid);
nb::class_<BoundPlanes> bind_planes_float(nb::module_& m);
void bind_planes_double(nb::module_& m, nb::class_<BoundPlanes>& planes);
void bind_robust(nb::module_& m);
void bind_lowrank(nb::module_& m);
void bind_domain_transform(nb::module_& m);
void bind_median(nb::module_& m);
void bind_color_cells(nb::module_& m);
void bind_polish(nb::module_& m);
void bind_labels(nb::module_& m);
void bind_stereo(nb::module_& m);
void bind_defocus(nb::module_& m);
void bind_video(nb::module_& m);
void bind_depth(nb::module_& m);
void bind_points(nb::module_& m);

}  // namespace bilateral
