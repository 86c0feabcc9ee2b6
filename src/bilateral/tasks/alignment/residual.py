"""Solve for what a global scale and shift leave over, as smooth as the points ask for."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral.grid import BilateralGrid
from bilateral.solver import BilateralSolver
from bilateral.tasks.alignment.line_fit import (
    NEGLIGIBLE,
    ROUNDING,
    Line,
    least_squares,
    weighted_median,
)

Array = NDArray[Any]

SMOOTHNESSES = (0.003, 0.03, 0.3, 3.0, 30.0, 300.0)
FEW_SMOOTHNESSES = (0.03, 3.0)
"""Enough to tell outliers by the errors of the predictions."""
_FOLDS = 6
_CAP = 3.0
"""Errors count up to this many standard deviations, so that missed outliers do not decide."""
_STANDARD_ERRORS = 1.0
"""A rougher residual must be better than a smoother one by this many standard errors."""


class Points(NamedTuple):
    """Known pixels."""

    at: tuple[Array, ...]
    """Rows and columns."""
    x: Array
    """Relative values."""
    y: Array
    """Metric values in the unit of the fit."""
    weights: Array
    near: Array
    """Weights from 0 to 1 of the points in the global fit. Groups of points that contradict it
    belong to the residual alone."""
    tile: Array
    """Index of the grid's tile that holds the point; its points are left out together."""


class Choice(NamedTuple):
    """The smoothness that predicts left-out points best."""

    smoothness: float | None
    """None: the global fit alone."""
    predicted: Array
    """Value of each point, predicted from points of other tiles."""
    sigma: float
    """Standard deviation of the errors of the predictions."""
    tested: bool = True
    """Whether there were enough points to leave some out."""


def choose_smoothness(
    grid: BilateralGrid,
    points: Points,
    line: Line,
    smoothnesses: tuple[float, ...] = SMOOTHNESSES,
    folds: int = _FOLDS,
) -> Choice:
    """Cross-validate the smoothness of the residual, the global fit alone included.

    Parameters
    ----------
    grid : BilateralGrid
    points : Points
    line : Line
        The global fit.
    smoothnesses : floats
        From rough to smooth.
    folds : int
        Number of parts that are left out one after another.
    """
    tiles, tile = np.unique(points.tile, return_inverse=True)
    folds = min(folds, len(tiles))
    if folds < 3:
        return Choice(None, line(points.x), line.sigma, tested=False)
    fold = np.random.default_rng(0).permutation(np.arange(len(tiles)) % folds)[tile]
    predicted = np.empty((len(smoothnesses) + 1, len(points.y)))
    for k in range(folds):
        left_out = fold == k
        kept = np.where(left_out, 0.0, points.weights)
        fitted = refit(points, kept, line)
        predicted[-1, left_out] = fitted(points.x[left_out])
        for j, smoothness in enumerate(smoothnesses):
            r = solve_residual(grid, points, fitted, kept, smoothness)
            predicted[j, left_out] = fitted(points.x[left_out]) + r[points.at][left_out]
    error = np.abs(predicted - points.y)
    scales = [1.4826 * weighted_median(e, points.weights) for e in error]
    size = float(np.median(np.abs(points.y)))
    if error[-1].max(where=points.weights > 0, initial=0.0) <= ROUNDING * size:
        return Choice(None, predicted[-1], 0.0)
    sigma = max(min(scales), NEGLIGIBLE * size)
    loss = np.minimum(error / sigma, _CAP) ** 2
    per_tile = np.stack([_tile_means(row, points.weights, tile) for row in loss])
    best = int(np.argmin(per_tile.mean(axis=1)))
    worse = per_tile - per_tile[best]
    limit = _STANDARD_ERRORS * worse.std(axis=1, ddof=1) / np.sqrt(len(tiles))
    chosen = max(j for j in range(len(loss)) if worse[j].mean() <= limit[j])
    best_smoothness = smoothnesses[chosen] if chosen < len(smoothnesses) else None
    return Choice(best_smoothness, predicted[chosen], max(scales[chosen], NEGLIGIBLE * size))


def solve_residual(
    grid: BilateralGrid, points: Points, line: Line, weights: Array, smoothness: float
) -> Array:
    """Return the residual of a line at every pixel."""
    if not (weights > 0).any():
        return np.zeros(grid.shape, np.float32)
    target = np.full(grid.shape, np.nan, np.float32)
    confidence = np.zeros(grid.shape, np.float32)
    target[points.at] = points.y - line(points.x)
    confidence[points.at] = weights
    return BilateralSolver(grid, smoothness, model="planar").solve(target, confidence)


def refit(points: Points, weights: Array, line: Line) -> Line:
    """Fit a line again with other weights; one without a shift or without a scale stays."""
    if line.shift == 0 or line.scale == 0:
        return line
    refined = least_squares(points.x, points.y, weights * points.near)
    return line if refined is None else refined._replace(sigma=line.sigma)


def _tile_means(loss: Array, weights: Array, tile: Array) -> Array:
    total = np.bincount(tile, weights)
    return np.bincount(tile, weights * loss) / np.where(total > 0, total, 1.0)
