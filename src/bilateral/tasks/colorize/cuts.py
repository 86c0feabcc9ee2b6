"""Find cuts between the frames of a gray video."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_SIDE = 64
"""Frames are compared at about this many blocks along the longer side."""
_SAME_LEVEL = (4.0, 12.0)
"""A block is steady if it changes by less, apart from the exposure: half of the contrast of the
frame, within these 8-bit grey levels."""
_STEADY = 0.5
"""A larger share of steady blocks is no cut."""
_CORRELATED = 0.2
"""A larger correlation, after the best shift, is no cut: the camera moves."""
_FARTHEST = 0.35
"""Largest shift between two frames, as a fraction of the frame."""


class CutFinder:
    """Tells for each frame whether a new shot starts with it."""

    def __init__(self) -> None:
        self._before: Array | None = None

    def push(self, levels: Array) -> bool:
        """Take the next frame, (H, W) in 8-bit grey levels; return whether it follows a cut."""
        now = _blocks(levels)
        before, self._before = self._before, now
        return before is not None and is_cut(before, now)


def is_cut(before: Array, now: Array) -> bool:
    """Whether two frames, in blocks, show different scenes.

    They show the same one if most blocks keep their brightness, apart from the exposure, or if the
    details of one frame are found in the other after a shift.
    """
    if _steady_share(before, now) > _STEADY:
        return False
    return _shifted_correlation(_details(before), _details(now)) < _CORRELATED


def _blocks(levels: Array) -> Array:
    """Mean over square blocks."""
    height, width = levels.shape
    side = max(2, round(max(height, width) / _SIDE))
    rows, columns = max(1, height // side), max(1, width // side)
    side_y, side_x = min(side, height), min(side, width)
    cropped = levels[: rows * side_y, : columns * side_x]
    blocks = cropped.reshape(rows, side_y, columns, side_x)
    return np.asarray(blocks.mean(axis=(1, 3), dtype=np.float32))


def _steady_share(before: Array, now: Array) -> float:
    """Fraction of blocks that stay the same, if gain and offset of the exposure are allowed for."""
    a, b = before - before.mean(), now - now.mean()
    variance = float((a * a).mean())
    contrast = float(np.sqrt(min(variance, (b * b).mean())))
    gain = float(np.clip((a * b).mean() / variance, 0.5, 2.0)) if variance > 0 else 1.0
    limit = np.clip(contrast / 2, *_SAME_LEVEL)
    fits = np.abs(b - gain * a) < limit
    same = np.abs(now - before) < limit
    flat = contrast < 1  # such a frame, a black one for example, fits many others by an offset
    return float(same.mean() if flat else max(fits.mean(), same.mean()))


def _details(blocks: Array) -> Array:
    """Differences from the mean over 3 x 3 blocks."""
    padded = np.pad(blocks, 1, mode="edge")
    height, width = blocks.shape
    total = sum(padded[y : y + height, x : x + width] for y in range(3) for x in range(3))
    return np.asarray(blocks - total / 9)


def _shifted_correlation(a: Array, b: Array) -> float:
    """Largest correlation of two images over shifts in whole blocks."""
    norm = float(np.sqrt((a * a).sum() * (b * b).sum()))
    if norm == 0:
        return 0.0
    shape = [2 * side for side in a.shape]  # zeros around, so that shifts do not wrap
    product = np.fft.rfft2(a, shape) * np.conj(np.fft.rfft2(b, shape))
    correlation = np.fft.irfft2(product, shape) / norm
    rows, columns = (max(1, int(_FARTHEST * side)) for side in a.shape)
    y = np.arange(-rows, rows + 1)
    x = np.arange(-columns, columns + 1)
    return float(correlation[np.ix_(y, x)].max())
