"""Geometry of a rectified stereo pair: what the right view cannot see, and what is background."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral import validation
from bilateral.filters.stereo import visible_in_right_view
from bilateral.tasks.depth.windows import window_mean

Array = NDArray[Any]

_HIDES = 2.0
"""A pixel hides another pixel of its column in the right view if it is nearer by this many pixels
of disparity."""
_NEAR_PERCENTILE = 90
"""Nearly all of the map is farther than this percentile of its disparities."""
_ASYMMETRY, _FLAT_ASYMMETRY = 1.3, 0.4
"""Factor of errors in front of a solution, and how much larger it is where the photograph is flat.
From 1.4 on everywhere, far outliers of a periodic texture win."""
_TEXTURE_RADIUS = 4
_FLAT, _NOISE_PERCENTILE = 1.7, 5
"""Flat are pixels with a texture below so many times the low percentile, which is noise."""
_LEAST_FLAT, _MOST_FLAT = 0.3, 3.0
"""Bounds of a flat texture in 8-bit levels per pixel."""
_DARKEST, _BRIGHTEST = 8.0, 247.0
"""8-bit levels beyond which pixels are clipped."""


def background_asymmetry(guide: validation.Reference) -> Array:
    """Return the factor of errors in front of a solution, for each pixel of a photograph.

    Pixels that only one view sees belong to the background. Matchers widen objects into flat
    background, too, so the factor is larger where the photograph has little texture along rows.
    """
    grey = guide.pixels.astype(np.float32).mean(axis=2) * np.float32(255 / guide.highest)
    steps = np.abs(np.diff(grey, axis=1, append=grey[:, -1:]))
    texture = window_mean(steps, _TEXTURE_RADIUS)
    noise = float(np.percentile(texture, _NOISE_PERCENTILE))
    flat = float(np.clip(_FLAT * noise, _LEAST_FLAT, _MOST_FLAT))
    exposed = (grey > _DARKEST) & (grey < _BRIGHTEST)  # else the texture is lost
    factor = _ASYMMETRY + _FLAT_ASYMMETRY * exposed * np.exp(-np.square(texture / flat))
    return np.asarray(factor, np.float32)


class LeftView(NamedTuple):
    """Disparities of a left view in other units: a value v means ``middle + unit * v`` pixels.

    A pixel x with the disparity d matches x - d in the right view.
    """

    middle: float
    unit: float
    asymmetry: Array
    """Factor of errors in front of a solution, at each pixel."""

    def margin(self, z: Array, known: Array) -> int:
        """Return the number of columns at the left that may have no match.

        Pixels there lie outside the right view if they are as near as the nearest parts of the map,
        whatever disparity the map has.
        """
        width = z.shape[1]
        right = np.s_[:, width // 4 :]
        values = z[right][known[right]]
        if values.size == 0:
            return 0
        near = self.middle + self.unit * float(np.percentile(values, _NEAR_PERCENTILE))
        return int(np.clip(near, 0, width // 4))

    def matches(self, z: Array) -> NDArray[np.bool_]:
        """Whether the match of each pixel lies inside the right view."""
        return np.asarray(self._pixels(z) <= np.arange(z.shape[1], dtype=np.float32))

    def weigh(self, errors: Array) -> Array:
        """Enlarge errors of data in front of a solution, and reduce those behind it."""
        return errors * np.where(errors > 0, self.asymmetry, 1 / self.asymmetry)

    def visible(self, x: Array, surface: Array, trusted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether the right view sees the pixels `x` behind the trusted pixels of `surface`."""
        return visible_in_right_view(self._pixels(x), self._pixels(surface), trusted, _HIDES)

    def _pixels(self, values: Array) -> Array:
        return np.asarray(self.middle + self.unit * values, np.float32)
