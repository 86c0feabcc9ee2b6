"""Fit a scale and a shift robustly: least trimmed squares, then reweighted least squares."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_KEPT = 0.7
"""Weight of the points that must fit, as a part of all: up to 30 % may be outliers."""
_TRIMMED_SIGMA = 1.797
"""Standard deviation of normal errors by the RMS of the smallest 70 % of them."""
_CUT = 4.685
"""Errors beyond this many standard deviations have no weight (Tukey's biweight)."""
ROUNDING = 1e-6
"""Errors below this part of the values' size are rounding."""
NEGLIGIBLE = 1e-3
"""Errors below this part of the values decide nothing about outliers and smoothness."""
_MOST_POINTS, _MOST_PAIRS = 600, 800
_ENOUGH_POINTS = 20_000
"""More points do not make a line more precise."""
_STARTS, _STEPS, _ROUNDS = 10, 6, 20
_NARROW = 0.01
"""Points that span less than this part of the map's range say nothing about the scale."""


class Line(NamedTuple):
    """y = scale x + shift, with the standard deviation of the errors."""

    scale: float
    shift: float
    sigma: float = 0.0

    def __call__(self, x: Array) -> Array:
        """Evaluate the line."""
        return self.scale * x + self.shift


def fit_line(x: Array, y: Array, weights: Array, sign: int = 0, span: float = 0.0) -> Line:
    """Fit a line to points of which up to 30 % of the weight may be outliers in y.

    One point, or points at one x, determine the scale only: the line goes through the origin.

    Parameters
    ----------
    x, y, weights : (N,) array
    sign : {-1, 0, 1}
        Sign that the scale must have; 0: any.
    span : float
        Range of x in the whole map. If it is 0, the line is a constant.
    """
    size = float(np.median(np.abs(y)))
    if len(x) > _ENOUGH_POINTS:
        chosen = np.random.default_rng(0).choice(len(x), _ENOUGH_POINTS, replace=False)
        x, y, weights = x[chosen], y[chosen], weights[chosen]
    if span == 0:
        return _constant(y, weights, size)
    if float(np.ptp(x)) <= _NARROW * span:
        return _through_origin(x, y, weights, size)
    line = _trimmed(x, y, weights, sign)
    if line is None:
        return _through_origin(x, y, weights, size)
    least = ROUNDING * size
    for _ in range(_ROUNDS):
        sigma = max(line.sigma, least)
        inside = weights * biweight(y - line(x), sigma)
        refined = least_squares(x, y, inside)
        if refined is None or refined.scale * sign < 0:
            break
        moved = np.abs(refined(x) - line(x)).max()
        line = refined._replace(sigma=line.sigma)
        if moved <= 1e-3 * sigma:
            break
    return line


def biweight(error: Array, sigma: float | Array, cut: float = _CUT) -> Array:
    """Compute Tukey's biweights of errors: 1 for none, 0 beyond `cut` sigma."""
    return np.maximum(0.0, 1 - (error / (cut * sigma)) ** 2) ** 2


def least_squares(x: Array, y: Array, weights: Array) -> Line | None:
    """Fit a line by weighted least squares; None if the points do not determine it."""
    total = float(weights.sum())
    if total <= 0:
        return None
    # Sums, because a threaded dot product waits for busy cores.
    mean_x, mean_y = float(np.sum(weights * x)) / total, float(np.sum(weights * y)) / total
    dx = x - mean_x
    spread = float(np.sum(weights * dx**2))
    if spread <= 1e-12 * total * float(np.max(np.abs(x))) ** 2:
        return None
    scale = float(np.sum(weights * dx * (y - mean_y))) / spread
    return Line(scale, mean_y - scale * mean_x)


def _trimmed(x: Array, y: Array, weights: Array, sign: int) -> Line | None:
    """Fit by least trimmed squares: concentration steps from the best lines through two points."""
    random = np.random.default_rng(0)
    n = len(x)
    if n > _MOST_POINTS:
        chosen = random.choice(n, _MOST_POINTS, replace=False)
        x, y, weights, n = x[chosen], y[chosen], weights[chosen], _MOST_POINTS
    first, second = np.triu_indices(n, 1)
    if len(first) > _MOST_PAIRS:
        pairs = random.choice(len(first), _MOST_PAIRS, replace=False)
        first, second = first[pairs], second[pairs]
    dx = x[second] - x[first]
    apart = np.abs(dx) > 1e-9 * np.ptp(x)
    first, second, dx = first[apart], second[apart], dx[apart]
    scale = (y[second] - y[first]) / dx
    shift = y[first] - scale * x[first]
    allowed = scale * sign >= 0
    if not allowed.any():
        return None
    scale, shift = scale[allowed], shift[allowed]
    costs = _trimmed_cost(y - scale[:, np.newaxis] * x - shift[:, np.newaxis], weights)
    best: tuple[float, Line] | None = None
    for i in np.argsort(costs, kind="stable")[:_STARTS]:
        line, cost = Line(float(scale[i]), float(shift[i])), float(costs[i])
        for _ in range(_STEPS):
            error = y - line(x)
            inside = _smallest(error[np.newaxis], weights)[0]
            moved = least_squares(x, y, inside)
            if moved is None or moved.scale * sign < 0:
                break
            line = moved
        cost = float(_trimmed_cost((y - line(x))[np.newaxis], weights)[0])
        if best is None or cost < best[0]:
            best = cost, line
    if best is None:
        return None
    # Few points follow any line: their errors are larger than they seem.
    few = 1 + 5 / (n - 2) if n > 2 else 1.0
    return best[1]._replace(sigma=_TRIMMED_SIGMA * few * math.sqrt(best[0]))


def _smallest(errors: Array, weights: Array) -> Array:
    """Return the weights of each row's smallest errors, up to the kept part of all weight."""
    order = np.argsort(np.abs(errors), axis=1, kind="stable")
    sorted_weights = weights[order]
    limit = _KEPT * weights.sum()
    before = np.cumsum(sorted_weights, axis=1) - sorted_weights
    kept = np.zeros_like(errors)
    np.put_along_axis(kept, order, np.where(before < limit, sorted_weights, 0.0), axis=1)
    return kept


def _trimmed_cost(errors: Array, weights: Array) -> Array:
    """Return the mean square of each row's smallest errors."""
    kept = _smallest(errors, weights)
    cost: Array = np.sum(kept * errors**2, axis=1) / kept.sum(axis=1)
    return cost


def _through_origin(x: Array, y: Array, weights: Array, size: float) -> Line:
    if float(np.abs(x).min()) == 0:
        return _constant(y, weights, size)
    return Line(weighted_median(y / x, weights), 0.0, ROUNDING * size)


def _constant(y: Array, weights: Array, size: float) -> Line:
    middle = weighted_median(y, weights)
    spread = 1.4826 * weighted_median(np.abs(y - middle), weights)
    return Line(0.0, middle, max(spread, ROUNDING * size))


def weighted_median(values: Array, weights: Array) -> float:
    """Return the lower weighted median."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order[np.searchsorted(reached, 0.5 * reached[-1])]])
