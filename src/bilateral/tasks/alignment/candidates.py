"""Fit a relative map in every possible form, and keep the one that predicts best."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral.tasks.alignment.forms import Form, possible_forms
from bilateral.tasks.alignment.line_fit import Line, fit_line, weighted_median
from bilateral.tasks.alignment.local_fit import Cells, Global, Local, Metric

Array = NDArray[Any]

_MOST_POINTS = 20_000
"""Points for the choice of form, smoothness and outliers: a sample of those of a whole map."""
_ENOUGH = 200
"""Forms whose global fit has an error up to twice the least are tried in full; with so many points,
up to 1.5 times the least, and with more points fewer."""
_CAP, _LEAST_CAP = 4.0, 0.05
"""Errors count up to this many standard deviations of the best form, or this part of the depth."""
_RECIPROCAL, _RECIPROCAL_OF_TWO = 1.05, 1.4
"""A form with 1 / relative must be better by this factor, since it is less common: from three
points on, and below. Two points fit all forms: one with a scale above 0 that stays near to their
range is chosen."""
_POWER = 0.8
"""The weight of a form falls with its score to this power, times the number of points: ten points
are no reason to trust one form alone, fifty are."""
_EXACT = 1e-5
"""Relative error up to which a form is certain."""
_BY_CHANCE, _MOST = 4, 0.75
"""Up to so many points may lie on a line by chance, and the line of a form is certain if it meets
this part of the inliers: few outliers are close to it."""


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


class _Scored(NamedTuple):
    """A local fit, its map, and its score: the less the better."""

    local: Local
    depth: Array
    expected_error: float
    """RMS error of left-out points, NaN if none were left out."""
    score: float


def best_fit(relative: Array, metric: Metric, luma: Array | None, cells: Cells, kind: str) -> Fit:
    """Fit every possible form, and return the one with the least errors."""
    sample = metric.sample(_MOST_POINTS)
    if len(metric.depth) == 1 and kind == "auto":
        kind = "depth"
    fits = [_fit_globally(form, relative, sample, kind) for form in possible_forms(relative, kind)]
    fits = [fit for fit in fits if fit.line.scale * fit.form.sign(kind) >= 0] or fits
    if len(metric.depth) < 3:
        fits = [fit for fit in fits if fit.line.scale >= 0] or fits
    errors = [fit.errors(sample) for fit in fits]
    few = 1 + 5 / (len(sample.depth) - 2) if len(sample.depth) > 2 else 1.0
    sigma = 1.4826 * few * min(weighted_median(error, sample.weights) for error in errors)
    cap = max(_CAP * sigma, _LEAST_CAP)
    scores = [_score(fit.form, e, sample, cap) for fit, e in zip(fits, errors, strict=True)]
    limit = (1 + 1 / (1 + len(sample.depth) / _ENOUGH)) * min(scores)
    tried = [
        _scored(Local.choose(fit, sample, luma, cells), score, sample, cap)
        for fit, score in zip(fits, scores, strict=True)
        if score <= limit
    ]
    best = min(tried, key=lambda fit: fit.score)
    if len(sample.depth) < len(metric.depth):
        local = best.local.with_all(metric)
        return _result(best._replace(local=local, depth=_depth(local)), metric)
    if not _certain(best, sample):
        best = best._replace(depth=_mean(tried))
    return _result(best, metric)


def _certain(best: _Scored, metric: Metric) -> bool:
    """Whether a form predicts left-out points, or its line meets most inliers, without error."""
    local = best.local
    if local.relative_error <= _EXACT:
        return True
    error = np.abs(np.log(best.depth[metric.at] / metric.depth))[local.inlier]
    exact = int(np.count_nonzero(error <= _EXACT))
    return local.choice.smoothness is None and exact > max(_BY_CHANCE, _MOST * error.size)


def _fit_globally(form: Form, relative: Array, metric: Metric, kind: str) -> Global:
    x = form.from_relative(relative)
    low, high = np.percentile(x, [1, 99])
    span = float(high - low) or float(np.ptp(x))
    y = form.from_depth(metric.depth)
    line = fit_line(x[metric.at], y, metric.weights, form.sign(kind), span)
    return Global(form, x, float(low), span, line)


def _score(form: Form, error: Array, metric: Metric, cap: float) -> float:
    """Return the RMS of errors up to a cap, a little more for a less common form."""
    least = float(np.finfo(np.float32).eps)  # exact fits are alike
    mean = float(np.average(np.minimum(error, cap) ** 2, weights=metric.weights))
    factor = _RECIPROCAL if len(error) > 2 else _RECIPROCAL_OF_TWO
    return (factor if form.reciprocal else 1.0) * max(math.sqrt(mean), least)


def _scored(local: Local, score: float, metric: Metric, cap: float) -> _Scored:
    """Score a fit by the errors of its line and of left-out points, and by its range."""
    form = local.fit.form
    depth = _depth(local)
    expected = form.from_depth(np.clip(local.choice.predicted, *local.limits()))
    left_out = np.abs(np.log(expected / metric.depth))
    total = math.sqrt(score * _score(form, left_out, metric, cap))
    inlier = local.inlier
    error = _rms((expected - metric.depth)[inlier], metric.weights[inlier])
    total *= math.sqrt(_excess(depth, metric.depth[inlier]))
    return _Scored(local, depth, error if local.choice.tested else math.nan, total)


def _depth(local: Local) -> Array:
    return local.fit.form.from_depth(np.clip(local.values(), *local.limits()))


def _mean(fits: list[_Scored]) -> Array:
    """Average the maps of all forms; those with small scores prevail, the more the more points."""
    best = min(fit.score for fit in fits)
    power = _POWER * len(fits[0].local.points.y)
    weights = [(best / fit.score) ** power for fit in fits]
    total: Array = sum(
        (w * fit.depth for w, fit in zip(weights, fits, strict=True)), np.zeros(())
    ) / sum(weights)
    return total


def _result(best: _Scored, metric: Metric) -> Fit:
    """Report a fit to all points."""
    local, inlier = best.local, best.local.inlier
    return Fit(
        local.fit.form,
        local.line(),
        best.depth,
        local.choice.smoothness,
        len(metric.depth),
        int(inlier.sum()),
        _rms((best.depth[metric.at] - metric.depth)[inlier], metric.weights[inlier]),
        best.expected_error,
    )


def _excess(depth: Array, inliers: Array) -> float:
    """Return the factor by which a map exceeds the range of its inliers, at least 1."""
    low, high = np.percentile(depth, [1, 99])
    return float(max(1.0, high / inliers.max(), inliers.min() / low))


def _rms(error: Array, weights: Array) -> float:
    return math.sqrt(float(np.average(error**2, weights=weights)))
