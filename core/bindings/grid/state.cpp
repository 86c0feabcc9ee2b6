// Bind the state of a grid: plain arrays that build the same grid again.
#include "grid/state.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/grid/bound_grid.hpp"
#include "bindings/grid/built_grid.hpp"
#include "bindings/grid/state_arrays.hpp"
#include "bindings/subjects.hpp"

namespace bilateral {

namespace {

using Ranks = std::tuple<AnyArray, AnyArray>;
using Cells = std::vector<std::int64_t>;
using BoundState = std::tuple<std::size_t, std::array<double, 3>, std::vector<int>, AnyArray,
                              AnyArray, AnyArray, AnyArray, AnyArray, AnyArray>;

BoundState bound_state(const BoundGrid& self, int threads) {
  GridState state;
  {
    const nb::gil_scoped_release release;
    state = state_of(self.pixel_grid(), threads);
  }
  auto [last, pixel] = std::visit(
      [](auto& ranks) {
        return Ranks(to_array(std::move(ranks.last)), to_array(std::move(ranks.pixel)));
      },
      state.ranks);
  AnyArray keys = std::visit([](auto& each) { return to_array(std::move(each)); }, state.keys);
  return {state.space_dimensions,
          state.blur,
          state.key_bits,
          to_array(state.x_cell),
          to_array(state.y_cell),
          to_array(state.t_cell),
          last,
          pixel,
          keys};
}

BuiltGrid bound_from_state(std::size_t space_dimensions, const std::array<double, 3>& blur,
                           const std::vector<int>& key_bits, const Cells& x_cell,
                           const Cells& y_cell, const Cells& t_cell, const AnyInput& last_rank,
                           const AnyInput& rank, const AnyInput& keys, double lowest_eigenvalue,
                           double level_stiffness, double faint_epsilons, int threads) {
  GridState state{space_dimensions,          blur,         key_bits, x_cell, y_cell, t_cell,
                  to_ranks(last_rank, rank), to_keys(keys)};
  std::unique_ptr<BoundGrid> built;
  {
    const nb::gil_scoped_release release;
    const auto began = BoundGrid::Clock::now();
    Grid grid = grid_of(std::move(state), threads);
    const LevelWeights weights{level_stiffness, faint_epsilons};
    built =
        std::make_unique<BoundGrid>(std::move(grid), began, lowest_eigenvalue, weights, threads);
  }
  return to_python(std::move(built));
}

}  // namespace

void bind_state(nb::module_& m, nb::class_<BoundGrid>& grid) {
  grid.def(
      "state", &bound_state, "threads"_a,
      nb::sig("def state(self, threads: int) -> tuple[int, list[float], list[int], " BILATERAL_ARRAY
              ", " BILATERAL_ARRAY ", " BILATERAL_ARRAY ", " BILATERAL_ARRAY ", " BILATERAL_ARRAY
              ", " BILATERAL_ARRAY "]"),
      "Return the arguments of grid_from_state up to `keys`.");
  m.def("grid_from_state", &bound_from_state, "space_dimensions"_a, "blur"_a, "key_bits"_a,
        "x_cell"_a, "y_cell"_a, "t_cell"_a, "last_rank"_a, "rank"_a, "keys"_a,
        "lowest_eigenvalue"_a, "level_stiffness"_a, "faint_epsilons"_a, "threads"_a,
        nb::sig("def grid_from_state(space_dimensions: int, blur: collections.abc.Sequence[float], "
                "key_bits: collections.abc.Sequence[int], x_cell: collections.abc.Sequence[int], "
                "y_cell: collections.abc.Sequence[int], t_cell: collections.abc.Sequence[int], "
                "last_rank: " BILATERAL_ARRAY ", rank: " BILATERAL_ARRAY ", keys: " BILATERAL_ARRAY
                ", lowest_eigenvalue: float, level_stiffness: float, faint_epsilons: float, "
                "threads: int) -> tuple[Grid, int, numpy.typing.NDArray[numpy.float32]]"),
        "Build a grid from its state; raise ValueError if the state is damaged. Returns the grid, "
        "its number of vertices and its mass.");
}

}  // namespace bilateral
