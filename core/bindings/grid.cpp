// Bind the grid and its linear operators: splat, slice, blur, the pyramid, probes.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bound_grid.hpp"
#include "bindings/subjects.hpp"
#include "grid/bistochastize.hpp"
#include "grid/build.hpp"
#include "grid/laplacian.hpp"
#include "grid/pyramid_transfer.hpp"
#include "grid/splat.hpp"
#include "solve/components.hpp"
#include "solve/probes.hpp"

namespace bilateral {

namespace {

template <class T>
void py_splat(const BoundGrid& self, const Input<T>& pixels, const Output<T>& out, int threads) {
  const std::size_t channels = channels_over(pixels, self.grid().pixels());
  require(out.size() == channels * self.grid().vertices, "out does not match the grid");
  const nb::gil_scoped_release release;
  splat(self.grid(), pixels.data(), channels, out.data(), threads);
}

template <class T>
void py_slice(const BoundGrid& self, const Input<T>& vertices, const Output<T>& out, int threads) {
  const std::size_t channels = channels_over(vertices, self.grid().vertices);
  require(out.size() == channels * self.grid().pixels(), "out does not match the grid");
  const nb::gil_scoped_release release;
  slice(self.grid(), vertices.data(), channels, out.data(), threads);
}

template <class T>
void py_blur(const BoundGrid& self, const Input<T>& vertices, const Output<T>& out, int threads) {
  const std::size_t channels = channels_over(vertices, self.grid().vertices);
  require(out.size() == vertices.size(), "out does not match the input");
  const nb::gil_scoped_release release;
  blur(self.grid(), vertices.data(), channels, out.data(), threads);
}

template <class T>
void py_slice_gradients(const BoundGrid& self, const Input<T>& z, const Input<T>& y,
                        const std::optional<Input<T>>& extra, const Input<T>& target,
                        const std::optional<Input<T>>& confidence,
                        const std::optional<Output<T>>& of_target,
                        const std::optional<Output<T>>& of_confidence, int threads) {
  const Grid& grid = self.grid();
  const std::size_t channels = channels_over(z, grid.vertices);
  require(y.size() == z.size() && (!extra || extra->size() == grid.vertices),
          "vertices do not match the grid");
  require(target.size() == channels * grid.pixels() &&
              (!confidence || confidence->size() == grid.pixels()) &&
              (!of_target || of_target->size() == target.size()) &&
              (!of_confidence || of_confidence->size() == grid.pixels()),
          "pixels do not match the grid");
  const auto data = [](const auto& array) { return array ? array->data() : nullptr; };
  const Gradients<T> gradients{z.data(),         y.data(),        data(extra),        target.data(),
                               data(confidence), data(of_target), data(of_confidence)};
  const nb::gil_scoped_release release;
  slice_gradients(grid, gradients, channels, threads);
}

template <class T>
double py_smoothness_product(const BoundGrid& self, const Input<T>& x, const Input<T>& y,
                             int threads) {
  const Grid& grid = self.grid();
  const std::size_t channels = channels_over(x, grid.vertices);
  require(y.size() == x.size(), "sizes do not match");
  const nb::gil_scoped_release release;
  return smoothness_product(grid, self.n<T>(threads), x.data(), y.data(), channels, threads);
}

template <class T>
void py_rms(const BoundGrid& self, const Input<T>& vertices, const Output<double>& out) {
  const std::size_t channels = channels_over(vertices, self.grid().vertices);
  require(out.size() == channels, "out does not match the input");
  pixel_rms(self.grid(), vertices.data(), channels, out.data());
}

template <class T>
nb::tuple py_splat_target(const BoundGrid& self, const Input<T>& target,
                          const std::optional<Input<T>>& confidence, const Output<T>& weight,
                          const Output<T>& weighted, int threads) {
  const Grid& grid = self.grid();
  const std::size_t channels = channels_over(target, grid.pixels());
  require(!confidence || confidence->size() == grid.pixels(), "confidence does not match");
  require(weight.size() == grid.vertices && weighted.size() == grid.vertices * channels,
          "outputs do not match the grid");
  Observed seen;
  {
    const nb::gil_scoped_release release;
    seen = splat_target(grid, target.data(), confidence ? confidence->data() : nullptr, channels,
                        weight.data(), weighted.data(), threads);
  }
  nb::object invalid = nb::none();
  if (seen.invalid != Observed::none) invalid = nb::int_(seen.invalid);
  return nb::make_tuple(seen.known, seen.confidence, seen.low, seen.high, invalid);
}

template <class T>
void py_start(const BoundGrid& self, const Input<T>& weight, const Input<T>& weighted, bool pyramid,
              const Output<T>& x, int threads) {
  const Grid& grid = self.grid();
  const std::size_t channels = channels_over(weighted, grid.vertices);
  require(weight.size() == grid.vertices && x.size() == weighted.size(), "sizes do not match");
  const nb::gil_scoped_release release;
  (pyramid ? pyramid_start<T> : flat_start<T>)(grid, weight.data(), weighted.data(), channels,
                                               x.data(), threads);
}

template <class T>
void py_push_pull(const BoundGrid& self, const Input<T>& vertices, const Output<T>& out,
                  int threads) {
  const std::size_t channels = channels_over(vertices, self.grid().vertices);
  require(out.size() == vertices.size(), "out does not match the input");
  const nb::gil_scoped_release release;
  push_pull_values(self.grid(), vertices.data(), channels, out.data(), threads);
}

template <class T>
void py_draw_probes(const BoundGrid& self, const Input<T>& weight, double smoothness,
                    std::uint64_t seed, const Output<T>& b, int threads) {
  const Grid& grid = self.grid();
  const std::size_t probes = channels_over(b, grid.vertices);
  require(weight.size() == grid.vertices && probes <= most_probes, "sizes do not match");
  const nb::gil_scoped_release release;
  draw_probes(grid, self.n<T>(threads), weight.data(), smoothness, seed, probes, b.data(), threads);
}

template <class T>
void py_with_data(const BoundGrid& self, const Input<T>& weight, const Output<bool>& out) {
  const Grid& grid = self.grid();
  require(weight.size() == grid.vertices && out.size() == grid.vertices, "sizes do not match");
  const nb::gil_scoped_release release;
  const std::vector<std::uint8_t> found = with_data(find_components(grid), weight.data());
  std::copy(found.begin(), found.end(), out.data());
}

template <class T>
void define_for(nb::class_<BoundGrid>& grid) {
  grid.def("splat", &py_splat<T>, "pixels"_a.noconvert(), "out"_a.noconvert(), "threads"_a)
      .def("slice", &py_slice<T>, "vertices"_a.noconvert(), "out"_a.noconvert(), "threads"_a)
      .def("blur", &py_blur<T>, "vertices"_a.noconvert(), "out"_a.noconvert(), "threads"_a)
      .def("slice_gradients", &py_slice_gradients<T>, "z"_a.noconvert(), "y"_a.noconvert(),
           "extra"_a.noconvert().none(), "target"_a.noconvert(), "confidence"_a.noconvert().none(),
           "of_target"_a.noconvert().none(), "of_confidence"_a.noconvert().none(), "threads"_a)
      .def("smoothness_product", &py_smoothness_product<T>, "x"_a.noconvert(), "y"_a.noconvert(),
           "threads"_a)
      .def("rms", &py_rms<T>, "vertices"_a.noconvert(), "out"_a.noconvert())
      .def("splat_target", &py_splat_target<T>, "target"_a.noconvert(),
           "confidence"_a.noconvert().none(), "weight"_a.noconvert(), "weighted"_a.noconvert(),
           "threads"_a)
      .def("start", &py_start<T>, "weight"_a.noconvert(), "weighted"_a.noconvert(), "pyramid"_a,
           "x"_a.noconvert(), "threads"_a)
      .def("push_pull", &py_push_pull<T>, "vertices"_a.noconvert(), "out"_a.noconvert(),
           "threads"_a)
      .def("draw_probes", &py_draw_probes<T>, "weight"_a.noconvert(), "smoothness"_a, "seed"_a,
           "b"_a.noconvert(), "threads"_a)
      .def("with_data", &py_with_data<T>, "weight"_a.noconvert(), "out"_a.noconvert());
}

}  // namespace

nb::class_<BoundGrid> bind_grid(nb::module_& m) {
  nb::class_<BoundGrid> grid(m, "Grid");
  grid.def_prop_ro("n_vertices", [](const BoundGrid& self) { return self.grid().vertices; })
      .def("coarsen", &BoundGrid::coarsen, "threads"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("bistochastize", &BoundGrid::balance, "centre"_a, "space"_a, "range"_a, "threads"_a,
           nb::call_guard<nb::gil_scoped_release>())
      .def(
          "mass",
          [](const BoundGrid& self) {
            const Buffer<float>& mass = self.grid().mass;
            return nb::ndarray<nb::numpy, const float>(mass.data(), {mass.size()});
          },
          nb::rv_policy::reference_internal)
      .def("coordinates", [](const BoundGrid& self) { return coordinates(self.grid()); });
  define_for<float>(grid);
  define_for<double>(grid);
  return grid;
}

}  // namespace bilateral
