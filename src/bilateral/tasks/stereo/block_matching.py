"""Block matching: disparity intervals of a rectified stereo pair, with their confidence."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral import color, confidence, validation
from bilateral.filters import stereo
from bilateral.tasks.stereo.search_range import consistent, warn_of_search_range

Array = NDArray[Any]

_MAX_WINDOW = 21
_CONSISTENCY = 1.0
"""Tolerance of the left-right check that tells a wrong search range, if there is no other check."""


def match_blocks(
    left: ArrayLike,
    right: ArrayLike,
    max_disparity: int,
    *,
    window: int = 7,
    margin: float = 0.05,
    consistency: float | None = 1.0,
) -> tuple[Array, Array]:
    """Match the pixels of the left view with the right view, each independently of the others.

    The cost of a disparity is the Hamming distance between the census transforms of the two pixels
    (which of the 9 x 7 pixels around are darker), summed over a window. Brightness and contrast of
    the views need not agree. The disparities with nearly the lowest cost form an interval [l, u],
    whose ends are interpolated linearly between whole disparities. The target is (l + u) / 2, the
    confidence exp(l - u) (supplement, stereo-based defocus).

    Parameters
    ----------
    left, right, max_disparity
        As for `stereo_depth`.
    window : int
        Side of the window in pixels, an odd number up to 21. Larger windows are more robust to
        noise and blunter at edges.
    margin : float
        Disparities with costs up to 1 + `margin` times the lowest cost belong to the interval.
    consistency : float or None
        Left-right check: a match counts as unknown if the best match of the right view differs by
        more than this many pixels. None: no check.

    Returns
    -------
    target : (H, W) float32 array
        Disparities in pixels, as from `stereo_depth`; NaN where unknown.
    confidence : (H, W) float32 array
        From 0 to 1; 0 where unknown.

    Warns
    -----
    UserWarning
        If matches pile up at `max_disparity` and continue beyond it, or if the views match much
        better in the opposite order.

    Examples
    --------
    >>> import numpy as np
    >>> from bilateral.tasks import match_blocks
    >>> scene = np.random.default_rng(0).integers(0, 256, (20, 50), np.uint8)
    >>> target, c = match_blocks(scene[:, :40], scene[:, 5:45], max_disparity=16)
    >>> bool(abs(target[:, 10:-4] - 5).max() < 0.1), bool(c[:, 10:-4].min() > 0.8)
    (True, True)
    """
    return match(left, right, max_disparity, window, margin, consistency, stacklevel=3)


def match(
    left: ArrayLike,
    right: ArrayLike,
    max_disparity: int,
    window: int,
    margin: float,
    consistency: float | None,
    stacklevel: int,
) -> tuple[Array, Array]:
    """Match as `match_blocks` does; a warning points `stacklevel` frames up."""
    left_view, right_pixels = validation.stereo_pair(left, right, None, any_scale=True)
    max_disparity = validation.count("max_disparity", max_disparity, 1)
    window = validation.odd("window", window, _MAX_WINDOW)
    margin = validation.not_negative("margin", margin)
    if consistency is not None:
        consistency = validation.positive("consistency", consistency)
    views = color.luma(left_view.pixels), color.luma(right_pixels)
    matches = stereo.match_blocks(*views, max_disparity, window, margin)
    tolerance = _CONSISTENCY if consistency is None else consistency
    agrees = consistent(matches, tolerance)
    warn_of_search_range(*views, matches.left, agrees, max_disparity, window, tolerance, stacklevel)
    target, c = confidence.from_interval(matches.lower, matches.upper)
    if consistency is not None:
        target, c = np.where(agrees, target, np.float32(np.nan)), np.where(agrees, c, np.float32(0))
    return target, c
