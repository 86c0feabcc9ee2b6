"""Find the vertices of one block, sum its target over them, and slice a solution to its pixels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bilateral import color, validation
from bilateral.backends import cpu
from bilateral.numerics import policy
from bilateral.numerics.blocks.layout import Layout
from bilateral.numerics.options import GridOptions, SolveOptions

Array = NDArray[Any]


@dataclass(frozen=True)
class BlockOptions:
    """Everything that the blocks of an image share."""

    layout: Layout
    grid: GridOptions
    solve: SolveOptions
    dtype: DTypeLike | None = None
    """Dtype of the result; None: the target's."""


class Block:
    """The vertices of a block and the vertex of each of its pixels.

    A pickled block takes about 1 byte per pixel and 4 bytes per vertex.
    """

    def __init__(
        self, position: tuple[int, int], shape: tuple[int, int], state: cpu.BlockState
    ) -> None:
        self.position = position
        self.shape = shape
        self.state = state

    def __reduce__(self) -> tuple[Any, ...]:
        return Block, (self.position, self.shape, self.state)

    @cached_property
    def core(self) -> cpu.CoreBlock:
        """The block of the core."""
        return cpu.block_from_state(self.state)

    @property
    def nbytes(self) -> int:
        """Size of its arrays in bytes."""
        return self.state.rank.nbytes + self.state.keys.nbytes + self.state.last_rank.nbytes


class BlockVertices(NamedTuple):
    """What a block contributes to the grid of the image."""

    position: tuple[int, int]
    shape: tuple[int, int]
    channels: int
    """Channels of the reference."""
    key_bits: list[int]
    key_low: list[int]
    last_rank: Array
    keys: Array
    mass: Array


class BlockSums(NamedTuple):
    """The sums of a block's target and confidence over its vertices, with their statistics."""

    position: tuple[int, int]
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    """Dtype of the target in the solve."""
    sums: cpu.Observation
    """Sums in float64; the weights are integers if there is no confidence."""
    finite: tuple[Array, Array] | None
    """Lowest and highest value of each channel over pixels that are finite in all channels; None
    if the sums are not those of a robust solve."""
    largest_confidence: float
    """Of confidences that are float64 while the target is float32; else 0."""
    start: Array | None = None
    """Mean of the warm start at each vertex."""


def build_block(
    reference: ArrayLike, position: tuple[int, int], options: BlockOptions
) -> tuple[Block, BlockVertices]:
    """Find the vertices of a block of the reference."""
    grid = options.grid
    with _named(position):
        image = validation.reference(reference, grid.reference_max)
        channels = image.pixels.shape[-1]
        shape = image.pixels.shape[0], image.pixels.shape[1]
        options.layout.rectangle(position, shape)
        matrix, offset = color.feature_map(channels, image.highest)
        sigmas = (grid.sigma_luma, grid.sigma_chroma, grid.sigma_chroma)[:channels]
        try:
            core = cpu.build_block(
                image.pixels,
                position,
                options.layout.shape,
                matrix,
                offset,
                sigmas,
                image.highest,
                grid.sigma_xy,
                edge_guard=policy.EDGE_GUARD,
            )
        except cpu.PixelError as error:
            validation.finite_values("reference", image.pixels)
            raise ValueError(f"reference: {error}") from None
    state = cpu.block_state(core)
    block = Block(position, shape, state)
    vars(block)["core"] = core  # saves the first use of `Block.core` its work
    vertices = BlockVertices(
        position,
        shape,
        channels,
        state.key_bits,
        state.key_low,
        state.last_rank,
        state.keys,
        cpu.block_mass(core),
    )
    return block, vertices


def block_target(
    block: Block,
    target: ArrayLike,
    confidence: ArrayLike | None,
    options: BlockOptions,
    channel: int | None,
) -> tuple[Array, Array | None, float]:
    """Check target and confidence of a block, and bring them to the dtype of the solve.

    Return the (h, w, K) values of all channels or of one, the confidence, and the largest
    confidence if it decides about the dtype in memory, else 0.
    """
    checked = validation.target(target, block.shape, options.dtype, options.solve.needs_float64)
    precise = validation.confidence(confidence, block.shape, np.dtype(np.float64))
    values = checked.values
    if channel is not None:
        values = np.ascontiguousarray(values[..., channel : channel + 1])
    if precise is None:
        return values, None, 0.0
    is_long = np.asarray(confidence).dtype.kind == "f" and np.asarray(confidence).itemsize > 4
    decides = is_long and values.dtype == np.float32
    largest = float(precise.max()) if decides else 0.0
    with np.errstate(over="ignore", under="ignore"):
        return values, precise.astype(values.dtype, copy=False), largest


def splat_block(
    block: Block,
    target: ArrayLike,
    confidence: ArrayLike | None,
    options: BlockOptions,
    channel: int | None = None,
    *,
    robust: bool = False,
    warm_start: ArrayLike | None = None,
) -> BlockSums:
    """Sum the target, or one channel of it, and the confidence of a block over its vertices.

    Parameters
    ----------
    block, target, confidence, options, channel
        As for `block_target`.
    robust : bool
        Add what only a robust solve needs, which takes time if there is a confidence.
    warm_start : array, optional
        An earlier solution in the target's shape, for all channels.
    """
    with _named(block.position):
        values, weights, largest = block_target(block, target, confidence, options, channel)
        sums = cpu.splat_block(block.core, values, weights)
        if np.isfinite(largest):  # else the confidence is too large for float32, and `join` says so
            validation.confidence_value(weights, sums.invalid)
        start = None
        if warm_start is not None:
            like = validation.target(
                target, block.shape, options.dtype, options.solve.needs_float64
            )
            start = cpu.block_vertex_means(block.core, validation.warm_start(warm_start, like))
    if weights is None:  # sums of ones: integers take less memory, and hold them exactly
        smallest = np.min_scalar_type(int(sums.weight.max()))
        sums = sums._replace(weight=sums.weight.astype(smallest))
    finite = _finite_range(values, weights, sums) if robust else None
    return BlockSums(block.position, block.shape, values.dtype, sums, finite, largest, start)


def _finite_range(
    values: Array, weights: Array | None, sums: cpu.Observation
) -> tuple[Array, Array]:
    """Return the range of each channel over pixels that are finite in all channels."""
    if weights is None:  # these are the pixels with data
        return sums.low, sums.high
    known = np.isfinite(values).all(axis=-1, keepdims=True)
    low = np.min(values, axis=(0, 1), where=known, initial=np.inf)
    high = np.max(values, axis=(0, 1), where=known, initial=-np.inf)
    return low + 0.0, high + 0.0


def slice_block(
    block: Block, vertices: Array, target_dtype: np.dtype[Any], n_axes: int, options: BlockOptions
) -> Array:
    """Give each pixel of a block the value of its vertex, in the dtype and shape of the target.

    Parameters
    ----------
    block : Block
    vertices : (n, K) array
        Solution at the block's vertices.
    target_dtype : dtype
    n_axes : int
        Number of axes of the target, 2 or 3.
    options : BlockOptions
    """
    pixels = cpu.slice_block(block.core, vertices, block.shape)
    result = target_dtype if options.dtype is None else validation.result_dtype(options.dtype)
    return validation.as_dtype(pixels[..., 0] if n_axes == 2 else pixels, result)


@contextmanager
def _named(position: tuple[int, int]) -> Iterator[None]:
    """Add the position of the block to the message of an error, which counts from the block."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if position != (0, 0):
            where = f"Positions count from the block at row {position[0]}, column {position[1]}."
            error.args = (f"{error} {where}",)
        raise
