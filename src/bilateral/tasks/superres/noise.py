"""Measure the noise of a low-resolution map without a model of its surfaces."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral.tasks.superres import policy

Array = NDArray[Any]


class MapNoise(NamedTuple):
    """Noise and steepness of a map."""

    level: float
    """Typical standard deviation of the noise, above 0."""
    slope: float
    """Typical difference of neighbours that noise does not explain."""
    roughness: float
    """RMS difference of neighbours, edges and noise included, divided by the square root of 2."""
    residuals: Array
    """Mixed second differences of neighbours, scaled to the variance of the noise."""
    values: Array
    """The means of the four pixels of each difference."""

    @classmethod
    def of(cls, low: Array, known: Array) -> MapNoise:
        """Measure an (h, w) map.

        The mixed second difference a - b - c + d of four neighbours is 0 on planes and along
        straight edges of rows and columns, so that its median magnitude shows the noise. Noise has
        the same variance at twice the distance. The variance of rough surfaces grows with the
        distance: if it grows much, the differences are the surface and not noise.
        """
        v = np.where(known, low, np.nan).astype(np.float64)
        residuals, values = _mixed_differences(v, 1)
        wide, _ = _mixed_differences(v, 2)
        near, far = _median_level(residuals), _median_level(wide)
        residuals *= math.sqrt(policy.noise_share(near, far))
        steps = np.concatenate([np.diff(v, axis=axis).ravel() for axis in (0, 1)])
        steps = np.abs(steps[np.isfinite(steps)])
        level = _median_level(residuals) or _least_level(v[known])
        step = float(np.median(steps)) if steps.size else 0.0
        return cls(
            max(level, _least_level(v[known])),
            policy.slope(step, level),
            float(np.sqrt(np.mean(steps * steps) / 2)) if steps.size else 0.0,
            residuals,
            values,
        )

    def levels(self, values: Array) -> Array:
        """Return the standard deviation of the noise at pixels with these values."""
        if self.residuals.size == 0:
            return np.full_like(values, self.level)
        return noise_levels(self.residuals, self.values, values)


def _mixed_differences(v: Array, distance: int) -> tuple[Array, Array]:
    """Return the finite mixed differences, divided by 2, and the means of their four pixels."""
    near, far = np.s_[:-distance], np.s_[distance:]
    a, b, c, d = v[near, near], v[near, far], v[far, near], v[far, far]
    mixed, means = (a - b - c + d) / 2, (a + b + c + d) / 4
    whole = np.isfinite(mixed)
    return mixed[whole], means[whole]


def noise_levels(residuals: Array, values: Array, at: Array) -> Array:
    """Return the standard deviation of the noise as a function of the value.

    Depth cameras and stereo are noisier at some depths than at others. The values are divided into
    up to eight bins of equal size. The level of a bin is 1.48 times the median magnitude of its
    residuals, which is robust to the large residuals at edges. Levels are interpolated linearly
    between the bins' medians.

    Parameters
    ----------
    residuals : (n,) array
        Numbers with the variance of the noise.
    values : (n,) array
        The value of the map at each of them.
    at : array
        Values at which to evaluate the level.

    Returns
    -------
    array
        Like `at`, above 0.
    """
    bins = policy.bins(values.size)
    order = np.argsort(values, kind="stable")
    parts = [part for part in np.array_split(order, bins) if part.size > 0]
    centres = [np.median(values[part]) for part in parts]
    levels = [max(_median_level(residuals[part]), _least_level(values)) for part in parts]
    return np.interp(at, centres, levels).astype(at.dtype)


def _median_level(residuals: Array) -> float:
    return policy.MEDIAN_LEVEL * float(np.median(np.abs(residuals))) if residuals.size else 0.0


def _least_level(values: Array) -> float:
    low, high = np.percentile(values, policy.PERCENTILES)
    return policy.least_level(float(low), float(high))
