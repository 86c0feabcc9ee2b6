// Define the Python module `bilateral._core`.
#include "bindings/planes/bound_planes.hpp"
#include "bindings/subjects.hpp"

NB_MODULE(_core, m) {
  using namespace bilateral;
  m.doc() = "The C++ core. Use it through `bilateral.backends.cpu`.";
  auto grid = bind_grid(m);
  bind_build(m);
  bind_state(m, grid);
  bind_block(m);
  bind_solver_float(m, grid);
  bind_solver_double(m, grid);
  auto planes = bind_planes_float(m);
  bind_planes_double(m, planes);
  bind_robust(m);
  bind_lowrank(m);
  bind_domain_transform(m);
  bind_median(m);
  bind_color_cells(m);
  bind_polish(m);
  bind_labels(m);
  bind_stereo(m);
  bind_defocus(m);
  bind_video(m);
  bind_depth(m);
  bind_points(m);
}
