// Bind the construction of grids, and the change between two references.
#include "grid/build.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bound_grid.hpp"
#include "bindings/subjects.hpp"
#include "filters/frame_change.hpp"

namespace bilateral {

namespace {

// Features are a matrix times the pixel's values, plus an offset; only three may be mixed.
FeatureMap feature_map(const std::vector<std::vector<double>>& matrix,
                       const std::vector<double>& offset, const std::vector<double>& sigma) {
  const std::size_t channels = sigma.size();
  require(channels <= max_channels && offset.size() == channels && matrix.size() == channels,
          "matrix, offset and sigma must agree");
  FeatureMap map;
  for (std::size_t k = 0; k < channels; ++k) {
    require(matrix[k].size() == channels, "matrix must be square");
    for (std::size_t j = 0; j < channels; ++j) {
      if (channels == 3) map.matrix[k][j] = matrix[k][j];
      map.mixed = map.mixed || (j != k && matrix[k][j] != 0);
    }
    map.gain[k] = matrix[k][k];
    map.offset[k] = offset[k];
    map.sigma[k] = sigma[k];
  }
  require(!map.mixed || channels == 3, "only three channels can be mixed");
  return map;
}

template <class T>
BoundGrid* make_grid(const Input<T>& pixels, const std::vector<std::vector<double>>& matrix,
                     const std::vector<double>& offset, const std::vector<double>& sigma,
                     std::optional<double> nominal_max, const std::vector<double>& sigma_space,
                     int threads) {
  const std::size_t space = sigma_space.size();
  require((space == 2 || space == 3) && pixels.ndim() == space + 1 &&
              pixels.shape(space) == sigma.size(),
          "pixels must be H x W x C or T x H x W x C, as the sigmas say");
  const std::size_t frames = space == 3 ? pixels.shape(0) : 1;
  const Reference<T> reference{pixels.data(),
                               frames,
                               pixels.shape(space - 2),
                               pixels.shape(space - 1),
                               sigma.size(),
                               feature_map(matrix, offset, sigma),
                               nominal_max};
  require(reference.frames * reference.height * reference.width > 0, "there must be a pixel");
  const SpaceSigmas sigmas{space, sigma_space[space - 1], sigma_space[space - 2], sigma_space[0]};
  const nb::gil_scoped_release release;
  return new BoundGrid(build_grid(reference, sigmas, threads));
}

template <class R>
void py_unchanged(const Input<R>& before, const Input<R>& after, const std::vector<float>& scale,
                  const Output<float>& weight, int threads) {
  require(before.size() == after.size() && after.size() == weight.size() * scale.size(),
          "sizes do not match");
  const nb::gil_scoped_release release;
  frame_change(before.data(), after.data(), weight.size(), scale, weight.data(), threads);
}

template <class T>
void define_build(nb::module_& m) {
  m.def("build_grid", &make_grid<T>, "pixels"_a.noconvert(), "matrix"_a, "offset"_a, "sigma"_a,
        "nominal_max"_a.none(), "sigma_space"_a, "threads"_a);
  m.def("unchanged", &py_unchanged<T>, "before"_a.noconvert(), "after"_a.noconvert(), "scale"_a,
        "weight"_a.noconvert(), "threads"_a);
}

}  // namespace

void bind_build(nb::module_& m) {
  define_build<std::uint8_t>(m);
  define_build<std::uint16_t>(m);
  define_build<float>(m);
  define_build<double>(m);
}

}  // namespace bilateral
