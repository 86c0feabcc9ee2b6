"""The tasks of a solve: build and splat a block, join and solve, slice a block.

Tasks of blocks use one thread, because many run side by side. The solve uses all threads of its
worker. No task changes its inputs, so that a lost task can run again.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral.info import SolveInfo
from bilateral.numerics import blocks
from bilateral.numerics.pcg import Callback
from bilateral.threads import single_threaded

Array = NDArray[Any]
Position = tuple[int, int]

_log = logging.getLogger("bilateral.dask")


class Extent(NamedTuple):
    """The pixels of a block.

    Its own task returns it, for tasks that take a block's part of what the solving worker holds.
    Dask spreads tasks that depend on one result only over all workers, each of which would get the
    whole result first. With a second dependency, they stay where the larger one lies.
    """

    position: Position
    shape: tuple[int, int]


class Built(NamedTuple):
    """The parts of a block: its pixels stay on the worker, the rest goes to the solve."""

    block: blocks.Block
    extent: Extent
    vertices: blocks.BlockVertices
    sums: list[blocks.BlockSums]
    """One for all channels, or one for each."""


class Solution(NamedTuple):
    """The values of all vertices, and where each block finds its own."""

    tiles: blocks.TileIndex
    vertices: Array
    info: SolveInfo


def build(
    reference: Array,
    target: Array,
    confidence: Array | None,
    position: Position,
    options: blocks.BlockOptions,
    channels: Sequence[int | None] = (None,),
    robust: bool = False,
    warm_start: Array | None = None,
) -> Built:
    """Find the vertices of a block and sum its target over them."""
    with single_threaded():
        block, vertices = blocks.build_block(reference, position, options)
        sums = [
            blocks.splat_block(
                block, target, confidence, options, channel, robust=robust, warm_start=warm_start
            )
            for channel in channels
        ]
    return Built(block, Extent(position, block.shape), vertices, sums)


def join(vertices: list[blocks.BlockVertices], options: blocks.BlockOptions) -> blocks.Joined:
    """Join the vertices of all blocks."""
    return blocks.join(options.layout, options.grid, vertices)


def announce(joined: blocks.Joined, channels: int) -> None:
    """Log the memory that the solve is about to take."""
    n = joined.index.n_vertices
    megabytes = n * (blocks.BYTES_PER_VERTEX + 40 * (channels - 1)) // 1_000_000
    _log.info("solving for %d vertices: up to %d MB of memory on this worker", n, megabytes)


def solve(
    vertices: list[blocks.BlockVertices],
    sums: list[list[blocks.BlockSums]],
    options: blocks.BlockOptions,
    smoothness: float,
    rank_tolerance: float | None,
    callback: Callback | None,
) -> Solution:
    """Join all blocks and solve: one task on one worker."""
    joined = join(vertices, options)
    parts = [part[0] for part in sums]
    announce(joined, parts[0].sums.weighted.shape[1])
    x, info = blocks.solve_joined(
        joined, parts, smoothness, options.solve, rank_tolerance, callback
    )
    return Solution(joined.index, x, info)


def gather(solution: Solution, extent: Extent) -> Array:
    """Take the values of a block's vertices from the solution."""
    return solution.tiles.gather(solution.vertices, *extent)


def slice_(
    block: blocks.Block,
    vertices: Array,
    dtype: np.dtype[Any] | None,
    n_axes: int,
    options: blocks.BlockOptions,
) -> Array:
    """Give the pixels of a block their values; without a dtype, in that of the solve."""
    if dtype is None:
        dtype, options = vertices.dtype, replace(options, dtype=None)
    with single_threaded():
        return blocks.slice_block(block, vertices, dtype, n_axes, options)
