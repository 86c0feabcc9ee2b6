"""Estimate the noise of a map from its residuals to a smooth estimate."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_BINS = 8
_LEAST_PER_BIN = 16
_LEAST_NOISE = 1e-3
"""Smallest level of the noise, relative to the range of the values."""


def noise_levels(residuals: Array, values: Array, known: Array) -> Array:
    """Return the standard deviation of the noise at each pixel, as a function of the value.

    Depth cameras and stereo are noisier at some depths than at others. The known values are
    divided into up to eight bins of equal size. The level of a bin is 1.48 times the median
    magnitude of its residuals, which is robust to the large residuals at edges. Levels are
    interpolated linearly between the bins' medians.

    Parameters
    ----------
    residuals : array
        The noisy map minus a smooth estimate of it.
    values : array
        The estimate.
    known : array of bool

    Returns
    -------
    array
        Like `values`, above 0.
    """
    v, e = values[known].astype(np.float64), np.abs(residuals[known], dtype=np.float64)
    bins = max(1, min(_BINS, v.size // _LEAST_PER_BIN))
    order = np.argsort(v, kind="stable")
    parts = [part for part in np.array_split(order, bins) if part.size > 0]
    centres = [np.median(v[part]) for part in parts]
    levels = 1.4826 * np.array([np.median(e[part]) for part in parts])
    low, high = np.percentile(v, [5, 95])
    floor = _LEAST_NOISE * (high - low) or _LEAST_NOISE * abs(float(high)) or 1.0
    return np.interp(values, centres, np.maximum(levels, floor)).astype(values.dtype)
