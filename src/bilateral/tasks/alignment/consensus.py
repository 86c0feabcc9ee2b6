"""Find outliers among residuals: points that differ from the median of their surroundings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.tasks.alignment.line_fit import NEGLIGIBLE, ROUNDING, biweight, weighted_median

Array = NDArray[Any]

_FEWEST = 4
"""Points whose median tells what is right around them."""
_FAR_WEIGHT = 0.3
"""Weight in the median of points far from the global fit: where they are many and agree, the fit is
wrong there; where they are few, they are outliers."""
_FAR = 4.0
_CUT = 6.0
"""Errors beyond this many standard deviations are outliers."""
_EDGE_ERROR, _MOST_SIGMAS = 0.015, 4.0
"""Least standard deviation, as a part of the value: correct points at edges, where the relative map
is a little off, have larger errors than others. It is at most this many times the actual one, so
that exact points stay exact."""
_FEW = 50
"""With so many points, the least standard deviation is twice as large: fewer points cannot tell
outliers from what a network gets wrong."""


def trust(error: Array, values: Array, sigma: float) -> Array:
    """Return weights from 0 to 1 of points with these errors and values."""
    sigma = max(sigma, ROUNDING * float(np.median(np.abs(values))))
    least = _EDGE_ERROR * (1 + _FEW / len(values)) * np.abs(values)
    return biweight(error, np.clip(least, sigma, _MOST_SIGMAS * sigma), _CUT)


def agreement(residual: Array, values: Array, weights: Array, cells: Array, sigma: float) -> Array:
    """Return a weight from 0 to 1 per point: how well it agrees with its surroundings.

    Parameters
    ----------
    residual, values, weights : (N,) array
        Errors of the global fit, metric values in its unit, and confidences.
    cells : (N, D) array of int
        Cell of each point in the grid.
    sigma : float
        Standard deviation of the errors of the global fit.
    """
    votes = weights * np.where(np.abs(residual) > _FAR * sigma, _FAR_WEIGHT, 1.0)
    error = np.full(len(residual), np.inf)  # least over the levels
    finest = np.full(len(residual), np.nan)
    level = cells - cells.min(axis=0)
    while True:
        key = np.ravel_multi_index(tuple(level.T), tuple(level.max(axis=0) + 1))
        _, cell, count = np.unique(key, return_inverse=True, return_counts=True)
        enough = count[cell] >= min(_FEWEST, len(residual))
        here = np.abs(residual - _medians(residual, votes, cell, len(count))[cell])
        error = np.where(enough, np.minimum(error, here), error)
        finest = np.where(enough & np.isnan(finest), here, finest)
        if not np.isnan(finest).any():
            break
        level = level // 2
    spread = 1.4826 * weighted_median(finest, votes)
    return trust(error, values, max(spread, NEGLIGIBLE * float(np.median(np.abs(values)))))


def _medians(values: Array, weights: Array, cell: Array, cells: int) -> Array:
    """Return the weighted median of each cell."""
    order = np.lexsort((values, cell))
    ordered, reached = cell[order], np.cumsum(weights[order])
    first = np.searchsorted(ordered, np.arange(cells))
    last = np.searchsorted(ordered, np.arange(cells), side="right") - 1
    before = np.concatenate([[0.0], reached])[first]
    middle = np.searchsorted(reached, 0.5 * (before + reached[last]))
    medians: Array = values[order[np.clip(middle, first, last)]]
    return medians
