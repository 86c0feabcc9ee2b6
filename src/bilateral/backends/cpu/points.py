"""Interpolate between scattered pixels."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral import _core

Array = NDArray[Any]


def interpolate_points(z: Array) -> tuple[Array, NDArray[np.uint32]]:
    """Fill the NaN of a float32 map linearly; also return the indices of nearest known pixels."""
    out, nearest = np.empty_like(z), np.empty(z.shape, np.uint32)
    _core.interpolate_points(z, out, nearest)
    return out, nearest
