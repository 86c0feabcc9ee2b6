"""Match the blocks of a stereo pair and find the visible pixels."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral import _core
from bilateral.threads import get_num_threads

Array = NDArray[Any]


class Matches(NamedTuple):
    """Result of block matching: an interval around the best disparity; the best of each view."""

    lower: NDArray[np.float32]
    upper: NDArray[np.float32]
    left: NDArray[np.float32]
    right: NDArray[np.float32]


def match_blocks(
    left: Array, right: Array, max_disparity: int, window: int, margin: float
) -> Matches:
    """Match (H, W) float32 views over disparities from 0 to `max_disparity`, which is below W.

    Costs are summed over window x window pixels. The interval holds the disparities with a cost of
    up to 1 + `margin` times the best.
    """
    matches = Matches(*(np.empty(left.shape, np.float32) for _ in range(4)))
    threads = get_num_threads()
    _core.match_blocks(left, right, max_disparity + 1, window // 2, margin, matches, threads)
    return matches


def visible(
    claim: Array, surface: Array, trusted: NDArray[np.bool_], tolerance: float
) -> NDArray[np.bool_]:
    """Return whether the right view sees the pixels of the left view at the disparities `claim`.

    The right view sees a pixel that lies inside it, unless a trusted pixel of the map `surface` on
    the same column there has a disparity larger by more than the tolerance. Maps are float32.
    """
    out = np.empty(claim.shape, np.bool_)
    _core.visible(claim, surface, trusted, tolerance, out, get_num_threads())
    return out
