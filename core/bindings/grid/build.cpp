// Bind the construction of grids, and the change between two references.
#include "grid/build.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/grid/bound_grid.hpp"
#include "bindings/grid/built_grid.hpp"
#include "bindings/grid/feature_map.hpp"
#include "bindings/subjects.hpp"
#include "filters/frame_change.hpp"

namespace bilateral {

namespace {

template <class T>
BuiltGrid bound_build_grid(const Input<T>& pixels, const std::vector<std::vector<double>>& matrix,
                           const std::vector<double>& offset, const std::vector<double>& sigmas,
                           std::optional<double> nominal_max,
                           const std::vector<double>& sigma_space, double edge_guard,
                           const std::array<double, 3>& blur, double lowest_eigenvalue,
                           double level_stiffness, double faint_epsilons, int threads) {
  const std::size_t space = sigma_space.size();
  require((space == 2 || space == 3) && pixels.ndim() == space + 1 &&
              pixels.shape(space) == sigmas.size(),
          "pixels must be H x W x C or T x H x W x C, as the sigmas say");
  const std::size_t frames = space == 3 ? pixels.shape(0) : 1;
  const Reference<T> reference{pixels.data(),
                               frames,
                               pixels.shape(space - 2),
                               pixels.shape(space - 1),
                               sigmas.size(),
                               feature_map(matrix, offset, sigmas),
                               nominal_max};
  require(reference.frames * reference.height * reference.width > 0, "there must be a pixel");
  const SpaceSigmas space_sigmas{space, sigma_space[space - 1], sigma_space[space - 2],
                                 sigma_space[0]};
  std::unique_ptr<BoundGrid> built;
  {
    const CoreCall call;
    const auto began = BoundGrid::Clock::now();
    Grid grid = build_grid(reference, space_sigmas, edge_guard, threads);
    grid.centre = blur[0];
    grid.space = blur[1];
    grid.range = blur[2];
    const LevelWeights weights{level_stiffness, faint_epsilons};
    built =
        std::make_unique<BoundGrid>(std::move(grid), began, lowest_eigenvalue, weights, threads);
  }
  return to_python(std::move(built));
}

template <class T>
void bound_frame_change(const Input<T>& before, const Input<T>& after,
                        const std::vector<float>& scale, const Output<float>& weight, int threads) {
  require(before.size() == after.size() && after.size() == weight.size() * scale.size(),
          "sizes do not match");
  const CoreCall call;
  frame_change(before.data(), after.data(), weight.size(), scale, weight.data(), threads);
}

template <class T>
void define_build(nb::module_& m) {
  m.def("build_grid", &bound_build_grid<T>, "pixels"_a.noconvert(), "matrix"_a, "offset"_a,
        "sigmas"_a, "nominal_max"_a.none(), "sigma_space"_a, "edge_guard"_a, "blur"_a,
        "lowest_eigenvalue"_a, "level_stiffness"_a, "faint_epsilons"_a, "threads"_a,
        "Build and bistochastize a grid. Returns the grid, its number of vertices and its mass.");
  m.def("frame_change", &bound_frame_change<T>, "before"_a.noconvert(), "after"_a.noconvert(),
        "scale"_a, "weight"_a.noconvert(), "threads"_a,
        "Write a weight per pixel: 1 for equal values, 0 from a change of 3 / scale on.");
}

}  // namespace

void bind_build(nb::module_& m) {
  define_build<std::uint8_t>(m);
  define_build<std::uint16_t>(m);
  define_build<float>(m);
  define_build<double>(m);
}

}  // namespace bilateral
