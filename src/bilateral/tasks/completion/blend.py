"""Weigh candidates by the errors with which they predict held-out points."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_POWER = 6.0
"""A candidate with twice the error has this power of two less weight."""
_ENOUGH = 20
"""With so many held-out points, the power is half of that."""
_LEAST = 1e-6
"""Errors below this part of the values' size are rounding."""


def weigh(predictions: Sequence[Array], values: Array, area: Array) -> Array:
    """Return the weights of candidates, which sum to 1.

    Parameters
    ----------
    predictions : sequence of (N,) arrays
        One per candidate.
    values : (N,) array
        The held-out values.
    area : (N,) array
        Number of pixels that each of them stands for.
    """
    if values.size == 0:
        return np.full(len(predictions), 1 / len(predictions))
    share = area / area.sum()
    least = _LEAST * (float(np.abs(values).max()) or 1.0)
    errors = []
    for predicted in predictions:
        e = np.abs(predicted.astype(np.float64) - values)
        errors.append(max(float(np.sqrt((share @ e) * np.sqrt(share @ e**2))), least))
    power = _POWER * values.size / (values.size + _ENOUGH)
    weights = (np.array(errors) / min(errors)) ** -power
    return np.asarray(weights / weights.sum())
