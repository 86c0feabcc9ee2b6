"""Choosing between two solutions, region by region where they differ."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.backends import cpu
from bilateral.tasks.depth.anneal import TRUSTED, Solution
from bilateral.tasks.depth.visibility import LeftView

Array = NDArray[Any]

DIFFERENT = 2.0
"""Solutions that are further apart than this, in units, are different."""
_SUPPORT = 0.65
"""The part of a region's data that must agree with the cautious solution for it to be taken."""
_LEAST_PIXELS = 8
"""Smaller regions are taken for noise, unless they continue what lies beside them."""


def choose(bold: Solution, cautious: Array, z: Array, known: Array, view: LeftView | None) -> Array:
    """The bold solution, but the cautious one in the regions where the data speak for that.

    A thin structure that the bold rounds took for outliers is a region of its own, most of whose
    data agree with each other, so that the cautious rounds found them. Where data are wrong they
    rarely agree so well.

    Parameters
    ----------
    bold : Solution
        In units.
    cautious : (H, W) float32 array
        Likewise.
    z : (H, W) float32 array
        The data, in units; finite.
    known : (H, W) bool array
        Where there are data.
    view : LeftView, optional
        For disparities: what the other view cannot see for the most part is not taken.
    """
    different = np.abs(cautious - bold.x) > DIFFERENT
    labels, count = cpu.find_regions(cautious, different, 1.0)

    def pixels(of: Array) -> Array:
        """How many of each region's pixels are of a kind."""
        return np.bincount(labels[of], minlength=count + 1)

    agree = pixels(known & (np.abs(z - cautious) < 1))
    take = (agree >= _SUPPORT * pixels(known)) & (agree > pixels(known & (np.abs(z - bold.x) < 1)))
    if view is not None:
        seen = view.seen(cautious, bold.x, bold.weights > TRUSTED)
        take &= 2 * pixels(seen) >= pixels(np.ones_like(seen))
    take[0] = False
    large = take & (pixels(np.ones_like(different)) >= _LEAST_PIXELS)
    x = np.where(large[labels], cautious, bold.x)
    take &= large | (pixels(_continues(cautious, x)) > 0)
    return np.where(take[labels], cautious, bold.x)


def _continues(claim: Array, x: Array) -> Array:
    """Where a claim is much like the map right beside, above or below."""
    found = np.zeros(x.shape, np.bool_)
    for a, b in ((np.s_[1:], np.s_[:-1]), (np.s_[:, 1:], np.s_[:, :-1])):
        found[a] |= np.abs(claim[a] - x[b]) < 1
        found[b] |= np.abs(claim[b] - x[a]) < 1
    return found
