"""What a rectified stereo pair says about disparities: which pixels the other view can see."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral.backends import cpu

Array = NDArray[Any]

_HIDES = 2.0
"""A pixel hides another one that falls on its column if it is nearer by this many pixels."""


class LeftView(NamedTuple):
    """Disparities of a left view, x - d being the column in the right one, in other units.

    A value v of a map means ``middle + unit * v`` pixels.
    """

    middle: float
    unit: float

    def margin(self, z: Array, known: Array) -> int:
        """How many columns at the left have no partner, as a rule.

        A pixel of the median disparity there lies outside the right view, whatever was matched.
        """
        width = z.shape[1]
        right = np.s_[:, width // 4 :]
        seen = z[right][known[right]]
        if seen.size == 0:
            return 0
        usual = self.middle + self.unit * float(np.median(seen))
        return int(np.clip(usual, 0, width // 4))

    def seen(self, claim: Array, surface: Array, trusted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether the right view sees pixels at `claim` behind the trusted ones of `surface`."""
        return cpu.visible(self._pixels(claim), self._pixels(surface), trusted, _HIDES)

    def _pixels(self, values: Array) -> Array:
        return np.asarray(self.middle + self.unit * values, np.float32)
