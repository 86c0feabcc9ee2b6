// Bind blocks of an image: their vertices and sums, and the grid of all blocks.
#include "grid/block.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/grid/bound_block.hpp"
#include "bindings/grid/bound_stats.hpp"
#include "bindings/grid/built_grid.hpp"
#include "bindings/grid/feature_map.hpp"
#include "bindings/grid/state_arrays.hpp"
#include "bindings/subjects.hpp"
#include "grid/splat.hpp"

namespace bilateral {

namespace {

using Integers = std::vector<std::int64_t>;

template <class T>
BoundBlock* bound_build_block(const Input<T>& pixels, std::size_t y, std::size_t x,
                              std::size_t height, std::size_t width,
                              const std::vector<std::vector<double>>& matrix,
                              const std::vector<double>& offset, const std::vector<double>& sigmas,
                              std::optional<double> nominal_max, double sigma_xy, double edge_guard,
                              int threads) {
  require(pixels.ndim() == 3 && pixels.shape(2) == sigmas.size(), "pixels must be H x W x C");
  const PixelSpan rows{y, pixels.shape(0), height}, columns{x, pixels.shape(1), width};
  require(rows.length > 0 && columns.length > 0 && rows.length <= height &&
              y <= height - rows.length && columns.length <= width && x <= width - columns.length,
          "the block must lie within the image");
  const Reference<T> reference{pixels.data(), 1,
                               rows.length,   columns.length,
                               sigmas.size(), feature_map(matrix, offset, sigmas),
                               nominal_max};
  const CoreCall call;
  return new BoundBlock{
      build_block(reference, rows, columns, {2, sigma_xy, sigma_xy}, edge_guard, threads)};
}

using BlockState =
    std::tuple<std::vector<int>, Integers, Integers, Integers, AnyArray, AnyArray, AnyArray>;

BlockState bound_state(const BoundBlock& self, int threads) {
  GridState state;
  {
    const nb::gil_scoped_release release;
    state = state_of(self.grid, threads);
  }
  const std::array<std::int64_t, max_channels>& low = self.grid.layout.low;
  auto [last, pixel] = std::visit(
      [](auto& ranks) {
        return std::tuple(to_array(std::move(ranks.last)), to_array(std::move(ranks.pixel)));
      },
      state.ranks);
  AnyArray keys = std::visit([](auto& each) { return to_array(std::move(each)); }, state.keys);
  Integers key_low(low.begin(), low.begin() + std::ptrdiff_t(state.key_bits.size()));
  return {state.key_bits, std::move(key_low), state.x_cell, state.y_cell, last, pixel, keys};
}

BoundBlock* block_from_state(const std::vector<int>& key_bits, const Integers& key_low,
                             const Integers& x_cell, const Integers& y_cell,
                             const AnyInput& last_rank, const AnyInput& rank, const AnyInput& keys,
                             int threads) {
  require(key_low.size() == key_bits.size() && key_low.size() <= max_channels,
          "there must be one lowest cell per feature");
  GridState state{2, {}, key_bits, x_cell, y_cell, {0}, to_ranks(last_rank, rank), to_keys(keys)};
  const CoreCall call;
  auto block = std::make_unique<BoundBlock>(BoundBlock{block_of(std::move(state), threads)});
  std::copy(key_low.begin(), key_low.end(), block->grid.layout.low.begin());
  return block.release();
}

template <class T>
BoundStats bound_splat_target(const BoundBlock& self, const Input<T>& target,
                              const std::optional<Input<T>>& confidence,
                              const Output<double>& weight, const Output<double>& weighted,
                              int threads) {
  const std::size_t channels = channels_over(target, self.grid.pixels());
  require(!confidence || confidence->size() == self.grid.pixels(), "confidence does not match");
  require(weight.size() == self.grid.vertices && weighted.size() == self.grid.vertices * channels,
          "outputs do not match the block");
  const CoreCall call;
  return bound_stats(splat_target(self.grid, target.data(), data_or_null(confidence), channels,
                                  weight.data(), weighted.data(), threads));
}

template <class T>
void bound_splat(const BoundBlock& self, const Input<T>& pixels, const Output<T>& out,
                 int threads) {
  const std::size_t channels = channels_over(pixels, self.grid.pixels());
  require(out.size() == channels * self.grid.vertices, "out does not match the block");
  const CoreCall call;
  splat(self.grid, pixels.data(), channels, out.data(), threads);
}

template <class T>
void bound_slice(const BoundBlock& self, const Input<T>& vertices, const Output<T>& out,
                 int threads) {
  const std::size_t channels = channels_over(vertices, self.grid.vertices);
  require(out.size() == channels * self.grid.pixels(), "out does not match the block");
  const CoreCall call;
  slice(self.grid, vertices.data(), channels, out.data(), threads);
}

template <class T>
void define_operators(nb::class_<BoundBlock>& block) {
  block
      .def("splat", &bound_splat<T>, "pixels"_a.noconvert(), "out"_a.noconvert(), "threads"_a,
           "Write S pixels.")
      .def("splat_target", &bound_splat_target<T>, "target"_a.noconvert(),
           "confidence"_a.noconvert().none(), "weight"_a.noconvert(), "weighted"_a.noconvert(),
           "threads"_a, "Write S c and S (c t) in float64. Returns the same as Grid.splat_target.")
      .def("slice", &bound_slice<T>, "vertices"_a.noconvert(), "out"_a.noconvert(), "threads"_a,
           "Write S^T vertices.");
}

template <class T>
void define_build(nb::module_& m) {
  m.def("build_block", &bound_build_block<T>, "pixels"_a.noconvert(), "y"_a, "x"_a, "height"_a,
        "width"_a, "matrix"_a, "offset"_a, "sigmas"_a, "nominal_max"_a.none(), "sigma_xy"_a,
        "edge_guard"_a, "threads"_a, "Find the vertices of a block of whole tiles at (y, x).");
}

KeyLayout layout_with_low(const std::vector<int>& bits, const Integers& low) {
  KeyLayout layout = detail::layout_of(bits, most_key_bits);
  require(low.size() == bits.size(), "there must be one lowest cell per feature");
  std::copy(low.begin(), low.end(), layout.low.begin());
  return layout;
}

AnyArray bound_repack_keys(const AnyInput& keys, const std::vector<int>& bits, const Integers& low,
                           const std::vector<int>& new_bits, const Integers& new_low) {
  require(bits.size() == new_bits.size(), "both layouts must have the same features");
  const KeyLayout from = layout_with_low(bits, low), to = layout_with_low(new_bits, new_low);
  return std::visit(
      [&]<class From>(const Buffer<From>& old) {
        require(from.total_bits() <= detail::most_bits<From>, "the fields must fit into a key");
        const auto repack = [&]<class To>(To) {
          Buffer<To> out(old.size());
          repack_keys(old.data(), old.size(), from, to, out.data());
          return to_array(std::move(out));
        };
        return to.total_bits() <= 31 ? repack(NarrowKey{}) : repack(WideKey{});
      },
      to_keys(keys));
}

BuiltGrid bound_join_blocks(const Input<std::uint32_t>& counts, const AnyInput& keys,
                            const Input<float>& mass, std::size_t height, std::size_t width,
                            double sigma_xy, double edge_guard, const std::vector<int>& key_bits,
                            const std::array<double, 3>& blur, double lowest_eigenvalue,
                            double level_stiffness, double faint_epsilons, int threads) {
  require(height > 0 && width > 0, "there must be a pixel");
  JoinedVertices vertices{Buffer<std::uint32_t>(counts.size()), to_keys(keys),
                          Buffer<float>(mass.size())};
  std::copy_n(counts.data(), counts.size(), vertices.counts.data());
  std::copy_n(mass.data(), mass.size(), vertices.mass.data());
  std::unique_ptr<BoundGrid> built;
  {
    const CoreCall call;
    const auto began = BoundGrid::Clock::now();
    Grid grid = join_blocks(std::move(vertices), height, width, {2, sigma_xy, sigma_xy}, edge_guard,
                            key_bits, blur, threads);
    const LevelWeights weights{level_stiffness, faint_epsilons};
    built =
        std::make_unique<BoundGrid>(std::move(grid), began, lowest_eigenvalue, weights, threads);
  }
  return to_python(std::move(built));
}

std::vector<std::size_t> bound_cell_starts(std::size_t length, double sigma, double edge_guard) {
  return Axis::of_pixels({0, length, length}, sigma, edge_guard).start;
}

}  // namespace

void bind_block(nb::module_& m) {
  nb::class_<BoundBlock> block(m, "Block", "The vertices of a rectangle of whole tiles.");
  block.def_prop_ro("n_vertices", [](const BoundBlock& self) { return self.grid.vertices; })
      .def_prop_ro(
          "mass",
          [](nb::handle_t<BoundBlock> self) {
            const Buffer<float>& mass = nb::cast<const BoundBlock&>(self).grid.mass;
            return Mass(mass.data(), {mass.size()}, self);
          },
          "Number of pixels of each vertex.")
      .def("state", &bound_state, "threads"_a,
           nb::sig("def state(self, threads: int) -> tuple[list[int], list[int], list[int], "
                   "list[int], " BILATERAL_ARRAY ", " BILATERAL_ARRAY ", " BILATERAL_ARRAY "]"),
           "Return the arguments of block_from_state.");
  define_operators<float>(block);
  define_operators<double>(block);
  define_build<std::uint8_t>(m);
  define_build<std::uint16_t>(m);
  define_build<float>(m);
  define_build<double>(m);
  m.def("block_from_state", &block_from_state, "key_bits"_a, "key_low"_a, "x_cell"_a, "y_cell"_a,
        "last_rank"_a, "rank"_a, "keys"_a, "threads"_a,
        nb::sig("def block_from_state(key_bits: collections.abc.Sequence[int], "
                "key_low: collections.abc.Sequence[int], x_cell: collections.abc.Sequence[int], "
                "y_cell: collections.abc.Sequence[int], last_rank: " BILATERAL_ARRAY
                ", rank: " BILATERAL_ARRAY ", keys: " BILATERAL_ARRAY ", threads: int) -> Block"),
        "Build a block from its state; raise ValueError if the state is damaged.");
  m.def("repack_keys", &bound_repack_keys, "keys"_a, "bits"_a, "low"_a, "new_bits"_a, "new_low"_a,
        nb::sig("def repack_keys(keys: " BILATERAL_ARRAY ", bits: collections.abc.Sequence[int], "
                "low: collections.abc.Sequence[int], new_bits: collections.abc.Sequence[int], "
                "new_low: collections.abc.Sequence[int]) -> " BILATERAL_ARRAY),
        "Return keys with fields of other sizes and other lowest cells.");
  m.def("join_blocks", &bound_join_blocks, "counts"_a.noconvert(), "keys"_a, "mass"_a.noconvert(),
        "height"_a, "width"_a, "sigma_xy"_a, "edge_guard"_a, "key_bits"_a, "blur"_a,
        "lowest_eigenvalue"_a, "level_stiffness"_a, "faint_epsilons"_a, "threads"_a,
        nb::sig("def join_blocks(counts: numpy.typing.NDArray[numpy.uint32], keys: " BILATERAL_ARRAY
                ", mass: numpy.typing.NDArray[numpy.float32], height: int, width: int, "
                "sigma_xy: float, edge_guard: float, key_bits: collections.abc.Sequence[int], "
                "blur: collections.abc.Sequence[float], lowest_eigenvalue: float, "
                "level_stiffness: float, faint_epsilons: float, threads: int) -> "
                "tuple[Grid, int, numpy.typing.NDArray[numpy.float32]]"),
        "Build the grid of an image from the vertices of its tiles. It has no pixels.");
  m.def("cell_starts", &bound_cell_starts, "length"_a, "sigma"_a, "edge_guard"_a,
        "Return the first pixel of each cell of an axis, and the length.");
}

}  // namespace bilateral
