"""Tell whether the edges of a disparity map are those of its photograph, so that it is right.

A right map has its edges where the photograph has contrast. The edges of a matcher's errors lie
anywhere, and more so where the photograph is flat, since matching fails there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral import validation
from bilateral.filters.median import median
from bilateral.tasks.depth.surfaces import Surfaces
from bilateral.tasks.depth.windows import any_near, window_range

Array = NDArray[Any]

_MOST_DOUBT = 0.1
"""Doubtful part of the known pixels of a right map; edges that bleed give up to 10 %."""
_LEAST_EDGE = 1.5
"""Smallest edge in pixels of disparity; smaller steps may come from rounding."""
_LEAST_SEPARATION = 0.64
"""Distance of the log-contrasts at edges and beside them, over their standard deviation. For the
true disparities of five real scenes, 1.1 to 2.1 with good photographs and at least 0.67 with
spoiled ones; for real maps of matching at most 0.36, for those of made scenes at most 0.62."""
_LEAST_VARIETY = 0.33
"""A photograph whose log-contrast deviates less shows no edges. Pure noise has up to 0.28,
photographs have 0.9 and more, dark or blurred ones 0.7."""
_CONTRAST_RADIUS, _BESIDE_RADIUS, _GAP_RADIUS = 1, 15, 4
"""Contrast is taken over 3 x 3 pixels; "beside" is from 5 to 15 pixels away."""


def log_contrast(guide: validation.Reference) -> Array:
    """Return the logarithm of the photograph's contrast at each pixel, in 8-bit levels."""
    grey = guide.pixels.astype(np.float32).mean(axis=2) * np.float32(255 / guide.highest)
    return np.log1p(window_range(grey, _CONTRAST_RADIUS))


def shows_edges(contrast: Array) -> bool:
    """Whether a photograph of this log-contrast shows edges at all."""
    return bool(contrast.std() >= _LEAST_VARIETY)


def edges_agree(z: Array, contrast: Array, surfaces: Surfaces, pixel: float) -> bool:
    """Whether a map has few doubtful pixels and its edges where the photograph has contrast.

    Parameters
    ----------
    z : (H, W) float32 array
        NaN where it is unknown.
    contrast : (H, W) array
        Log-contrast of the photograph.
    surfaces : Surfaces
        Of the map.
    pixel : float
        A disparity of one pixel, in the map's unit.
    """
    known = np.isfinite(z)
    if np.count_nonzero(surfaces.doubt) > _MOST_DOUBT * np.count_nonzero(known):
        return False
    without_outliers = median(z, 3)
    edge = map_edges(without_outliers, surfaces, _LEAST_EDGE * pixel)
    beside = any_near(edge, _BESIDE_RADIUS) & ~any_near(edge, _GAP_RADIUS) & known
    if not edge.any() or not beside.any():
        return True  # no edge can be wrong
    at, away = contrast[edge], contrast[beside]
    deviation = np.sqrt((at.var() + away.var()) / 2)
    return bool(at.mean() - away.mean() >= _LEAST_SEPARATION * deviation)


def map_edges(z: Array, surfaces: Surfaces, least: float = 0.0) -> NDArray[np.bool_]:
    """Return the pixels whose neighbours along a row or column differ by two jumps and `least`."""
    jump = 2 * surfaces.jump_at(z) + least
    edge = np.zeros(z.shape, np.bool_)
    edge[:, 1:-1] = np.abs(z[:, 2:] - z[:, :-2]) > jump[:, 1:-1]
    edge[1:-1] |= np.abs(z[2:] - z[:-2]) > jump[1:-1]
    return edge
