"""Tell feature points from others: they lie at edges and corners of the photograph.

Held-out feature points do not show how candidates fare on the surfaces between them, where
interpolation is hard to beat.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_REACH = 2
"""Pixels on each side within which colours are compared."""
_MOST = 4_000
"""So many points and pixels are compared."""
_SEED = 22


def edge_rank(photo: Array, known: NDArray[np.bool_]) -> float:
    """Return the mean rank of the contrast at known pixels among all: 0.5 at random, 1 at edges.

    Parameters
    ----------
    photo : (H, W, C) array
    known : (H, W) bool array
    """
    random = np.random.default_rng(_SEED)
    points = np.flatnonzero(known)
    points = random.choice(points, min(_MOST, points.size), replace=False)
    pixels = np.sort(_contrast(photo, random.integers(0, known.size, _MOST)))
    at_points = _contrast(photo, points)
    ranks = [np.searchsorted(pixels, at_points, side=side) for side in ("left", "right")]
    return float(np.mean(ranks)) / _MOST


def _contrast(photo: Array, at: Array) -> Array:
    """Return the range of the colours around pixels, summed over the channels."""
    height, width, _ = photo.shape
    y, x = np.divmod(at, width)
    steps = np.arange(-_REACH, _REACH + 1)
    rows = np.clip(y[:, np.newaxis] + steps, 0, height - 1)
    columns = np.clip(x[:, np.newaxis] + steps, 0, width - 1)
    around = photo[rows[:, :, np.newaxis], columns[:, np.newaxis, :]]
    highest, lowest = around.max(axis=(1, 2)), around.min(axis=(1, 2))
    return np.asarray((highest - lowest).sum(axis=1, dtype=np.float64))
