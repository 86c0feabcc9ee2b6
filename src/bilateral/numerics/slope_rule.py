"""Choose the slope penalties of the planar model by the noise of the data.

Noise is estimated by planes fitted to the known pixels of each cell. docs/notes/planar.md explains
the rule and has its measurements.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral.backends import cpu
from bilateral.grid import BilateralGrid, core_of, planes_of

Array = NDArray[Any]

FEWEST_CELLS = 5
ENOUGH_CELLS = 64
"""Cells that give a reliable estimate without a second level."""
_MOST_LEVELS = 4
QUANTILE = 0.25
"""A low quantile ignores cells on edges and cells with outliers."""
NORMAL_QUANTILE = -0.6744897501960817
"""The same quantile of the normal distribution."""
_STRENGTH = 10.0
_LARGEST = 10.0
_ROUNDING = 1e-6
"""Noise below this part of the values' size is rounding."""


class _Cells(NamedTuple):
    """Sums over the known pixels of each cell, at positions relative to one common point."""

    pixels: Array
    c: Array
    cp: Array
    cpp: Array
    ct: Array
    cpt: Array
    ctt: Array


class NoiseLevel(NamedTuple):
    """Noise and signal of a target."""

    noise: float
    """Variance of a value of confidence 1."""
    signal: float
    """Variance of the values without their noise."""
    cells: int
    """Number of cells of the estimate; 0: there is none, or the noise is rounding."""


def noise_level(
    grid: BilateralGrid, target: Array, confidence: Array | None, careful: bool = True
) -> NoiseLevel:
    """Estimate the noise of a target by planes fitted to the known pixels of each cell.

    With few cells, a `careful` estimate is rather too low than too high; otherwise it is that of
    the level of the pyramid with the most cells.
    """
    values = target.astype(np.float64)
    weights = np.ones(grid.shape) if confidence is None else confidence.astype(np.float64)
    known = np.isfinite(values).all(axis=-1) & (weights > 0)
    if not known.any():
        return NoiseLevel(0.0, 0.0, 0)
    weights = np.where(known, weights, 0.0)
    total = float(weights.sum())
    mean = np.sum(weights[known][:, np.newaxis] * values[known], axis=0) / total
    values = np.where(known[..., np.newaxis], values - mean, 0.0)
    energy = float(np.sum(weights[..., np.newaxis] * values**2))
    noise, cells = _noise(_sums(grid, values, weights, known), grid.coordinates(), careful)
    size = float(np.abs(values + mean).max(where=known[..., np.newaxis], initial=0.0))
    return noise_level_of(noise, cells, size, total, energy, float(known.sum()))


def noise_level_of(
    noise: float, cells: int, size: float, total: float, energy: float, known: float
) -> NoiseLevel:
    """Return the noise level of an estimate.

    Parameters
    ----------
    noise, cells : float, int
        Variance of a value of confidence 1, and cells of its estimate.
    size : float
        Largest value.
    total : float
        Sum of the confidences.
    energy : float
        Sum of the squared differences from the mean, weighted by the confidences.
    known : float
        Number of known pixels.
    """
    if cells == 0 or noise * known / total < (_ROUNDING * size) ** 2:
        return NoiseLevel(0.0, energy / total, 0)
    return NoiseLevel(noise, max(0.0, energy - known * noise) / total, cells)


def factor(
    grid: BilateralGrid, target: Array, confidence: Array | None, smoothness: float
) -> float:
    """Return the number from 1 to 10 that multiplies both penalties."""
    return factor_of(noise_level(grid, target, confidence), smoothness)


def factor_of(level: NoiseLevel, smoothness: float) -> float:
    """Return the number that multiplies both penalties at a noise level."""
    noise, signal, cells = level
    if cells == 0:
        return 1.0
    with np.errstate(divide="ignore"):
        wanted = np.float64(_STRENGTH * (1 - 2 / np.sqrt(cells)) * noise) / (smoothness * signal)
    return float(np.clip(wanted, 1.0, _LARGEST))


