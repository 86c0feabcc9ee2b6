"""Choose between two solutions, region by region, where they differ."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.filters.labels import find_regions
from bilateral.tasks.depth.anneal import TRUSTED, Solution
from bilateral.tasks.depth.matching.visibility import LeftView

Array = NDArray[Any]

DIFFERENT = 2.0
"""Solutions differ where they are more than this many units apart."""
_SAME = 1.0
"""Values less than a unit apart agree."""
_SUPPORT = 0.65
"""Take the cautious solution only if it agrees with this fraction of the region's data."""
_LEAST_PIXELS = 8
"""Smaller regions are noise, unless they continue the map beside them."""


def choose(bold: Solution, cautious: Array, z: Array, known: Array, view: LeftView | None) -> Array:
    """Return the bold solution, except in regions where the data support the cautious one.

    The bold rounds may take a thin structure for outliers. Such a structure is a region of its own
    whose data mostly agree with each other, so the cautious rounds keep it. Wrong data rarely agree
    so well.

    Parameters
    ----------
    bold : Solution
        In units.
    cautious : (H, W) float32 array
        In units.
    z : (H, W) float32 array
        The data in units; finite.
    known : (H, W) bool array
        Where there are data.
    view : LeftView, optional
        For disparities: reject regions that are mostly invisible in the other view.
    """
    different = np.abs(cautious - bold.x) > DIFFERENT
    regions, count = find_regions(cautious, different, _SAME)

    def pixels(mask: Array) -> Array:
        """Number of pixels of each region inside a mask."""
        return np.bincount(regions[mask], minlength=count + 1)

    agree = pixels(known & (np.abs(z - cautious) < _SAME))
    agree_with_bold = pixels(known & (np.abs(z - bold.x) < _SAME))
    take = (agree >= _SUPPORT * pixels(known)) & (agree > agree_with_bold)
    if view is not None:
        visible = view.visible(cautious, bold.x, bold.weights > TRUSTED)
        take &= 2 * pixels(visible) >= pixels(np.ones_like(visible))
    take[0] = False
    large = take & (pixels(np.ones_like(different)) >= _LEAST_PIXELS)
    x = np.where(large[regions], cautious, bold.x)
    take &= large | (pixels(_continues(cautious, x)) > 0)
    return np.where(take[regions], cautious, bold.x)


def _continues(candidate: Array, x: Array) -> Array:
    """Where a candidate agrees with the map at a neighbour in x or y."""
    agrees = np.zeros(x.shape, np.bool_)
    for a, b in ((np.s_[1:], np.s_[:-1]), (np.s_[:, 1:], np.s_[:, :-1])):
        agrees[a] |= np.abs(candidate[a] - x[b]) < _SAME
        agrees[b] |= np.abs(candidate[b] - x[a]) < _SAME
    return agrees
