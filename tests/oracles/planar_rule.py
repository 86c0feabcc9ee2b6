"""The rule of the planar model for slopes without a given ridge: both penalties rise with noise.

Let q be the sum of squared residuals of a plane fitted to the known pixels of a cell, per degree of
freedom. The noise sigma^2, the variance of a target with confidence 1, is a low quantile of q over
the cells, so that cells on edges and with outliers do not count. The cells are the vertices if at
least `ENOUGH` of them have a degree of freedom. Sparse data say nothing about noise within a
vertex: then the finest two levels of the pyramid with at least `CELLS` such cells are used, and the
smaller estimate counts, because structure can only add to it. With n the number of cells, S^2 the
variance of the targets less that of the noise, and lambda the smoothness,

    s = min(max(1, STRENGTH (1 - 2 / sqrt(n)) sigma^2 / (lambda S^2)), LARGEST),
    mu = 3 s,  eps = 1e-3 s.

The factor with n keeps s near 1 if few cells speak for noise. s does not change with the unit of
the targets, with an offset, or if confidence and smoothness are both multiplied by a number.
"""

import numpy as np
from scipy.stats import norm

from oracles.planar import Model, data
from oracles.reference import Array, Image

CELLS = 5  # fewest cells for an estimate: the factor of 4 is 0
ENOUGH = 64  # cells that need no second level
QUANTILE = 0.25
STRENGTH = 10.0
LARGEST = 10.0
ROUNDING = 1e-6  # noise below this part of the targets' size is rounding


def residuals(position: Array, t: Array, c: Array) -> tuple[float, int]:
    """Weighted sum of squared residuals of the best affine map, and its degrees of freedom.

    Pixels on one line determine one slope only, which leaves one more degree of freedom.
    """
    root = np.sqrt(c)[:, None]
    centred = position - c @ position / c.sum()
    mean = c @ t / c.sum()
    slopes, _, rank, _ = np.linalg.lstsq(root * centred, root * (t - mean), rcond=1e-3)
    return float(np.sum((root * (t - mean - centred @ slopes)) ** 2)), len(t) - 1 - int(rank)


def chi_square_quantile(freedom: Array, p: float) -> Array:
    """Approximate the p-quantile of chi^2 / freedom by Wilson and Hilferty's cube."""
    spread = 2 / (9 * freedom)
    return np.asarray((1 - spread + norm.ppf(p) * np.sqrt(spread)) ** 3)


def weighted_quantile(values: Array, weights: Array, p: float) -> float:
    """Return the smallest value at or below which lies at least the part p of the weights."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, p * reached[-1])])


def noise(
    model: Model, position: Array, target: Image, confidence: Image | None
) -> tuple[float, int]:
    """Estimate sigma^2, the variance per unit of confidence, and count its cells.

    The channels are added up. Too few known pixels give (0, 0).
    """
    c, t = data(model, target, confidence)
    cell = model.grid.S.tocsc().indices  # each pixel's vertex: one entry per column
    estimates: list[tuple[float, int]] = []
    for S_k in [None, *model.grid.levels]:
        if S_k is not None:
            cell = S_k.tocsc().indices[cell]
        members = [np.flatnonzero((cell == k) & (c > 0)) for k in np.unique(cell[c > 0])]
        fits = [residuals(position[i], t[i], c[i]) for i in members]
        sums, freedom = np.array([fit for fit in fits if fit[1] > 0]).reshape(-1, 2).T
        if len(sums) >= CELLS:
            q = sums / freedom / chi_square_quantile(freedom, QUANTILE)
            estimates.append((weighted_quantile(q, freedom, QUANTILE), len(q)))
            if len(estimates) == 2 or len(sums) >= ENOUGH:
                break
    return min(estimates, default=(0.0, 0))


def strength(
    model: Model, position: Array, target: Image, confidence: Image | None, smoothness: float
) -> float:
    """Return s, the factor of both penalties of the slopes, from 1 to `LARGEST`."""
    c, t = data(model, target, confidence)
    (variance, cells), count = noise(model, position, target, confidence), np.sum(c > 0)
    if variance * count <= ROUNDING**2 * (c @ np.sum(t**2, axis=1)):
        return 1.0
    mean = c @ t / c.sum()
    signal = max(c @ np.sum((t - mean) ** 2, axis=1) - variance * count, 0.0) / c.sum()
    top = STRENGTH * (1 - 2 / np.sqrt(cells)) * variance
    # Written without a division by `signal`, which is 0 for pure noise.
    return max(1.0, float(top / max(smoothness * signal, top / LARGEST)))
