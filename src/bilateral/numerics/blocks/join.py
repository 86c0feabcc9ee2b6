"""Join the vertices of all blocks into the grid of the image, and their sums into one system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bilateral import validation
from bilateral.backends import cpu
from bilateral.grid import BilateralGrid, grid_of_blocks
from bilateral.numerics import policy, system
from bilateral.numerics.blocks.block import BlockSums, BlockVertices
from bilateral.numerics.blocks.layout import Layout
from bilateral.numerics.options import GridOptions

Array = NDArray[Any]
T = TypeVar("T")

_FLOAT32_LARGE = 1e30
"""As in `validation.weights`: beyond it, the solve in memory uses float64 confidences."""


class TileIndex:
    """The place of each block's vertices among all vertices.

    Parameters
    ----------
    layout : Layout
    counts : (rows, columns) array
        Number of vertices of each tile.
    """

    def __init__(self, layout: Layout, counts: NDArray[np.uint32]) -> None:
        self.layout = layout
        self.counts = counts

    def __reduce__(self) -> tuple[Any, ...]:
        return TileIndex, (self.layout, self.counts)

    @cached_property
    def _first(self) -> NDArray[np.int64]:
        """First vertex of each tile, and the end."""
        first = np.zeros(self.counts.size + 1, np.int64)
        np.cumsum(self.counts.ravel(), out=first[1:])
        return first

    @property
    def n_vertices(self) -> int:
        """Number of vertices."""
        return int(self._first[-1])

    def _runs(self, position: tuple[int, int], shape: tuple[int, int]) -> list[slice]:
        """Return the runs of a block's vertices, one for each row of tiles."""
        rows, columns = self.layout.rectangle(position, shape)
        width, first = self.layout.tiles[1], self._first
        if columns == slice(0, width):
            return [slice(int(first[rows.start * width]), int(first[rows.stop * width]))]
        begin = np.arange(rows.start, rows.stop) * width
        ends = zip(first[begin + columns.start], first[begin + columns.stop], strict=True)
        return [slice(int(a), int(b)) for a, b in ends]

    def gather(self, vertices: Array, position: tuple[int, int], shape: tuple[int, int]) -> Array:
        """Return the rows of an (n_vertices, ...) array that belong to a block, as a copy."""
        return np.concatenate([vertices[run] for run in self._runs(position, shape)])

    def scatter(
        self, values: Array, position: tuple[int, int], shape: tuple[int, int], out: Array
    ) -> None:
        """Write the rows of a block to an (n_vertices, ...) array."""
        at = 0
        for run in self._runs(position, shape):
            size = run.stop - run.start
            out[run] = values[at : at + size]
            at += size


class Joined:
    """The grid of an image whose pixels are in blocks. It can be pickled.

    Parameters
    ----------
    index : TileIndex
    blur : (centre, space, range)
        Weights of B-bar.
    key_bits : list of int
    keys, mass : arrays
        Features and number of pixels of each vertex, in the order of the grid.
    """

    def __init__(
        self,
        index: TileIndex,
        blur: tuple[float, float, float],
        key_bits: list[int],
        keys: Array,
        mass: Array,
    ) -> None:
        self.index = index
        self._arguments = (index, blur, key_bits, keys, mass)

    def __reduce__(self) -> tuple[Any, ...]:
        return Joined, self._arguments

    def forget_vertices(self) -> None:
        """Build the grid, and release the arrays that it was built from: it has its own."""
        index, blur, key_bits, keys, mass = self._arguments
        if self.grid.n_vertices > 0:  # the first use of `grid` builds it
            self._arguments = (index, blur, key_bits, keys[:0].copy(), mass[:0].copy())

    @cached_property
    def grid(self) -> BilateralGrid:
        """The grid, with edges and bistochastization but without pixels."""
        index, blur, key_bits, keys, mass = self._arguments
        layout = index.layout
        # As in `BilateralGrid`: only the ratios of the weights count.
        unit = max(blur)
        core = cpu.join_blocks(
            index.counts.ravel(),
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
    index = TileIndex(layout, counts)
    is_wide, n = sum(bits) > 31, index.n_vertices
    keys = np.empty((n, 2), np.uint64) if is_wide else np.empty(n, np.int32)
    mass = np.empty(n, np.result_type(*{block.mass.dtype for block in blocks}))
    for block in blocks:
        block_keys = block.keys
        if (block.key_bits, block.key_low) != (bits, low):
            block_keys = cpu.repack_keys(block_keys, block.key_bits, block.key_low, bits, low)
        index.scatter(block_keys, block.position, block.shape, keys)
        index.scatter(block.mass, block.position, block.shape, mass)
    return Joined(index, options.blur, bits, keys, mass)


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
    weight = np.empty(joined.index.n_vertices, dtype)
    weighted = np.empty((joined.index.n_vertices, channels), dtype)
    tiny = np.finfo(dtype).tiny
    for block in blocks:
        sums = block.sums
        with np.errstate(over="ignore", under="ignore"):
            counts = sums.weight >= tiny
            joined.index.scatter(
                np.where(counts, sums.weight, 0), block.position, block.shape, weight
            )
            part = np.where(counts[:, np.newaxis], sums.weighted, 0)
            joined.index.scatter(part, block.position, block.shape, weighted)
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


def joined_starts(joined: Joined, blocks: Sequence[BlockSums]) -> Array | None:
    """Return the warm start of all vertices (n_vertices, K), if the blocks have one."""
    starts = [block.start for block in blocks if block.start is not None]
    if not starts:
        return None
    if len(starts) < len(blocks):
        raise RuntimeError("expected a warm start for every block, or for none")
    y = np.empty((joined.index.n_vertices, starts[0].shape[1]), starts[0].dtype)
    for block, start in zip(blocks, starts, strict=True):
        joined.index.scatter(start, block.position, block.shape, y)
    return y


def finite_range(blocks: Sequence[BlockSums]) -> tuple[Array, Array]:
    """Return the lowest and highest value of each channel over the finite pixels."""
    ranges = [block.finite for block in blocks if block.finite is not None]
    if len(ranges) < len(blocks):
        raise RuntimeError("finite_range needs the sums of splat_block(..., robust=True)")
    low, high = (np.stack(each) for each in zip(*ranges, strict=True))
    return low.min(axis=0), high.max(axis=0)


def _merge(
    function: Callable[[Any, Any], Any], blocks: Sequence[T], value: Callable[[T], Any]
) -> Any:
    result = value(blocks[0])
    for block in blocks[1:]:
        result = function(result, value(block))
    return result
