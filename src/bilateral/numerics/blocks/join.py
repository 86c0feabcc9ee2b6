"""Join the vertices of all blocks into the grid of the image, and their sums into one system."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bilateral import validation
from bilateral.backends import cpu
from bilateral.grid import BilateralGrid, grid_of_blocks
from bilateral.numerics import policy, system
from bilateral.numerics.blocks.block import BlockSums, BlockVertices
from bilateral.numerics.blocks.layout import Layout, Rectangle
from bilateral.numerics.options import GridOptions

Array = NDArray[Any]
T = TypeVar("T")

_FLOAT32_LARGE = 1e30
"""As in `validation.weights`: beyond it, the solve in memory uses float64 confidences."""


class Joined:
    """The grid of an image whose pixels are in blocks. It can be pickled.

    Parameters
    ----------
    layout : Layout
    blur : (centre, space, range)
        Weights of B-bar.
    counts : (rows, columns) array
        Number of vertices of each tile.
    key_bits : list of int
    keys, mass : arrays
        Features and number of pixels of each vertex, in the order of the grid.
    """

    def __init__(
        self,
        layout: Layout,
        blur: tuple[float, float, float],
        counts: NDArray[np.uint32],
        key_bits: list[int],
        keys: Array,
        mass: Array,
    ) -> None:
        self.layout = layout
        self._arguments = (layout, blur, counts, key_bits, keys, mass)
        first = np.zeros(counts.size + 1, np.int64)
        np.cumsum(counts.ravel(), out=first[1:])
        self._first = first

    def __reduce__(self) -> tuple[Any, ...]:
        return Joined, self._arguments

    @property
    def n_vertices(self) -> int:
        """Number of vertices."""
        return int(self._first[-1])

    @cached_property
    def grid(self) -> BilateralGrid:
        """The grid, with edges and bistochastization but without pixels."""
        layout, blur, counts, key_bits, keys, mass = self._arguments
        # As in `BilateralGrid`: only the ratios of the weights count.
        unit = max(blur)
        core = cpu.join_blocks(
            counts.ravel(),
            keys,
            mass.astype(np.float32),
            layout.shape,
            layout.sigma_xy,
            key_bits,
            blur=(blur[0] / unit, blur[1] / unit, blur[2] / unit),
            edge_guard=policy.EDGE_GUARD,
            lowest_eigenvalue=policy.LOWEST_EIGENVALUE,
            level_stiffness=policy.LEVEL_STIFFNESS,
            faint_epsilons=policy.FAINT_EPSILONS,
        )
        return grid_of_blocks(core, layout.shape, unit)

    def gather(self, vertices: Array, position: tuple[int, int], shape: tuple[int, int]) -> Array:
        """Return the rows of an (n_vertices, ...) array that belong to a block, as a copy."""
        rectangle = self.layout.rectangle(position, shape)
        return np.concatenate([vertices[run] for run in runs(self._first, self.layout, rectangle)])

    def scatter(
        self, values: Array, position: tuple[int, int], shape: tuple[int, int], out: Array
    ) -> None:
        """Write the rows of a block to an (n_vertices, ...) array."""
        rectangle = self.layout.rectangle(position, shape)
        scatter(values, runs(self._first, self.layout, rectangle), out)


def runs(first: Array, layout: Layout, rectangle: Rectangle) -> Iterator[slice]:
    """Yield the runs of vertices of a rectangle of tiles, one for each row of tiles."""
    rows, columns = rectangle
    width = layout.tiles[1]
    if columns == slice(0, width):
        yield slice(int(first[rows.start * width]), int(first[rows.stop * width]))
        return
    for row in range(rows.start, rows.stop):
        at = row * width
        yield slice(int(first[at + columns.start]), int(first[at + columns.stop]))


def scatter(values: Array, runs: Iterable[slice], out: Array) -> None:
    """Write consecutive rows of `values` to runs of rows of `out`."""
    at = 0
    for run in runs:
        size = run.stop - run.start
        out[run] = values[at : at + size]
        at += size


def join(layout: Layout, options: GridOptions, blocks: Sequence[BlockVertices]) -> Joined:
    """Join the vertices of all blocks of an image, in any order."""
    if len({block.channels for block in blocks}) > 1:
        raise ValueError("reference: expected blocks with the same number of channels.")
    bits, low = _common_layout(blocks)
    counts = np.zeros(layout.tiles, np.uint32)
    for block in blocks:
        rectangle = layout.rectangle(block.position, block.shape)
        tiles = counts[rectangle]
        tiles[...] = block.last_rank.reshape(tiles.shape)
        tiles += 1
    first = np.zeros(counts.size + 1, np.int64)
    np.cumsum(counts.ravel(), out=first[1:])
    is_wide = sum(bits) > 31
    n = int(first[-1])
    keys = np.empty((n, 2), np.uint64) if is_wide else np.empty(n, np.int32)
    mass = np.empty(n, np.result_type(*{block.mass.dtype for block in blocks}))
    for block in blocks:
        rectangle = layout.rectangle(block.position, block.shape)
        block_keys = block.keys
        if (block.key_bits, block.key_low) != (bits, low):
            block_keys = cpu.repack_keys(block_keys, block.key_bits, block.key_low, bits, low)
        scatter(block_keys, runs(first, layout, rectangle), keys)
        scatter(block.mass, runs(first, layout, rectangle), mass)
    return Joined(layout, options.blur, counts, bits, keys, mass)


def _common_layout(blocks: Sequence[BlockVertices]) -> tuple[list[int], list[int]]:
    """Return the bits and the lowest cells of keys that hold the features of all blocks."""
    low = [min(cells) for cells in zip(*(block.key_low for block in blocks), strict=True)]
    # A field of b bits holds numbers up to 2**b - 2.
    highest = [
        max(cells)
        for cells in zip(
            *(
                [cell + 2**b - 2 for cell, b in zip(block.key_low, block.key_bits, strict=True)]
                for block in blocks
            ),
            strict=True,
        )
    ]
    return [(h - cell + 1).bit_length() for h, cell in zip(highest, low, strict=True)], low


def observe(joined: Joined, blocks: Sequence[BlockSums], smoothness: float) -> system.System:
    """Make the system of the sums of all blocks, as `system.observe` does in memory."""
    dtype = blocks[0].dtype
    if any(block.dtype != dtype for block in blocks):
        raise ValueError("target: expected blocks of one dtype.")
    largest = _merge(max, blocks, lambda block: block.largest_confidence)
    if largest > _FLOAT32_LARGE or 0 < largest < 1 / _FLOAT32_LARGE:
        raise ValueError(
            f"confidence: expected a largest value from 1e-30 to 1e30 in blocks, got {largest:g}. "
            f"Multiply confidence and smoothness by the same number."
        )
    known = sum(block.sums.known for block in blocks)
    low = _merge(np.minimum, blocks, lambda block: block.sums.low)
    high = _merge(np.maximum, blocks, lambda block: block.sums.high)
    return observed(joined, blocks, dtype, known, low, high, smoothness)


def observed(
    joined: Joined,
    blocks: Sequence[BlockSums],
    dtype: np.dtype[Any],
    known: int,
    low: Array,
    high: Array,
    smoothness: float,
) -> system.System:
    """Make a system in a dtype, or in float64 if the numbers need it."""
    if known == 0:
        return validation.some_data(None)
    channels = blocks[0].sums.weighted.shape[1]
    weight = np.empty(joined.n_vertices, dtype)
    weighted = np.empty((joined.n_vertices, channels), dtype)
    tiny = np.finfo(dtype).tiny
    for block in blocks:
        sums = block.sums
        with np.errstate(over="ignore", under="ignore"):
            counts = sums.weight >= tiny
            joined.scatter(np.where(counts, sums.weight, 0), block.position, block.shape, weight)
            part = np.where(counts[:, np.newaxis], sums.weighted, 0)
            joined.scatter(part, block.position, block.shape, weighted)
    result = system.of_sums(
        joined.grid, cpu.Observation(weight, weighted, known, low, high, None), smoothness
    )
    if result is not None:
        return result
    if dtype == np.float32:
        double = np.dtype(np.float64)
        return observed(joined, blocks, double, known, low, high, smoothness)
    raise ValueError(
        "target: expected values, confidences and a smoothness between 1e-100 and 1e100 in blocks, "
        "got others. Divide the target by its range, or solve in memory."
    )


def finite_range(blocks: Sequence[BlockSums]) -> tuple[Array, Array]:
    """Return the lowest and highest value of each channel over the finite pixels."""
    low = _merge(np.minimum, blocks, lambda block: block.finite[0])
    return low, _merge(np.maximum, blocks, lambda block: block.finite[1])


def _merge(
    function: Callable[[Any, Any], Any], blocks: Sequence[T], value: Callable[[T], Any]
) -> Any:
    result = value(blocks[0])
    for block in blocks[1:]:
        result = function(result, value(block))
    return result
