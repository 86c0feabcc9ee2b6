"""Colorization using optimization: Levin, Lischinski and Weiss, SIGGRAPH 2004.

The chroma of an unpainted pixel is the weighted mean of its eight neighbours'. The weights fall
with the difference of luma, relative to its local deviation. Strokes keep their chroma exactly.
The linear system is solved directly, as the authors do for still images.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix
from scipy.sparse.linalg import splu

Array = NDArray[Any]

_OFFSETS = [(y, x) for y in range(3) for x in range(3) if (y, x) != (1, 1)]
# The constants of the authors' program: fraction of the variance, least weight, least variance.
_PART_OF_VARIANCE = 0.6
_LEAST_WEIGHT = 0.01
_LEAST_VARIANCE = 2e-6


def propagate(luma: Array, chroma: Array, painted: Array) -> Array:
    """Spread the strokes' chroma, (H, W, K), where `painted`, (H, W), along luma from 0 to 1."""
    weights, neighbours = _affinities(luma)
    pixel = np.arange(luma.size)
    used = (neighbours >= 0) & ~painted.reshape(-1, 1)
    rows = np.broadcast_to(pixel[:, np.newaxis], used.shape)[used]
    A = csc_matrix(
        (
            np.concatenate([np.ones(luma.size), -weights[used]]),
            (np.concatenate([pixel, rows]), np.concatenate([pixel, neighbours[used]])),
        ),
        shape=(luma.size, luma.size),
    )
    b = np.where(painted[..., np.newaxis], chroma, 0).reshape(luma.size, -1)
    # Every row is diagonally dominant and needs no pivoting, which would take minutes.
    factors = splu(
        A, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0, options={"SymmetricMode": True}
    )
    solution: Array = factors.solve(b)
    return solution.reshape(chroma.shape)


def _affinities(luma: Array) -> tuple[Array, Array]:
    """Weights of the eight neighbours, which sum to 1, and their indices, -1 outside."""
    height, width = luma.shape
    padded = np.pad(luma.astype(np.float64), 1, constant_values=np.nan)
    numbers = np.pad(np.arange(luma.size).reshape(luma.shape), 1, constant_values=-1)
    window = [(slice(y, y + height), slice(x, x + width)) for y, x in _OFFSETS]
    near = np.stack([padded[part].ravel() for part in window], axis=1)
    neighbours = np.stack([numbers[part].ravel() for part in window], axis=1)
    centre = luma.astype(np.float64).reshape(-1, 1)
    variance = np.nanvar(np.hstack([near, centre]), axis=1)
    squares = np.square(near - centre)
    least = np.nanmin(squares, axis=1) / -np.log(_LEAST_WEIGHT)
    scale = np.maximum(np.maximum(_PART_OF_VARIANCE * variance, least), _LEAST_VARIANCE)
    weights = np.nan_to_num(np.exp(-squares / scale[:, np.newaxis]))
    return weights / weights.sum(axis=1, keepdims=True), neighbours
