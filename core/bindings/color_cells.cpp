// Bind the cells of 8-bit colours.
#include "filters/color_cells.hpp"

#include <nanobind/stl/array.h>

#include <array>
#include <cstdint>

#include "bindings/arrays.hpp"
#include "bindings/subjects.hpp"

namespace bilateral {

namespace {

void bound_color_cells(const Input<std::uint8_t>& image,
                       const std::array<std::array<float, 3>, 3>& weights,
                       const std::array<float, 3>& shift, const std::array<float, 3>& margin,
                       const Input<std::uint8_t>& gray, const Output<std::uint8_t>& cells,
                       const Output<bool>& near) {
  require(image.ndim() == 3 && image.shape(2) == 3, "image must be H x W x 3");
  require(cells.size() == image.size() && near.size() * 3 == image.size() && gray.size() == 256 * 3,
          "sizes do not match");
  const CoreCall call;
  color_cells(image.data(), near.size(), {weights, shift, margin, gray.data()}, cells.data(),
              near.data());
}

}  // namespace

void bind_color_cells(nb::module_& m) {
  m.def("color_cells", &bound_color_cells, "image"_a.noconvert(), "weights"_a, "shift"_a,
        "margin"_a, "gray"_a.noconvert(), "cells"_a.noconvert(), "near"_a.noconvert(),
        "Write the cells of 8-bit colours, and whether a colour is near the border of a cell.");
}

}  // namespace bilateral
