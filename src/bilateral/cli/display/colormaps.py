"""Colour maps: paint the values of a map in colours."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Colormap = Callable[[Array], Array]

UNKNOWN = (64, 64, 64)
"""Colour of unknown pixels: dark gray."""

# The polynomial fit of Google's turbo (Apache-2.0), one column per power, rows R, G, B.
_TURBO = (
    (0.13572138, 4.61539260, -42.66032258, 132.13108234, -152.94239396, 59.28637943),
    (0.09140261, 2.19418839, 4.84296658, -14.18503333, 4.27729857, 2.82956604),
    (0.10667330, 12.64194608, -60.58204836, 110.36276771, -89.90310912, 27.34824973),
)
# Equal steps of lightness, so that twice the error looks twice as bright.
_HEAT = ((0, 0, 0), (70, 15, 95), (165, 40, 90), (235, 105, 40), (252, 190, 60), (255, 255, 215))


@dataclass(frozen=True)
class Scale:
    """A colour map with the values at its two ends."""

    colormap: Colormap
    low: float
    high: float
    unit: str
    open_ended: bool = False
    """Whether values above `high` exist; they have the colour of `high`."""

    def paint(self, values: Array) -> Array:
        """Return the colours of a map; values that are not finite are gray.

        Parameters
        ----------
        values : (H, W) array

        Returns
        -------
        (H, W, 3) uint8 array
        """
        known = np.isfinite(values)
        fraction = (np.where(known, values, self.low) - self.low) / (self.high - self.low)
        colours = self.colormap(np.clip(fraction, 0, 1))
        return np.where(known[..., np.newaxis], colours, np.array(UNKNOWN, np.uint8))


def turbo(fraction: Array) -> Array:
    """Return colours from blue over green to red, for maps of values.

    Parameters
    ----------
    fraction : array
        Numbers from 0 to 1.

    Returns
    -------
    uint8 array with one more axis, for R, G and B
    """
    ones = np.ones_like(fraction)
    powers = np.stack([ones, fraction, *(fraction**power for power in range(2, 6))], axis=-1)
    return _to_bytes(255 * powers @ np.array(_TURBO).T)


def heat(fraction: Array) -> Array:
    """Return colours from black over red to pale yellow, for errors; arguments as for `turbo`."""
    stops = np.linspace(0, 1, len(_HEAT))
    channels = [np.interp(fraction, stops, [colour[c] for colour in _HEAT]) for c in range(3)]
    return _to_bytes(np.stack(channels, axis=-1))


def enlarge_dots(values: Array, radius: int = 1) -> Array:
    """Copy isolated known pixels to their unknown neighbours, to make them visible."""
    out = values.copy()
    for axis in (0, 1):
        for shift in (*range(-radius, 0), *range(1, radius + 1)):
            moved = np.roll(values, shift, axis)
            edge = slice(0, shift) if shift > 0 else slice(shift, None)
            moved[edge if axis == 0 else (slice(None), edge)] = np.nan
            out = np.where(np.isfinite(out), out, moved)
        values = out
    return out


def _to_bytes(values: Array) -> Array:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)
