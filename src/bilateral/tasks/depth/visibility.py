"""Visibility in a rectified stereo pair: find the pixels that the right view cannot see."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral.filters.stereo import visible_in_right_view

Array = NDArray[Any]

_HIDES = 2.0
"""A pixel hides another pixel of its column in the right view if it is nearer by this many pixels
of disparity."""


class LeftView(NamedTuple):
    """Disparities of a left view in other units: a value v means ``middle + unit * v`` pixels.

    A pixel x with the disparity d matches x - d in the right view.
    """

    middle: float
    unit: float

    def margin(self, z: Array, known: Array) -> int:
        """Return the number of columns at the left that typically have no match.

        Pixels of the median disparity there lie outside the right view, whatever disparity the
        map has.
        """
        width = z.shape[1]
        right = np.s_[:, width // 4 :]
        values = z[right][known[right]]
        if values.size == 0:
            return 0
        typical = self.middle + self.unit * float(np.median(values))
        return int(np.clip(typical, 0, width // 4))

    def visible(self, x: Array, surface: Array, trusted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether the right view sees the pixels `x` behind the trusted pixels of `surface`."""
        return visible_in_right_view(self._pixels(x), self._pixels(surface), trusted, _HIDES)

    def _pixels(self, values: Array) -> Array:
        return np.asarray(self.middle + self.unit * values, np.float32)
