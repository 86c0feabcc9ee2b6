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
_NEGLIGIBLE = 0.03
"""Candidates with a smaller weight are left out."""


def weigh(
    predictions: Sequence[Array], values: Array, share: Array, last_factor: float = 1.0
) -> Array:
    """Return the weights of candidates, which sum to 1.

    Parameters
    ----------
    predictions : sequence of (N,) arrays
        One per candidate.
    values : (N,) array
        The held-out values.
    share : (N,) array
        Part of the pixels that each of them stands for.
    last_factor : float
        Factor of the last candidate's error.
    """
    if values.size == 0:
        return np.full(len(predictions), 1 / len(predictions))
    share = share / share.sum()
    least = _LEAST * (float(np.abs(values).max()) or 1.0)
    errors = []
    for predicted in predictions:
        e = np.abs(predicted.astype(np.float64) - values)
        errors.append(max(float(np.sqrt((share @ e) * np.sqrt(share @ e**2))), least))
    errors[-1] *= last_factor
    power = _POWER * values.size / (values.size + _ENOUGH)
    weights = (np.array(errors) / min(errors)) ** -power
    weights /= weights.sum()
    weights[weights < min(_NEGLIGIBLE, weights.max())] = 0
    return np.asarray(weights / weights.sum())
