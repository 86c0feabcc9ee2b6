"""Fit a relative map in every possible form, and keep the one that predicts best."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral.filters.domain_transform import domain_transform
from bilateral.grid import BilateralGrid
from bilateral.tasks.alignment.consensus import agreement, trust
from bilateral.tasks.alignment.forms import Form, possible_forms
from bilateral.tasks.alignment.line_fit import (
    Line,
    fit_line,
    weighted_median,
)
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
_CONTENDERS = 2.0
"""Forms whose global fit has an error up to this many times the least are tried in full."""
_CAP, _LEAST_CAP = 4.0, 0.05
"""Errors count up to this many standard deviations of the best form, or this part of the depth."""
_RECIPROCAL, _RECIPROCAL_OF_TWO = 1.05, 1.4
"""A form with 1 / relative must be better by this factor, since it is less common: from three
points on, and below. Two points fit all forms: one with a scale above 0 that stays near to their
range is chosen."""
_LARGEST_MARGIN, _SMALLEST_MARGIN = 50.0, 2.0
"""The result may leave the range of the inliers by these factors: the larger one for exact data,
the smaller one where the errors are as large as the values."""
_FILTER_XY, _FILTER_RELATIVE = 0.5, 2.0
"""Sigmas of the filter that smooths the steps between grid cells, in cells."""
_LARGEST_FACTOR = 2.5
"""A point whose depth differs from the global fit by a larger factor is an outlier, even if its
neighbours agree with it: sensors return regions of garbage, networks are rarely so wrong."""
_INLIER = 0.3
"""Weight from which on a point is an inlier."""


class Metric(NamedTuple):
    """Known depths, with a median of 1."""

    at: tuple[Array, ...]
    """Rows and columns."""
    depth: Array
    weights: Array


class Cells(NamedTuple):
    """Sizes of grid cells: in pixels (None: by the size of the image), range, and grey levels."""

    xy: float | None
    relative: float
    luma: float


class Fit(NamedTuple):
    """The result of one form."""

    form: Form
    line: Line
    depth: Array
    smoothness: float | None
    points: int
    inliers: int
    error: float
    expected_error: float
    score: float


class _Global(NamedTuple):
    """A global fit in one form."""

    form: Form
    x: Array
    """The relative map or its inverse."""
    low: float
    span: float
    """Range of x, without its extremes."""
    line: Line
    error: Array
    """Errors at the points, as a part of the depth."""


def best_fit(relative: Array, metric: Metric, luma: Array | None, cells: Cells, kind: str) -> Fit:
    """Fit every possible form, and return the one with the least errors."""
    if len(metric.depth) == 1 and kind == "auto":
        kind = "depth"
    fits = [_fit_globally(form, relative, metric, kind) for form in possible_forms(relative, kind)]
    fits = [fit for fit in fits if fit.line.scale * fit.form.sign(kind) >= 0] or fits
    if len(metric.depth) < 3:
        fits = [fit for fit in fits if fit.line.scale >= 0] or fits
    few = 1 + 5 / (len(metric.depth) - 2) if len(metric.depth) > 2 else 1.0
    sigma = 1.4826 * few * min(weighted_median(fit.error, metric.weights) for fit in fits)
    cap = max(_CAP * sigma, _LEAST_CAP)
    scores = [_score(fit.form, fit.error, metric, cap) for fit in fits]
    limit = _CONTENDERS * min(scores)
    tried = [
        _fit_locally(fit, score, metric, luma, cells, cap)
        for fit, score in zip(fits, scores, strict=True)
        if score <= limit
    ]
    return min(tried, key=lambda fit: fit.score)


def _fit_globally(form: Form, relative: Array, metric: Metric, kind: str) -> _Global:
    x = form.from_relative(relative)
    low, high = np.percentile(x, [1, 99])
    span = float(high - low) or float(np.ptp(x))
    y = form.from_depth(metric.depth)
    line = fit_line(x[metric.at], y, metric.weights, form.sign(kind), span)
    predicted = np.maximum(line(x[metric.at]), y.min() / 4)
    error = np.abs(np.log(form.from_depth(predicted) / metric.depth))
    return _Global(form, x, float(low), span, line, error)


def _score(form: Form, error: Array, metric: Metric, cap: float) -> float:
    """Return the RMS of errors up to a cap, a little more for a less common form."""
    least = float(np.finfo(np.float32).eps)  # exact fits are alike
    mean = float(np.average(np.minimum(error, cap) ** 2, weights=metric.weights))
    factor = _RECIPROCAL if len(error) > 2 else _RECIPROCAL_OF_TWO
    return (factor if form.reciprocal else 1.0) * max(math.sqrt(mean), least)


def _fit_locally(
    fit: _Global, score: float, metric: Metric, luma: Array | None, cells: Cells, cap: float
) -> Fit:
    """Solve for the residual of a global fit, without outliers."""
    form, x, y = fit.form, fit.x, fit.form.from_depth(metric.depth)
    grid = _grid(fit, luma, cells)
    vertex = grid.slice(np.arange(grid.n_vertices, dtype=np.float64))[metric.at].astype(np.int64)
    cell = grid.coordinates()[vertex]
    residual, enough = y - fit.line(x[metric.at]), len(y) >= _FEWEST
    near = trust(residual, y, fit.line.sigma)
    tile = cell[:, 0] + (cell[:, 1] << 32)
    points = Points(metric.at, x[metric.at], y, metric.weights, near, tile)
    if enough:
        plausible = _plausible(fit.error)
        trusted = plausible * agreement(residual, y, metric.weights, cell, fit.line.sigma)
        points = points._replace(weights=metric.weights * trusted)
        rough = choose_smoothness(grid, points, fit.line, FEW_SMOOTHNESSES)
        trusted = plausible * trust(y - rough.predicted, y, rough.sigma)
    else:
        trusted = near
    points = points._replace(weights=metric.weights * trusted)
    choice = choose_smoothness(grid, points, fit.line)
    line = refit(points, points.weights, fit.line)
    values = line(x)
    if choice.smoothness is not None:
        rest = solve_residual(grid, points, line, points.weights, choice.smoothness)
        values += _without_steps(fit, rest, cells)
    inlier = trusted >= min(_INLIER, trusted.max())
    low, high = _limits(y[inlier], choice)
    depth = form.from_depth(np.clip(values, low, high))
    expected = form.from_depth(np.clip(choice.predicted, low, high))
    left_out = np.abs(np.log(expected / metric.depth))
    total = math.sqrt(score * _score(form, left_out, metric, cap))
    weights = metric.weights[inlier]
    return Fit(
        form,
        line,
        depth,
        choice.smoothness,
        len(y),
        int(inlier.sum()),
        _rms(depth[metric.at][inlier] - metric.depth[inlier], weights),
        _rms(expected[inlier] - metric.depth[inlier], weights) if choice.tested else math.nan,
        total * math.sqrt(_excess(depth, metric.depth[inlier])),
    )


def _plausible(error: Array) -> Array:
    """Return 1 for points near the global fit, 0 for those that no residual should explain."""
    plausible = error <= math.log(_LARGEST_FACTOR)
    return plausible if plausible.any() else np.ones_like(plausible)


def _grid(fit: _Global, luma: Array | None, cells: Cells) -> BilateralGrid:
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


def _without_steps(fit: _Global, residual: Array, cells: Cells) -> Array:
    """Smooth the steps between grid cells, but not across edges of the relative map."""
    if fit.span == 0:
        return residual
    guide = np.clip((fit.x - fit.low) / fit.span, -1.0, 2.0).astype(np.float32)
    xy = _FILTER_XY * _pixels_per_cell(fit.x.shape, cells)
    return domain_transform(
        residual, guide, xy, 255 * _FILTER_RELATIVE * cells.relative, reference_max=1.0
    )


def _pixels_per_cell(shape: tuple[int, ...], cells: Cells) -> float:
    return cell_size(shape, _CELL, least=4) if cells.xy is None else cells.xy


def _limits(y: Array, choice: Choice) -> tuple[float, float]:
    """Return the range of the result in the unit of the fit: wide for exact data."""
    low, high = float(y.min()), float(y.max())
    floor = float(np.clip(3 * choice.sigma, low / _LARGEST_MARGIN, low / _SMALLEST_MARGIN))
    return floor, high * _LARGEST_MARGIN


def _excess(depth: Array, inliers: Array) -> float:
    """Return the factor by which a map exceeds the range of its inliers, at least 1."""
    low, high = np.percentile(depth, [1, 99])
    return float(max(1.0, high / inliers.max(), inliers.min() / low))


def _rms(error: Array, weights: Array) -> float:
    return math.sqrt(float(np.average(error**2, weights=weights)))
