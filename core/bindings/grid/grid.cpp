// Bind the grid and its linear operators: splat, slice, blur, the paper's starts, probes.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/grid/bound_grid.hpp"
#include "bindings/grid/bound_stats.hpp"
#include "bindings/subjects.hpp"
#include "grid/bistochastize.hpp"
#include "grid/build.hpp"
#include "grid/laplacian.hpp"
#include "grid/pyramid_transfer.hpp"
#include "grid/splat.hpp"
#include "solve/components.hpp"
#include "solve/count_loose.hpp"
#include "solve/probes.hpp"

namespace bilateral {

namespace {

template <class T>
void bound_splat(const BoundGrid& self, const Input<T>& pixels, const Output<T>& out, int threads) {
  const std::size_t channels = channels_over(pixels, self.pixel_grid().pixels());
  require(out.size() == channels * self.pixel_grid().vertices, "out does not match the grid");
  const CoreCall call;
  splat(self.pixel_grid(), pixels.data(), channels, out.data(), threads);
}

template <class T>
void bound_slice(const BoundGrid& self, const Input<T>& vertices, const Output<T>& out,
                 int threads) {
  const std::size_t channels = channels_over(vertices, self.pixel_grid().vertices);
  require(out.size() == channels * self.pixel_grid().pixels(), "out does not match the grid");
  const CoreCall call;
  slice(self.pixel_grid(), vertices.data(), channels, out.data(), threads);
}

// A linear map from vertices to vertices.
template <class T, auto apply, bool needs_pyramid>
void bound_map(const BoundGrid& self, const Input<T>& vertices, const Output<T>& out, int threads) {
  const std::size_t channels = channels_over(vertices, self.grid().vertices);
  require(out.size() == vertices.size(), "out does not match the input");
  const CoreCall call;
  const Grid& grid = needs_pyramid ? self.with_pyramid(threads) : self.grid();
  apply(grid, vertices.data(), channels, out.data(), threads);
}

template <class T>
void bound_slice_gradients(const BoundGrid& self, const Input<T>& z, const Input<T>& y,
                           const std::optional<Input<T>>& extra, const Input<T>& target,
                           const std::optional<Input<T>>& confidence,
                           const std::optional<Output<T>>& of_target,
                           const std::optional<Output<T>>& of_confidence, int threads) {
  const Grid& grid = self.pixel_grid();
  const std::size_t channels = channels_over(z, grid.vertices);
  require(y.size() == z.size() && (!extra || extra->size() == grid.vertices),
          "vertices do not match the grid");
  require(target.size() == channels * grid.pixels() &&
              (!confidence || confidence->size() == grid.pixels()) &&
              (!of_target || of_target->size() == target.size()) &&
              (!of_confidence || of_confidence->size() == grid.pixels()),
          "pixels do not match the grid");
  const Gradients<T> gradients{z.data(),
                               y.data(),
                               data_or_null(extra),
                               target.data(),
                               data_or_null(confidence),
                               data_or_null(of_target),
                               data_or_null(of_confidence)};
  const CoreCall call;
  slice_gradients(grid, gradients, channels, threads);
}

template <class T>
double bound_smoothness_product(const BoundGrid& self, const Input<T>& x, const Input<T>& y,
                                int threads) {
  const Grid& grid = self.grid();
  const std::size_t channels = channels_over(x, grid.vertices);
  require(y.size() == x.size(), "sizes do not match");
  const CoreCall call;
  return smoothness_product(grid, self.n<T>(threads), x.data(), y.data(), channels, threads);
}

template <class T>
void bound_rms(const BoundGrid& self, const Input<T>& vertices, const Output<double>& out) {
  const std::size_t channels = channels_over(vertices, self.grid().vertices);
  require(out.size() == channels, "out does not match the input");
  pixel_rms(self.grid(), vertices.data(), channels, out.data());
}

template <class T>
BoundStats bound_splat_target(const BoundGrid& self, const Input<T>& target,
                              const std::optional<Input<T>>& confidence, const Output<T>& weight,
                              const Output<T>& weighted, int threads) {
  const Grid& grid = self.pixel_grid();
  const std::size_t channels = channels_over(target, grid.pixels());
  require(!confidence || confidence->size() == grid.pixels(), "confidence does not match");
  require(weight.size() == grid.vertices && weighted.size() == grid.vertices * channels,
          "outputs do not match the grid");
  const CoreCall call;
  const InputStats stats = splat_target(grid, target.data(), data_or_null(confidence), channels,
                                        weight.data(), weighted.data(), threads);
  return bound_stats(stats);
}

// Writes the paper's hierarchical start, or its flat start.
template <class T, bool flat>
void bound_start(const BoundGrid& self, const Input<T>& weight, const Input<T>& weighted,
                 const Output<T>& x, int threads) {
  const std::size_t vertices = self.grid().vertices, channels = channels_over(weighted, vertices);
  require(weight.size() == vertices && x.size() == weighted.size(), "sizes do not match");
  const CoreCall call;
  if (!flat || has_gaps(weight.data(), vertices))
    pyramid_start(self.with_pyramid(threads), weight.data(), weighted.data(), channels, x.data(),
                  threads);
  if (flat) means_of_vertices(weight.data(), weighted.data(), vertices, channels, x.data());
}

template <class T>
void bound_draw_probes(const BoundGrid& self, const Input<T>& weight, double smoothness,
                       std::uint64_t seed, const Output<T>& b, int threads) {
  const Grid& grid = self.grid();
  const std::size_t probes = channels_over(b, grid.vertices);
  require(weight.size() == grid.vertices && probes <= max_probes, "sizes do not match");
  const CoreCall call;
  draw_probes(grid, self.n<T>(threads), weight.data(), smoothness, seed, probes, b.data(), threads);
}

template <class T>
void bound_with_data(const BoundGrid& self, const Input<T>& weight, const Output<bool>& out) {
  const Grid& grid = self.grid();
  require(weight.size() == grid.vertices && out.size() == grid.vertices, "sizes do not match");
  const CoreCall call;
  const std::vector<std::uint8_t> connected = with_data(find_components(grid), weight.data());
  std::copy(connected.begin(), connected.end(), out.data());
}

template <class T>
double bound_count_loose(const BoundGrid& self, const Input<T>& weight, double least, int threads) {
  require(weight.size() == self.grid().vertices, "weight does not match the grid");
  const nb::gil_scoped_release release;
  return count_loose(self.grid(), weight.data(), least, threads);
}

std::tuple<double, double, double> build_seconds(const BoundGrid& self) {
  return std::tuple_cat(self.build_seconds(1));
}

template <class T>
void define_operators(nb::class_<BoundGrid>& grid) {
  grid.def("splat", &bound_splat<T>, "pixels"_a.noconvert(), "out"_a.noconvert(), "threads"_a,
           "Write S pixels.")
      .def("slice", &bound_slice<T>, "vertices"_a.noconvert(), "out"_a.noconvert(), "threads"_a,
           "Write S^T vertices.")
      .def("blur", &bound_map<T, &blur<T>, false>, "vertices"_a.noconvert(), "out"_a.noconvert(),
           "threads"_a, "Write B-bar vertices.")
      .def("push_pull", &bound_map<T, &push_pull_values<T>, true>, "vertices"_a.noconvert(),
           "out"_a.noconvert(), "threads"_a, "Write H vertices, the pyramid's sum of means.")
      .def("slice_gradients", &bound_slice_gradients<T>, "z"_a.noconvert(), "y"_a.noconvert(),
           "extra"_a.noconvert().none(), "target"_a.noconvert(), "confidence"_a.noconvert().none(),
           "of_target"_a.noconvert().none(), "of_confidence"_a.noconvert().none(), "threads"_a,
           "Write the gradients c z of the target and z (t - y) + extra of the confidence.")
      .def("smoothness_product", &bound_smoothness_product<T>, "x"_a.noconvert(), "y"_a.noconvert(),
           "threads"_a, "Return x^T (D_m - D_n B-bar D_n) y.")
      .def("rms", &bound_rms<T>, "vertices"_a.noconvert(), "out"_a.noconvert(),
           "Write the root mean square over the pixels of each channel.")
      .def(
          "splat_target", &bound_splat_target<T>, "target"_a.noconvert(),
          "confidence"_a.noconvert().none(), "weight"_a.noconvert(), "weighted"_a.noconvert(),
          "threads"_a,
          "Write S c and S (c t). Returns the number of known pixels, the lowest and highest value "
          "per channel, and the first pixel with an invalid confidence.")
      .def("pyramid_start", &bound_start<T, false>, "weight"_a.noconvert(),
           "weighted"_a.noconvert(), "x"_a.noconvert(), "threads"_a,
           "Write the paper's hierarchical start.")
      .def("flat_start", &bound_start<T, true>, "weight"_a.noconvert(), "weighted"_a.noconvert(),
           "x"_a.noconvert(), "threads"_a,
           "Write the mean of each vertex, or the hierarchical start where there is no data.")
      .def("draw_probes", &bound_draw_probes<T>, "weight"_a.noconvert(), "smoothness"_a, "seed"_a,
           "b"_a.noconvert(), "threads"_a, "Write random right-hand sides with the covariance A.")
      .def("with_data", &bound_with_data<T>, "weight"_a.noconvert(), "out"_a.noconvert(),
           "Write whether each vertex is connected to a vertex with a weight above 0.")
      .def("count_loose", &bound_count_loose<T>, "weight"_a.noconvert(), "least"_a, "threads"_a,
           "Return the number of pixels at vertices that have a weight below `least` per pixel, as "
           "all their neighbours do.");
}

}  // namespace

nb::class_<BoundGrid> bind_grid(nb::module_& m) {
  nb::class_<BoundGrid> grid(m, "Grid", "The simplified bilateral grid of a reference.");
  grid.def(
          "coordinates", [](const BoundGrid& self) { return coordinates(self.grid()); },
          "Return the cell of each vertex: x, y, t of a video or volume, then the features.")
      .def_prop_ro(
          "build_seconds", &build_seconds,
          "Seconds for vertices and edges, for the pyramid, and for the bistochastization.");
  define_operators<float>(grid);
  define_operators<double>(grid);
  return grid;
}

}  // namespace bilateral
