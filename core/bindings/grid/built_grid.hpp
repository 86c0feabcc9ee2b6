// BuiltGrid: a new grid as the bindings return it, with the numbers that Python needs.
#pragma once

#include <cstddef>
#include <memory>
#include <tuple>

#include "bindings/arrays.hpp"
#include "bindings/grid/bound_grid.hpp"

namespace bilateral {

using Mass = nb::ndarray<nb::numpy, const float, nb::ndim<1>>;
using BuiltGrid = std::tuple<nb::typed<nb::object, BoundGrid>, std::size_t, Mass>;

// Hands a grid to Python: the grid, its number of vertices and its mass.
inline BuiltGrid to_python(std::unique_ptr<BoundGrid> built) {
  const Buffer<float>& mass = built->grid().mass;
  const nb::object owner = nb::cast(built.release(), nb::rv_policy::take_ownership);
  return {owner, mass.size(), Mass(mass.data(), {mass.size()}, owner)};
}

}  // namespace bilateral
