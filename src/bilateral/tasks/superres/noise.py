"""How noisy a map is, found from what a smooth estimate leaves of it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_BINS = 8
_FEWEST = 16
"""Values of a bin."""
_LEAST = 1e-3
"""Of the range of the values: less noise than that is taken for that much."""


def noise_levels(residuals: Array, values: Array, known: Array) -> Array:
    """The standard deviation of the noise as a function of the value, at each pixel.

    Depth cameras and stereo are noisier at some depths than at others. The values are divided into
    a few bins, each with as many of the known pixels; in each, 1.48 times the median of the
    residuals' magnitudes does not mind the residuals at edges. Between the bins' medians it is
    interpolated.

    Parameters
    ----------
    residuals : array
        What is noisy, less a smooth estimate of it.
    values : array
        The estimate.
    known : array of bool

    Returns
    -------
    array
        Like `values`, above 0.
    """
    v, e = values[known].astype(np.float64), np.abs(residuals[known], dtype=np.float64)
    bins = max(1, min(_BINS, v.size // _FEWEST))
    order = np.argsort(v, kind="stable")
    parts = [part for part in np.array_split(order, bins) if part.size > 0]
    centres = [np.median(v[part]) for part in parts]
    levels = 1.4826 * np.array([np.median(e[part]) for part in parts])
    low, high = np.percentile(v, [5, 95])
    floor = _LEAST * (high - low) or _LEAST * abs(float(high)) or 1.0
    return np.interp(values, centres, np.maximum(levels, floor)).astype(values.dtype)
