"""Rectified stereo pairs: block matching, and visibility of pixels in the other view."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.backends import cpu

Array = NDArray[Any]
Matches = cpu.Matches

_MAX_DISPARITY = 32766
"""The core stores disparities as 16-bit integers."""


def match_blocks(
    left: Array, right: Array, max_disparity: int, window: int, margin: float
) -> Matches:
    """Find the best disparity of each pixel of both views by matching census transforms.

    Parameters
    ----------
    left, right : (H, W) array
        Luma of the two views, compared in float32.
    max_disparity : int
        Largest disparity to try. No disparity reaches the width of the image.
    window : int
        Side of the square over which costs are summed, in pixels; odd.
    margin : float
        Disparities with costs up to 1 + `margin` times the lowest cost form the interval.

    Returns
    -------
    Matches
        The interval of the left view as `lower` and `upper`, and the best disparities of both
        views as `left` and `right`.
    """
    most = min(max_disparity, left.shape[1] - 1, _MAX_DISPARITY)
    left, right = (np.ascontiguousarray(view, np.float32) for view in (left, right))
    return cpu.match_blocks(left, right, most, window, margin)


def visible_in_right_view(
    disparity: Array, surface: Array, trusted: NDArray[np.bool_], tolerance: float
) -> NDArray[np.bool_]:
    """Whether the right view sees the pixels of the left view.

    A pixel is hidden if its match lies outside the right view, or if a trusted pixel of `surface`
    with the same column there is nearer by more than `tolerance` pixels of disparity.

    Parameters
    ----------
    disparity : (H, W) float32 array
        Disparities of the pixels in question.
    surface : (H, W) float32 array
        Disparities of the pixels that may hide them.
    trusted : (H, W) bool array
        Which pixels of `surface` hide others.
    tolerance : float
    """
    return cpu.visible(disparity, surface, trusted, tolerance)
