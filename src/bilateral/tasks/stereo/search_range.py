"""Warn of a wrong search range of block matching: a limit that is too low, or exchanged views.

A suspicion costs nothing: many matches at the largest disparity, or few matches at all. Only then
a second search over a few rows decides. Correct matches survive a wider search; accidental ones
lose against other accidents.
"""

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral import confidence
from bilateral.filters import stereo

Array = NDArray[Any]

_LIMIT_FRACTION = 0.01
"""Suspicious fraction of matches at the largest disparity."""
_POOR_FRACTION = 0.5
"""Suspicious fraction of pixels with a match: exchanged views have fewer."""
_LEAST_MATCHES = 1000
"""Fewer matches than this prove nothing."""
_ROWS = 128
"""Rows of the second search."""
_MOVED = 0.3
"""The limit is too low if this fraction of the matches at the limit moves beyond it in a wider
search. For the Middlebury scenes it is 0.32 or more, for a plane at the limit 0."""
_KEPT = 0.88
"""A wider search of matching views keeps this fraction of its matches or more; of other views it
keeps 0.85 at most."""
_EXCHANGED = 1.6
"""The views are exchanged if the opposite order has this many times as many matches. For the
Middlebury scenes it is 1.8 or more."""
_HEADROOM = 1.2
"""Proposed limit, relative to the largest disparity of the wider search."""


def consistent(matches: stereo.Matches, tolerance: float) -> NDArray[np.bool_]:
    """Return which matches of the left view pass the left-right check."""
    agrees = confidence.left_right_consistency(matches.left, matches.right, tolerance) > 0
    return np.asarray(agrees)


def warn_of_search_range(
    left: Array,
    right: Array,
    best: Array,
    agrees: NDArray[np.bool_],
    max_disparity: int,
    window: int,
    tolerance: float,
    stacklevel: int,
) -> None:
    """Warn if the views seem exchanged, or else if `max_disparity` seems too small.

    Parameters
    ----------
    left, right : (H, W) array
        Luma of the views.
    best : (H, W) array
        Best disparity of each pixel of the left view.
    agrees : (H, W) array of bool
        Which of them pass the left-right check with `tolerance`.
    max_disparity, window : int
        As for `match_blocks`.
    tolerance : float
    stacklevel : int
        A warning points this many frames up, where 1 is the caller of this function.
    """

    def search(rows: slice, limit: int, exchanged: bool = False) -> tuple[Array, Array]:
        views = (right[rows], left[rows]) if exchanged else (left[rows], right[rows])
        matches = stereo.match_blocks(*views, limit, window, 0.0)
        return matches.left, consistent(matches, tolerance)

    count, height, width = int(agrees.sum()), *agrees.shape
    if count < _LEAST_MATCHES:
        return
    if count < _POOR_FRACTION * agrees.size:
        middle = slice(max(0, (height - _ROWS) // 2), (height + _ROWS) // 2)
        other = search(middle, max_disparity, exchanged=True)[1].mean()
        if other > _EXCHANGED * agrees[middle].mean():
            warnings.warn(
                f"left, right: {100 * agrees[middle].mean():.0f} % of the pixels have a match, but "
                f"{100 * other:.0f} % have one if left and right change places. Are they swapped?",
                UserWarning,
                stacklevel + 1,
            )
            return
    at_limit = agrees & (best >= max_disparity)
    fraction = at_limit.sum() / count
    if fraction < _LIMIT_FRACTION or max_disparity >= width // 2:
        return
    rows = _fullest_rows(at_limit)
    wider, still_agrees = search(rows, width // 2)
    moved = at_limit[rows] & still_agrees & (wider > max_disparity)
    is_enough = moved.sum() < _MOVED * at_limit[rows].sum()
    if is_enough or still_agrees.sum() < _KEPT * agrees[rows].sum():
        return
    largest = int(np.percentile(wider[moved], 95))
    proposed = min(math.ceil(_HEADROOM * largest), width - 1)
    warnings.warn(
        f"max_disparity: {100 * fraction:.0f} % of the matches are at the limit of "
        f"{max_disparity} pixels. A wider search finds many of them beyond it, up to about "
        f"{largest} pixels. Use a larger limit, such as max_disparity={proposed}.",
        UserWarning,
        stacklevel + 1,
    )


def _fullest_rows(marked: NDArray[np.bool_]) -> slice:
    """Return the rows with the most marked pixels, as many as a second search takes."""
    sums = np.concatenate([[0], np.cumsum(marked.sum(axis=1))])
    count = min(_ROWS, len(marked))
    first = int(np.argmax(sums[count:] - sums[:-count]))
    return slice(first, first + count)
