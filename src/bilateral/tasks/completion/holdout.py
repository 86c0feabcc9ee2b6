"""Hold some of the known points out, to measure how well candidates predict them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_SIDE_PER_DISTANCE = 2.5
"""Side of a block relative to the mean distance of pixels to points. Points in the middle of a
block are then about as far from the rest as most pixels are, on scan lines and in clusters too."""
_PART = 4
"""One block in so many is held out."""
_SEED = 20
_ROWS = 256
"""Distances are averaged over about so many rows."""
_MOST_AREA = 4.0
"""Largest area of a point, relative to the mean area."""


def held_out(known: NDArray[np.bool_], nearest: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Choose whole blocks of known points.

    Parameters
    ----------
    known : (H, W) bool array
    nearest : (H, W) uint32 array
        Index of the known pixel nearest to each pixel.
    """
    y, x = np.nonzero(known)
    box = slice(y.min(), y.max() + 1), slice(x.min(), x.max() + 1)
    side = max(1, round(_SIDE_PER_DISTANCE * _mean_distance(nearest, box)))
    across = x.max() // side + 1
    _, block = np.unique(y // side * across + x // side, return_inverse=True)
    count = int(block.max()) + 1
    chosen = np.zeros(count, bool)
    chosen[np.random.default_rng(_SEED).permutation(count)[: count // _PART]] = True
    held = np.zeros(known.shape, bool)
    held[y, x] = chosen[block]
    return held


def _mean_distance(nearest: NDArray[np.uint32], box: tuple[slice, slice]) -> float:
    """Average the distances of the pixels in a box to their nearest known pixels."""
    width = nearest.shape[1]
    step = max(1, (box[0].stop - box[0].start) // _ROWS)
    rows = np.arange(box[0].start, box[0].stop, step)
    columns = np.arange(box[1].start, box[1].stop)
    row, column = np.divmod(nearest[rows, box[1]].astype(np.int32), np.int32(width))
    return float(np.hypot(row - rows[:, np.newaxis], column - columns).mean())


def areas(held: NDArray[np.bool_], nearest: NDArray[np.uint32]) -> Array:
    """Count the pixels for which each held-out point is the nearest one.

    Points in clusters stand for fewer pixels than single ones.
    """
    area = np.bincount(nearest.ravel(), minlength=nearest.size)[np.flatnonzero(held)]
    return np.asarray(np.minimum(area, _MOST_AREA * area.sum() / max(area.size, 1)))
