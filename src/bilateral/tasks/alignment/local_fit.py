"""Fit a relative map in one form: without outliers, and with the residual of the global fit."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral.filters.domain_transform import domain_transform
from bilateral.grid import BilateralGrid
from bilateral.tasks.alignment.consensus import agreement, trust
from bilateral.tasks.alignment.forms import Form
from bilateral.tasks.alignment.line_fit import Line
from bilateral.tasks.alignment.residual import (
    FEW_SMOOTHNESSES,
    Choice,
    Points,
    choose_smoothness,
    refit,
    solve_residual,
)
from bilateral.tasks.cell_size import cell_size

Array = NDArray[Any]

_CELL = 24.0
"""Size of a cell in pixels, for an image of 0.35 megapixels."""
_FEWEST = 9
"""Points from which on their surroundings tell outliers."""
_LEAST_MARGIN, _LARGEST_MARGIN, _MARGIN_ERROR = 1.5, 50.0, 0.02
"""The result may leave the range of the inliers by a factor: the larger one for exact data, the
smaller one if the errors are much larger than this part of the values."""
_FILTER_XY, _FILTER_RELATIVE = 0.5, 2.0
"""Sigmas of the filter that smooths the steps between grid cells, in cells."""
_LARGEST_FACTOR = 2.5
"""A point whose depth differs from the global fit by a larger factor is an outlier, even if its
neighbours agree with it: sensors return regions of garbage, networks are rarely so wrong."""
_FEW_FOLDS = 3
"""Parts of a whole map that are left out one after another."""
_INLIER = 0.3
"""Weight from which on a point is an inlier."""


class Metric(NamedTuple):
    """Known depths, with a median of 1."""

    at: tuple[Array, ...]
    """Rows and columns."""
    depth: Array
    weights: Array

    def sample(self, most: int) -> Metric:
        """Choose at most so many points at random."""
        n = len(self.depth)
        if n <= most:
            return self
        chosen = np.sort(np.random.default_rng(0).choice(n, most, replace=False))
        at = tuple(axis[chosen] for axis in self.at)
        return Metric(at, self.depth[chosen], self.weights[chosen])


class Cells(NamedTuple):
    """Sizes of grid cells: in pixels (None: by the size of the image), range, and grey levels."""

    xy: float | None
    relative: float
    luma: float


class Global(NamedTuple):
    """A global fit in one form."""

    form: Form
    x: Array
    """The relative map or its inverse."""
    low: float
    span: float
    """Range of x, without its extremes."""
    line: Line

    def errors(self, metric: Metric) -> Array:
        """Return the errors at the points, as parts of the depth."""
        y = self.form.from_depth(metric.depth)
        predicted = np.maximum(self.line(self.x[metric.at]), y.min() / 4)
        return np.abs(np.log(self.form.from_depth(predicted) / metric.depth))


class Local(NamedTuple):
    """A global fit, the weights of its points, and the choice of its residual."""

    fit: Global
    grid: BilateralGrid
    cells: Cells
    points: Points
    """Their weights are the confidences times the trust."""
    trusted: Array
    sigma: float
    """Standard deviation by which points are trusted."""
    choice: Choice

    @classmethod
    def choose(cls, fit: Global, metric: Metric, luma: Array | None, cells: Cells) -> Local:
        """Find the outliers and the smoothness of the residual."""
        x, y = fit.x[metric.at], fit.form.from_depth(metric.depth)
        grid = _grid(fit, luma, cells)
        cell = _cells(grid, metric)
        residual, sigma = y - fit.line(x), fit.line.sigma
        near = trust(residual, y, sigma)
        points = Points(metric.at, x, y, metric.weights, near, _tiles(cell))
        if len(y) >= _FEWEST:
            plausible = _plausible(fit.errors(metric))
            trusted = plausible * agreement(residual, y, metric.weights, cell, sigma)
            points = points._replace(weights=metric.weights * trusted)
            rough = choose_smoothness(grid, points, fit.line, FEW_SMOOTHNESSES)
            sigma = rough.sigma
            trusted = plausible * trust(y - rough.predicted, y, sigma)
        else:
            trusted = near
        points = points._replace(weights=metric.weights * trusted)
        choice = choose_smoothness(grid, points, fit.line)
        return cls(fit, grid, cells, points, trusted, sigma, choice)

    def with_all(self, metric: Metric) -> Local:
        """Go on from a sample of the points to all of them.

        The map of the sample tells most outliers, and its smoothness about that of all. Predictions
        from all other points then tell the rest.
        """
        fit, y = self.fit, self.fit.form.from_depth(metric.depth)
        x, predicted = fit.x[metric.at], self.values()[metric.at]
        near = trust(y - fit.line(x), y, fit.line.sigma)
        plausible = _plausible(fit.errors(metric))
        trusted = plausible * trust(y - predicted, y, self.sigma)
        tiles = _tiles(_cells(self.grid, metric))
        points = Points(metric.at, x, y, metric.weights * trusted, near, tiles)
        choice, smoothness = self.choice, self.choice.smoothness
        if smoothness is not None:
            around = (smoothness / 10, smoothness, 10 * smoothness)
            choice = choose_smoothness(self.grid, points, fit.line, around, _FEW_FOLDS)
            trusted = plausible * trust(y - choice.predicted, y, choice.sigma)
            points = points._replace(weights=metric.weights * trusted)
        return self._replace(points=points, trusted=trusted, choice=choice)

    def values(self) -> Array:
        """Compute the map in the unit of the fit."""
        fit, points, smoothness = self.fit, self.points, self.choice.smoothness
        line = self.line()
        values = line(fit.x)
        if smoothness is not None:
            rest = solve_residual(self.grid, points, line, points.weights, smoothness)
            values += self._without_steps(rest)
        return values

    def line(self) -> Line:
        """Fit scale and shift again, without the outliers."""
        return refit(self.points, self.points.weights, self.fit.line)

    @property
    def inlier(self) -> NDArray[np.bool_]:
        """Whether each point is an inlier."""
        return np.asarray(self.trusted >= min(_INLIER, self.trusted.max()))

    @property
    def relative_error(self) -> float:
        """Error of predictions from other points, as a part of the values."""
        return self.choice.sigma / float(np.median(self.points.y[self.inlier]))

    def limits(self) -> tuple[float, float]:
        """Return the range of the result in the unit of the fit: wide for exact data."""
        y = self.points.y[self.inlier]
        margin = _LEAST_MARGIN + _MARGIN_ERROR / max(self.relative_error, 1e-9)
        margin = min(margin, _LARGEST_MARGIN)
        return float(y.min()) / margin, float(y.max()) * margin

    def _without_steps(self, residual: Array) -> Array:
        """Smooth the steps between grid cells, but not across edges of the relative map."""
        fit, cells = self.fit, self.cells
        if fit.span == 0:
            return residual
        guide = np.clip((fit.x - fit.low) / fit.span, -1.0, 2.0).astype(np.float32)
        xy = _FILTER_XY * _pixels_per_cell(fit.x.shape, cells)
        levels = 255 * _FILTER_RELATIVE * cells.relative
        return domain_transform(residual, guide, xy, levels, reference_max=1.0)


def _cells(grid: BilateralGrid, metric: Metric) -> Array:
    """Return the grid cell of each point."""
    vertex = grid.slice(np.arange(grid.n_vertices, dtype=np.float64))[metric.at]
    return grid.coordinates()[vertex.astype(np.int64)]


def _tiles(cells: Array) -> Array:
    """Return the index of each cell's tile in the image."""
    return np.asarray(cells[:, 0] + (cells[:, 1] << 32))


def _plausible(error: Array) -> Array:
    """Return 1 for points near the global fit, 0 for those that no residual should explain."""
    plausible = error <= math.log(_LARGEST_FACTOR)
    return plausible if plausible.any() else np.ones_like(plausible)


def _grid(fit: Global, luma: Array | None, cells: Cells) -> BilateralGrid:
    """Build the grid of the relative map and the photograph."""
    features, sigmas = [], []
    if fit.span > 0:
        # Values far outside of the usual range would be cells of their own.
        features.append(np.clip((fit.x - fit.low) / fit.span, -1.0, 2.0))
        sigmas.append(cells.relative)
    if luma is not None:
        features.append(luma)
        sigmas.append(cells.luma)
    shape = fit.x.shape
    xy = _pixels_per_cell(shape, cells)
    stacked = np.stack(features, axis=-1) if features else np.zeros((*shape, 0))
    return BilateralGrid.from_features(stacked, sigmas or 1.0, xy)


def _pixels_per_cell(shape: tuple[int, ...], cells: Cells) -> float:
    return cell_size(shape, _CELL, least=4) if cells.xy is None else cells.xy
