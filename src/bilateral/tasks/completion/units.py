"""Units in which surfaces of the world are affine."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_MARGIN = 1.05
"""Depths are at most this many times as far as the farthest point, or as near as the nearest."""


class Unit(NamedTuple):
    """Values themselves, as disparities, or their inverse, as depths."""

    inverse: bool
    low: float
    """Smallest value of a result."""
    high: float

    @classmethod
    def of(cls, values: Array, *, inverse: bool) -> "Unit":
        """Choose the unit of known values, which are positive if `inverse`."""
        low, high = float(values.min()), float(values.max())
        if inverse:
            return cls(True, low / _MARGIN, high * _MARGIN)
        margin = (_MARGIN - 1) * (high - low)
        return cls(False, low - margin, high + margin)

    def to(self, z: Array) -> Array:
        """Convert values."""
        return 1 / z if self.inverse else z

    def back(self, u: Array) -> Array:
        """Convert to values within the range of the points."""
        if self.inverse:
            return 1 / np.clip(u, np.float32(1 / self.high), np.float32(1 / self.low))
        return np.clip(u, np.float32(self.low), np.float32(self.high))
