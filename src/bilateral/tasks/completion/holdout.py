"""Hold some of the known points out, to measure how well candidates predict them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_SIDE_PER_DISTANCE = 2.5
"""Side of a block relative to the mean distance of pixels to points. Points in the middle of a
block are then about as far from the rest as most pixels are, on scan lines and in clusters too."""
_BLOCK_PART, _SINGLE_PART = 6, 8
"""One block in so many is held out, and one in so many of the other points: single points are about
as far from the rest as pixels are between random points."""
_SEED = 20
_ROWS = 256
"""Distances are averaged over about so many rows."""
_BINS = 8
"""Held-out points and pixels are compared in so many ranges of distances."""
_MOST_SHARE = 10.0
"""Largest share of a point, relative to the mean."""


def held_out(known: NDArray[np.bool_], nearest: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Choose whole blocks of known points, and some of the others.

    Parameters
    ----------
    known : (H, W) bool array
    nearest : (H, W) uint32 array
        Index of the known pixel nearest to each pixel.
    """
    y, x = np.nonzero(known)
    side = max(1, round(_SIDE_PER_DISTANCE * float(pixel_distances(known, nearest).mean())))
    across = x.max() // side + 1
    _, block = np.unique(y // side * across + x // side, return_inverse=True)
    count = int(block.max()) + 1
    random = np.random.default_rng(_SEED)
    chosen = np.zeros(count, bool)
    chosen[random.permutation(count)[: count // _BLOCK_PART]] = True
    taken = chosen[block]
    others = np.flatnonzero(~taken)
    taken[random.permutation(others)[: others.size // _SINGLE_PART]] = True
    held = np.zeros(known.shape, bool)
    held[y, x] = taken
    return held


def pixel_distances(known: NDArray[np.bool_], nearest: NDArray[np.uint32]) -> Array:
    """Return the distances of some pixels among the known ones to their nearest known pixels."""
    y, x = np.nonzero(known)
    rows = np.arange(y.min(), y.max() + 1, max(1, (y.max() + 1 - y.min()) // _ROWS))
    columns = np.arange(x.min(), x.max() + 1)
    at = nearest[rows[:, np.newaxis], columns]
    row, column = np.divmod(at.astype(np.int32), np.int32(known.shape[1]))
    distance: Array = np.hypot(row - rows[:, np.newaxis], column - columns).ravel()
    return distance


def distances(held: NDArray[np.bool_], nearest: NDArray[np.uint32]) -> Array:
    """Return the distances of held-out points to the nearest of the others."""
    y, x = np.nonzero(held)
    row, column = np.divmod(nearest[held].astype(np.int64), held.shape[1])
    return np.hypot(row - y, column - x)


def shares(points: Array, pixels: Array) -> Array:
    """Return how many pixels each held-out point stands for, relative to the mean.

    A point stands for the pixels that are about as far from known points.

    Parameters
    ----------
    points : (N,) array
        Distances of the held-out points to the nearest of the others.
    pixels : (M,) array
        Distances of pixels to the nearest known points.
    """
    if points.size == 0:
        return points
    limits = np.unique(np.quantile(pixels, np.arange(1, _BINS) / _BINS))
    of_point = np.searchsorted(limits, points, side="right")
    of_pixel = np.searchsorted(limits, pixels, side="right")
    in_bin = np.bincount(of_point, minlength=limits.size + 1)
    filled = np.flatnonzero(in_bin)
    # The pixels of a bin without points count in the nearest bin that has some.
    bins = np.arange(limits.size + 1)
    stand_in = filled[np.argmin(np.abs(filled - bins[:, np.newaxis]), axis=1)]
    mass = np.bincount(stand_in[of_pixel], minlength=limits.size + 1) / pixels.size
    share = mass / np.maximum(in_bin / points.size, 1e-30)
    return np.asarray(np.minimum(share[of_point], _MOST_SHARE))
