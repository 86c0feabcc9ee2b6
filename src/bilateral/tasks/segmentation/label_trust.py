"""Trust labels by their depth inside a region, and measure the doubt along the borders."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.filters.labels import label_depth
from bilateral.tasks.segmentation import policy
from bilateral.tasks.segmentation.ranking import Ranked

Array = NDArray[Any]


def belt_width(ranked: Ranked, known: Array | None) -> float:
    """Measure the width of the belt of doubt along the borders of regions, in pixels.

    A pixel is in doubt if its two best classes differ by less than a half. Where a map was
    interpolated linearly between certain labels, the belt is half a cell wide. The width is 0 if
    no pixel is in doubt.
    """
    doubt = ranked.best - ranked.second < policy.DOUBT_MARGIN
    if known is not None:
        doubt &= known
    length = sum(_count_changes(ranked.labels, known, axis) for axis in (0, 1))
    return float(np.count_nonzero(doubt)) / max(length, 1)


def _count_changes(labels: Array, known: Array | None, axis: int) -> int:
    """Count the pairs of known neighbours along an axis whose labels differ."""
    differ = np.diff(labels, axis=axis) != 0
    if known is not None:
        differ &= np.delete(known, 0, axis=axis) & np.delete(known, -1, axis=axis)
    return int(np.count_nonzero(differ))


def boundary_confidence(labels: NDArray[np.int32], known: Array | None, radius: int) -> Array:
    """Compute a confidence that is low at the borders of regions and 1 in their middle.

    The confidence is ``1 - exp(-2 (d / t)^2)`` at the distance d to the nearest border, where t is
    the largest such distance nearby in the same region. So the middle of a thin region counts, too.
    A network is least reliable at the borders.
    """
    if known is not None:
        labels = np.where(known, labels, np.int32(-1))
    c: Array = -np.expm1(-policy.DEPTH_GAIN * np.square(label_depth(labels, radius)))
    return np.maximum(c, np.float32(policy.MIN_CONFIDENCE))
