"""Find the vertices of blocks of an image, and join them into one grid."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral import _core
from bilateral.backends.cpu.grid import Grid, PixelError
from bilateral.backends.cpu.solve import Observation, Samples, bounds
from bilateral.threads import get_num_threads

Array = NDArray[Any]
CoreBlock = _core.Block


class BlockState(NamedTuple):
    """A block as plain arrays: about 1 byte per pixel and 4 bytes per vertex."""

    key_bits: list[int]
    """Bits of each feature in a key."""
    key_low: list[int]
    """The cell that a field of 0 stands for, per feature."""
    x_cell: list[int]
    """Cell of each column of pixels."""
    y_cell: list[int]
    last_rank: Array
    """Number of vertices of each tile, minus 1, by rows of tiles."""
    rank: Array
    """Number of each pixel's vertex within its tile."""
    keys: Array
    """Features of each vertex."""


def cell_starts(length: int, sigma: float, edge_guard: float) -> list[int]:
    """Return the first pixel of each cell of an axis, and the length."""
    return _core.cell_starts(length, sigma, edge_guard)


def build_block(
    pixels: Array,
    position: tuple[int, int],
    shape: tuple[int, int],
    matrix: NDArray[np.float64],
    offset: NDArray[np.float64],
    sigmas: Sequence[float],
    highest: float,
    sigma_xy: float,
    *,
    edge_guard: float,
) -> CoreBlock:
    """Find the vertices of an (h, w, C) block of whole tiles at a position of an image.

    The other arguments are those of `build_grid`.
    """
    try:
        return _core.build_block(
            pixels,
            *position,
            *shape,
            matrix.tolist(),
            offset.tolist(),
            list(sigmas),
            highest,
            sigma_xy,
            edge_guard,
            get_num_threads(),
        )
    except ValueError as error:
        raise PixelError(str(error)) from None


def block_state(block: CoreBlock) -> BlockState:
    """Return a block as plain arrays."""
    return BlockState(*block.state(get_num_threads()))


def block_from_state(state: BlockState) -> CoreBlock:
    """Build a block from its state."""
    return _core.block_from_state(*state, get_num_threads())


def block_mass(block: CoreBlock) -> Array:
    """Return the number of pixels of each vertex, in the smallest dtype."""
    mass = block.mass
    return mass.astype(np.min_scalar_type(int(mass.max())))


def splat_block(block: CoreBlock, target: Array, confidence: Array | None) -> Observation:
    """Splat the (h, w, K) target of a block with its confidence; the sums are float64."""
    weight = np.empty(block.n_vertices)
    weighted = np.empty((block.n_vertices, target.shape[-1]))
    known, low, high, invalid = block.splat_target(
        target, confidence, weight, weighted, get_num_threads()
    )
    return Observation(weight, weighted, known, *bounds(low, high), invalid)


def block_vertex_means(block: CoreBlock, pixels: Array) -> Array:
    """Return the mean of (h, w, K) pixels at each vertex."""
    sums = np.empty((block.n_vertices, pixels.shape[-1]), pixels.dtype)
    block.splat(pixels, sums, get_num_threads())
    means: Array = sums / block.mass.astype(pixels.dtype)[:, np.newaxis]
    return means


def slice_block(block: CoreBlock, vertices: Array, shape: tuple[int, int]) -> Array:
    """Give each pixel of a block the value of its vertex: (n, K) to (h, w, K)."""
    out = np.empty((*shape, vertices.shape[1]), vertices.dtype)
    block.slice(np.ascontiguousarray(vertices), out, get_num_threads())
    return out


def block_samples(block: CoreBlock, target: Array) -> Samples:
    """Collect the known pixels of a block, as `samples` does for a grid."""
    kind = _core.Samples32 if target.dtype == np.float32 else _core.Samples64
    return kind(block, target, get_num_threads())


def repack_keys(
    keys: Array, bits: list[int], low: list[int], new_bits: list[int], new_low: list[int]
) -> Array:
    """Return keys with fields of other sizes, which count from other lowest cells."""
    return _core.repack_keys(keys, bits, low, new_bits, new_low)


def join_blocks(
    counts: NDArray[np.uint32],
    keys: Array,
    mass: NDArray[np.float32],
    shape: tuple[int, int],
    sigma_xy: float,
    key_bits: list[int],
    *,
    blur: tuple[float, float, float],
    edge_guard: float,
    lowest_eigenvalue: float,
    level_stiffness: float,
    faint_epsilons: float,
) -> Grid:
    """Build the grid of an image from the vertices of its tiles. It has no pixels.

    `counts` has the number of vertices of each tile; the other arguments are those of `build_grid`.
    """
    return Grid(
        *_core.join_blocks(
            counts,
            keys,
            mass,
            *shape,
            sigma_xy,
            edge_guard,
            key_bits,
            blur,
            lowest_eigenvalue,
            level_stiffness,
            faint_epsilons,
            get_num_threads(),
        )
    )
