// Bind the losses and the reweighting of iteratively reweighted least squares.
#include "solve/robust.hpp"

#include <nanobind/stl/vector.h>

#include <cstddef>

#include "bindings/arrays.hpp"
#include "bindings/grid/bound_block.hpp"
#include "bindings/grid/bound_grid.hpp"
#include "bindings/subjects.hpp"
#include "solve/samples.hpp"

namespace bilateral {

namespace {

template <class T>
Samples<T>* make_samples(const BoundGrid& grid, const Input<T>& target, int threads) {
  const std::size_t channels = channels_over(target, grid.pixel_grid().pixels());
  const CoreCall call;
  return new Samples<T>(grid.pixel_grid(), target.data(), channels, threads);
}

template <class T>
Samples<T>* make_block_samples(const BoundBlock& block, const Input<T>& target, int threads) {
  const std::size_t channels = channels_over(target, block.grid.pixels());
  const CoreCall call;
  return new Samples<T>(block.grid, target.data(), channels, threads);
}

template <class T>
void bound_splat_robust(const Samples<T>& self, const Loss& loss, const Input<T>& y,
                        const Output<T>& weight, const Output<T>& weighted, int threads) {
  const std::size_t vertices = self.grid().vertices, channels = self.channels();
  require(weight.size() == vertices && weighted.size() == vertices * channels &&
              y.size() == weighted.size(),
          "arrays do not match the grid");
  const CoreCall call;
  splat_robust(self, loss, y.data(), weight.data(), weighted.data(), threads);
}

template <class T>
void define_samples(nb::module_& m, const char* name) {
  nb::class_<Samples<T>>(m, name, "The known pixels of a target, in the order of a robust splat.")
      .def(nb::new_(&make_samples<T>), "grid"_a, "target"_a.noconvert(), "threads"_a,
           nb::keep_alive<0, 1>(), "Collect the known pixels of a target.")
      .def(nb::new_(&make_block_samples<T>), "block"_a, "target"_a.noconvert(), "threads"_a,
           nb::keep_alive<0, 1>(), "Collect the known pixels of a block.")
      .def_prop_ro("known", &Samples<T>::known, "Number of known pixels.")
      .def_prop_ro("size", &Samples<T>::size, "Largest magnitude of each channel.")
      .def("splat", &bound_splat_robust<T>, "loss"_a, "y"_a.noconvert(), "weight"_a.noconvert(),
           "weighted"_a.noconvert(), "threads"_a,
           "Write S c and S (c t) with the weights c of a loss.");
}

void define_loss(nb::module_& m) {
  nb::class_<Loss>(m, "Loss", "The weight rho'(e) / e of a robust loss, as a function of e^2.")
      .def_static(
          "power",
          [](double gain, double rate, double exponent) {
            return Loss{Loss::Shape::power, gain, rate, exponent};
          },
          "gain"_a, "rate"_a, "exponent"_a, "gain (1 + rate e^2)^exponent")
      .def_static(
          "exponential",
          [](double gain, double rate) { return Loss{Loss::Shape::exponential, gain, rate, 0}; },
          "gain"_a, "rate"_a, "gain exp(-rate e^2)")
      .def_static(
          "huber", [](double gain, double rate) { return Loss{Loss::Shape::huber, gain, rate, 0}; },
          "gain"_a, "rate"_a, "gain min(1, 1 / sqrt(rate e^2))");
}

}  // namespace

void bind_robust(nb::module_& m) {
  define_loss(m);
  define_samples<float>(m, "Samples32");
  define_samples<double>(m, "Samples64");
}

}  // namespace bilateral
