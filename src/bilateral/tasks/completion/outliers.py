"""Find wrong points: background seen through the foreground, and values that fit nothing around.

A detail of the scene with a single point on it looks like an outlier, too. So suspicious points are
dropped only if the other points are predicted better without them.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.filters.interpolation import interpolate_points
from bilateral.tasks.completion.candidates import PROBE, Candidates
from bilateral.tasks.completion.units import Unit
from bilateral.threads import get_num_threads

Array = NDArray[Any]
Mask = NDArray[np.bool_]

_WINDOW = (2, 4)
"""A point is seen through a surface if nearer ones are within so many rows and columns."""
_FARTHER = 0.85
"""Nearer: below this part of its depth."""
_DEVIATIONS = 5.0
"""A suspicious point differs from both predictions by so many typical differences."""
_MOST = 0.1
"""Largest part of the points that may be wrong."""
_GAIN, _LINEAR_GAIN = 0.9, 0.93
"""Largest error of both predictions without the suspicious points, relative to that with them."""
_FEWEST = 50
"""Fewer points than this are all taken as right."""
_SEED = 21


def find_outliers(candidates: Candidates, z: Array, trust: Array, unit: Unit) -> Mask:
    """Return the points to drop; none unless the others are predicted better without them.

    Parameters
    ----------
    candidates : Candidates
    z : (H, W) float32 array
        NaN where unknown.
    trust : (H, W) float32 array
        Weights of the points.
    unit : Unit
    """
    known = np.isfinite(z)
    none = np.zeros(known.shape, bool)
    if np.count_nonzero(known) < _FEWEST:
        return none
    half = np.random.default_rng(_SEED).random(known.shape) < 0.5
    halves = known & half, known & ~half

    def predict(skipped: Mask, *, linear: bool) -> Array:
        """Predict the points of each half from those of the other that are not skipped."""
        data = [np.where(train & ~skipped, z, np.float32(np.nan)) for train in halves]
        if linear:
            with ThreadPoolExecutor(min(2, get_num_threads())) as pool:
                maps = [filled for filled, _ in pool.map(interpolate_points, data)]
        else:  # a solve has threads of its own
            maps = [candidates.planar(PROBE, part, trust, unit, loose=True) for part in data]
        return np.where(half, maps[1], maps[0])

    if not all(part.any() for part in halves):
        return none
    planar, linear = predict(none, linear=False), predict(none, linear=True)
    difference = np.fmin(np.abs(planar - z), np.abs(linear - z))
    limit = _DEVIATIONS * 1.4826 * float(np.median(difference[known]))
    limit = max(limit, float(np.quantile(difference[known], 1 - _MOST)))
    suspicious: Mask = known & (difference > limit)
    others = known & ~suspicious
    if not suspicious.any() or not all((part & others).any() for part in halves):
        return none
    for predicted, is_linear, gain in ((planar, False, _GAIN), (linear, True, _LINEAR_GAIN)):
        without = predict(suspicious, linear=is_linear)
        error = float(np.abs(predicted - z).mean(where=others, dtype=np.float64))
        better = float(np.abs(without - z).mean(where=others, dtype=np.float64))
        if better >= gain * error:
            return none
    return suspicious


def seen_through(z: Array) -> Mask:
    """Find the depths behind a surface: much nearer points are close by on both sides."""
    near = np.where(np.isfinite(z), z, np.float32(np.inf))
    rows, columns = _WINDOW
    lowest = near.copy()
    for step in range(1, rows + 1):
        np.minimum(lowest[step:], near[:-step], out=lowest[step:])
        np.minimum(lowest[:-step], near[step:], out=lowest[:-step])
    left, right = np.full_like(near, np.inf), np.full_like(near, np.inf)
    for step in range(1, columns + 1):
        np.minimum(left[:, step:], lowest[:, :-step], out=left[:, step:])
        np.minimum(right[:, :-step], lowest[:, step:], out=right[:, :-step])
    return np.isfinite(z) & (np.maximum(left, right) < _FARTHER * near)