def _sums(grid: BilateralGrid, values: Array, weights: Array, known: Array) -> _Cells:
    """Sum over the vertices."""
    planes, core = planes_of(grid), core_of(grid)
    sums = cpu.splat_planes(planes, values, weights, centred=False)
    pixels = np.stack([known, np.sum(weights[..., np.newaxis] * values**2, axis=-1)], axis=-1)
    count, ctt = cpu.splat(core, pixels.astype(np.float64), grid.shape).T
    centre = cpu.centres(planes)
    axes = planes.axes
    c, cq = sums.moments[:, 0], np.empty((grid.n_vertices, axes))
    cqq = np.empty((grid.n_vertices, axes, axes))
    for i in range(axes):
        row = (i + 1) * (i + 2) // 2
        cq[:, i] = sums.moments[:, row]
        for j in range(i + 1):
            cqq[:, i, j] = cqq[:, j, i] = sums.moments[:, row + 1 + j]
    cross = centre[:, :, np.newaxis] * cq[:, np.newaxis]
    cpp = cqq + cross + cross.transpose(0, 2, 1)
    cpp += c[:, np.newaxis, np.newaxis] * centre[:, :, np.newaxis] * centre[:, np.newaxis]
    ct = sums.weighted[:, :, 0].T
    cpt = sums.weighted[:, :, 1:].transpose(1, 2, 0) + centre[:, :, np.newaxis] * ct[:, np.newaxis]
    return _Cells(count, c, cq + c[:, np.newaxis] * centre, cpp, ct, cpt, ctt)


def _noise(cells: _Cells, coordinates: Array, careful: bool) -> tuple[float, int]:
    """Estimate the variance of a value of confidence 1, and count the cells of the estimate."""
    estimates: list[tuple[float, int]] = []
    while True:
        residual, freedom = _residuals(cells)
        if len(freedom) >= FEWEST_CELLS:
            estimates.append((_low_quantile(residual, freedom), len(freedom)))
        most = 2 if careful else _MOST_LEVELS
        if len(estimates) == most or len(freedom) >= ENOUGH_CELLS or len(coordinates) == 1:
            key = None if careful else _fewness
            return min(estimates, key=key, default=(0.0, 0))
        coordinates, parent = np.unique(coordinates // 2, axis=0, return_inverse=True)
        parent = parent.ravel()
        cells = _Cells(*(_add_up(values, parent, len(coordinates)) for values in cells))


def _fewness(estimate: tuple[float, int]) -> int:
    return -estimate[1]


def _residuals(cells: _Cells) -> tuple[Array, Array]:
    """Compute the squared residuals of a plane per cell, and their degrees of freedom."""
    k = cells.pixels > 2
    c = cells.c[k, np.newaxis]
    p, t = cells.cp[k] / c, cells.ct[k] / c
    spread = cells.cpp[k] - c[..., np.newaxis] * p[:, :, np.newaxis] * p[:, np.newaxis]
    slant = cells.cpt[k] - c[..., np.newaxis] * p[:, :, np.newaxis] * t[:, np.newaxis]
    size, axes = np.linalg.eigh(spread)
    kept = size > 1e-6 * size[:, -1:]
    along = np.einsum("nij,nik->njk", axes, slant) ** 2
    explained = np.sum(
        kept[..., np.newaxis] * along / np.where(kept, size, 1)[..., np.newaxis], axis=(1, 2)
    )
    residual = np.maximum(cells.ctt[k] - c[:, 0] * np.sum(t**2, axis=1) - explained, 0)
    freedom = cells.pixels[k] - 1 - kept.sum(axis=1)
    return residual[freedom > 0], freedom[freedom > 0]


def _low_quantile(residual: Array, freedom: Array) -> float:
    """Return the quantile of the variances, corrected for their spread, weighted by freedom."""
    k = 2 / (9 * freedom)  # Wilson and Hilferty's approximation of the chi-square distribution
    variance = residual / freedom / (1 - k + NORMAL_QUANTILE * np.sqrt(k)) ** 3
    order = np.argsort(variance, kind="stable")
    reached = np.cumsum(freedom[order])
    return float(variance[order][np.searchsorted(reached, QUANTILE * reached[-1])])


def _add_up(values: Array, parent: Array, parents: int) -> Array:
    sums = np.zeros((parents, *values.shape[1:]))
    np.add.at(sums, parent, values)
    return sums
