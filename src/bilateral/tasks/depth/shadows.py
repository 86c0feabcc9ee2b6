"""Recognise the shadows of a depth camera's projector: near surfaces do not continue there.

A camera with a projector, or a second camera, beside it sees surfaces that the other one does not:
a strip beside each near surface, always on the same side. Its width is proportional to the
difference of the inverse depths of both surfaces. Where the holes of a map obey this law, they
belong to the surface behind, whatever the photograph shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_LEAST_WIDTH = 3
"""Narrower holes are found at any edge."""
_JUMPS = 2.0
"""Both surfaces differ by so many jumps."""
_BESIDE, _SLANT = 6, 0.5
"""A hole in a slanted surface is no shadow: within so many pixels beside it, the slope is above
this part of that across the hole."""
_ROUNDING, _PART = 1.0, 0.06
"""Widths obey the law within so many pixels, or this part of them."""
_LEAST_RUNS, _LEAST_SHARE, _LEAST_VARIETY = 60, 0.48, 1.2
"""Holes that must obey the law on one side of near surfaces: their number, their share, and the
factor between their differences of inverse depth (10 % are smaller, 10 % larger). Otherwise holes
of one width, or within one slanted surface, would obey it too."""


class _Holes(NamedTuple):
    """Holes in rows between two surfaces, and the depths beside them. Inverse depths, pixels."""

    row: Array
    left: Array
    """Column of the last pixel before the hole."""
    right: Array
    """Column of the first pixel after it."""
    width: Array
    """Number of pixels without data."""
    near: Array
    far: Array
    flat: Array
    """Whether both surfaces are flat beside the hole, compared with the slope across it."""

    def part(self, where: Array) -> _Holes:
        return _Holes(*(values[where] for values in self))


def behind_shadows(
    x: Array, kept: Array, measured: Array, jump_at: Callable[[Array], Array]
) -> Array:
    """Give the pixels in shadows the depth of the surface behind.

    Parameters
    ----------
    x : (H, W) float32 array
        Positive depths: data where they are kept, and any filling elsewhere.
    kept : (H, W) array of bool
    measured : (H, W) float32 array
        All data; NaN where there are none.
    jump_at : function
        Smallest difference between surfaces at depths.

    Returns
    -------
    (H, W) float32 array
        `x` itself if the map has no shadows.
    """
    unknown = np.isnan(measured)
    holes = _holes_between_surfaces(x, kept, unknown, jump_at)
    nearer_left = x[holes.row, holes.left] < x[holes.row, holes.right]
    for on_left in (True, False):
        side = holes.part(nearer_left == on_left)
        baseline = _baseline(side.part(side.flat))
        if baseline is None:
            continue
        x = x.copy()
        # Wider holes have other causes, too. What is unknown beside the near surface may be a part
        # of it; the shadow ends where the surface behind is known.
        reach = baseline * (side.near - side.far)
        slack = _slack(reach)
        first, last = side.left + 1, side.right
        part = np.maximum(reach - slack, 0).astype(np.intp)
        wide = side.width > reach + slack
        if on_left:
            first = np.where(wide, np.maximum(last - part, first), first)
        else:
            last = np.where(wide, np.minimum(first + part, last), last)
        pixels, run = _pixels(side.row * x.shape[1] + first, last - first)
        flat, middle = x.reshape(-1), 0.5 * (side.near + side.far)
        wrong = unknown.ravel()[pixels] & (1 / flat[pixels] > middle[run])
        flat[pixels[wrong]] = 1 / side.far[run[wrong]]
    return x


def _holes_between_surfaces(
    x: Array, kept: Array, unknown: Array, jump_at: Callable[[Array], Array]
) -> _Holes:
    """Find the holes in rows with a nearer surface on one side."""
    height, width = kept.shape
    framed = np.ones((height, width + 2), np.bool_)
    framed[:, 1:-1] = kept
    changes = np.flatnonzero(framed.ravel()[1:] != framed.ravel()[:-1])
    row, left = np.divmod(changes[::2], width + 2)
    right = changes[1::2] - row * (width + 2)
    left -= 1
    inside = (left >= 0) & (right < width)
    row, left, right = row[inside], left[inside], right[inside]
    before = np.zeros((height, width + 1), np.int32)
    np.cumsum(unknown, axis=1, out=before[:, 1:])
    count = before[row, right] - before[row, left]
    ends = x[row, left], x[row, right]
    one, other = 1 / ends[0], 1 / ends[1]
    rise = np.abs(one - other)
    beyond = np.maximum(left - _BESIDE, 0), np.minimum(right + _BESIDE, width - 1)
    across = _SLANT * rise / (right - left)
    flat = [
        np.abs(end - 1 / x[row, at]) <= across * np.abs(at - column)
        for end, column, at in ((one, left, beyond[0]), (other, right, beyond[1]))
    ]
    found = np.abs(ends[0] - ends[1]) > _JUMPS * jump_at(np.minimum(*ends))
    found &= (count >= _LEAST_WIDTH) & (flat[0] | flat[1])
    near, far = np.maximum(one, other), np.minimum(one, other)
    return _Holes(row, left, right, count, near, far, flat[0] & flat[1]).part(found)


def _baseline(holes: _Holes) -> float | None:
    """Return widths over differences of inverse depth, or None if the holes obey no such law."""
    count, rise = holes.row.size, holes.near - holes.far
    if count < _LEAST_RUNS:
        return None
    slack = _slack(holes.width)
    # Each hole allows a range of baselines: find the one that most holes allow.
    low, high = np.sort((holes.width - slack) / rise), np.sort((holes.width + slack) / rise)
    allowed = np.arange(1, count + 1) - np.searchsorted(high, low)
    best = int(np.argmax(allowed))
    middle = 0.5 * (low[best] + high[np.searchsorted(high, low[best])])
    obey = np.abs(holes.width - middle * rise) <= slack
    if np.count_nonzero(obey) < max(_LEAST_RUNS, _LEAST_SHARE * count):
        return None
    small, large = np.quantile(rise[obey], (0.1, 0.9))
    if large < _LEAST_VARIETY * small:
        return None
    width, rise = holes.width[obey], rise[obey]  # rounded, so wide ones tell more
    return float(np.sum(width * rise) / np.sum(rise * rise))


def _slack(width: Array) -> Array:
    """Return by how many pixels widths may differ from the law."""
    return np.maximum(_ROUNDING, _PART * width)


def _pixels(starts: Array, lengths: Array) -> tuple[Array, Array]:
    """Return the pixels of all runs, one after the other, and the run of each."""
    lengths = np.maximum(lengths, 0)
    run = np.repeat(np.arange(starts.size), lengths)
    ends = np.cumsum(lengths)
    return starts[run] + np.arange(run.size) - (ends - lengths)[run], run
