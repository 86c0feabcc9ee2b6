"""Recognise maps of stereo matching, whose wrong regions agree with themselves.

Their edges are where the matching failed, not where the photograph has edges, and many of their
regions are small. A good map of a cluttered scene has small regions, too, but the edges of the
photograph are along them; that of a bad photograph has few small regions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral import validation
from bilateral.tasks.depth.matching.agreement import map_edges
from bilateral.tasks.depth.surfaces import LARGE_PART, Surfaces, least_pixels
from bilateral.tasks.depth.windows import any_near, window_range

Array = NDArray[Any]

_DENSE, _LEAST_KNOWN = 0.9, 0.8
"""Matching gives most pixels a value; depth cameras leave holes."""
_LEAST_DISORDER = 0.9e-4
"""Part of doubtful pixels times part of pixels outside large surfaces: 1.0e-4 and more for ten maps
of matching, at most 0.5e-4 for the dense maps of cameras that were measured."""
_HOLED_DISORDER = 1.2e-3
"""The same for maps with holes, which are at most 3.2e-4 for cameras."""
_LEAST_ALIGNMENT = 0.3
"""Log-ratio of the photograph's contrast at edges of the map and beside them: at most 0.2 for maps
of matching without a left-right check, 0.4 and more for all others with disorder, even with bad
photographs."""
_CONTRAST_RADIUS, _BESIDE_RADIUS, _GAP_RADIUS = 2, 15, 4
"""Contrast is taken over 5 x 5 pixels; "beside" is from 5 to 15 pixels away."""
_LEAST_CONTRAST, _SPEAK_RADIUS = 12.0, 8
"""The photograph can tell something where it has this contrast, in 8-bit levels, nearby."""
_LEAST_JUDGED = 0.5
"""It must be able to at this part of the edges."""
_LEVELS = 4.0
"""Contrasts below this many 8-bit levels are noise."""


def is_matched(z: Array, guide: validation.Reference, surfaces: Surfaces) -> bool:
    """Return whether an (H, W) map, NaN where unknown, looks like one of stereo matching."""
    large = surfaces.sizes >= least_pixels(z.size, LARGE_PART)
    masks = np.isfinite(z), surfaces.doubt, large
    if not is_disordered(z.size, *(int(np.count_nonzero(mask)) for mask in masks)):
        return False
    return _alignment(z, guide, surfaces) < _LEAST_ALIGNMENT


def is_disordered(pixels: int, known: int, doubtful: int, large: int) -> bool:
    """Return whether a map has as many errors as those of matching, by its numbers of pixels.

    Parameters
    ----------
    pixels : int
        All pixels of the map.
    known, doubtful, large : int
        Known pixels, doubtful ones, and those of large surfaces.
    """
    if known < _LEAST_KNOWN * pixels:
        return False
    least = _LEAST_DISORDER if known >= _DENSE * pixels else _HOLED_DISORDER
    return doubtful * (known - doubtful - large) >= least * known**2


def _alignment(z: Array, guide: validation.Reference, surfaces: Surfaces) -> float:
    """Mean log-ratio of the photograph's contrast at the map's edges and beside them.

    Infinite if the photograph is too flat around most edges to tell.
    """
    edge = map_edges(z, surfaces)
    grey = guide.pixels.astype(np.float32).mean(axis=2) * np.float32(255 / guide.highest)
    contrast = window_range(grey, _CONTRAST_RADIUS)
    speaks = any_near(contrast > _LEAST_CONTRAST, _SPEAK_RADIUS)
    beside = any_near(edge, _BESIDE_RADIUS) & ~any_near(edge, _GAP_RADIUS) & np.isfinite(z) & speaks
    judged = edge & speaks
    if np.count_nonzero(judged) <= _LEAST_JUDGED * np.count_nonzero(edge) or not beside.any():
        return np.inf
    contrast = np.log(contrast + np.float32(_LEVELS))
    return float(contrast[judged].mean() - contrast[beside].mean())
