"""Put the tasks of a solve together: build all blocks, solve, slice all blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask.delayed import Delayed, delayed

from bilateral.dask import tasks
from bilateral.dask.inputs import Cut


class BlockTasks(NamedTuple):
    """The tasks of one block."""

    place: tuple[int, int]
    """Row and column of the block among all blocks."""
    shape: tuple[int, int]
    block: Delayed
    extent: Delayed
    vertices: Delayed
    sums: Delayed
    target: Delayed


def build_all(
    cut: Cut, channels: Sequence[int | None] = (None,), *, robust: bool = False
) -> list[BlockTasks]:
    """Build the blocks of all chunks."""
    references, targets = _parts(cut.reference), _parts(cut.target)
    confidences = None if cut.confidence is None else _parts(cut.confidence)
    starts = None if cut.warm_start is None else _parts(cut.warm_start)
    build = delayed(tasks.build, pure=True, nout=4)
    built = []
    for place, position, shape in cut.places():
        confidence = None if confidences is None else confidences[place]
        block, extent, vertices, sums = build(
            references[place],
            targets[place],
            confidence,
            position,
            cut.options,
            list(channels),
            robust,
            None if starts is None else starts[place],
        )
        built.append(BlockTasks(place, shape, block, extent, vertices, sums, targets[place]))
    return built


def slice_all(cut: Cut, built: Sequence[BlockTasks], solution: Delayed, *, as_solved: bool) -> Any:
    """Return the Dask array of a solution, in the dtype of the result or `as_solved`."""
    gather, slice_ = delayed(tasks.gather, pure=True), delayed(tasks.slice_, pure=True)
    n_axes, channels = cut.target.ndim, cut.target.shape[2:]
    dtype = None if as_solved else cut.target.dtype
    rows: list[list[Any]] = [[] for _ in cut.chunks[0]]
    for task in built:
        vertices = gather(solution, task.extent)
        pixels = slice_(task.block, vertices, dtype, n_axes, cut.options)
        shape = (*task.shape, *channels)
        result = np.dtype(np.float32) if as_solved else cut.dtype
        rows[task.place[0]].append(da.from_delayed(pixels, shape, dtype=result))
    return da.concatenate([da.concatenate(row, axis=1) for row in rows], axis=0)


def _parts(array: Any) -> Any:
    """Return the chunks of an array along y and x."""
    parts = array.to_delayed()
    return parts.reshape(parts.shape[:2])
