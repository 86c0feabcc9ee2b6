"""Measure texture: the local standard deviation of an image, without its edges."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

WINDOW = 5
"""Side of the square window in pixels."""


def texture(levels: Array) -> Array:
    """Return the smallest standard deviation over all 5 x 5 windows that contain the pixel.

    Beside an edge, some window does not cross the edge. So an edge is no texture.
    """
    centred = levels - np.mean(levels, dtype=np.float64).astype(levels.dtype)
    count = levels.dtype.type(WINDOW**2)
    mean = _over_window(np.add, centred) / count
    square = _over_window(np.add, centred * centred) / count
    return _over_window(np.minimum, np.sqrt(np.maximum(square - mean * mean, 0)))


def _over_window(combine: np.ufunc, image: Array) -> Array:
    """Combine the pixels of a window around each pixel; the border is replicated."""
    height, width = image.shape
    padded = np.pad(image, WINDOW // 2, mode="edge")
    rows = padded[:height].copy()
    for i in range(1, WINDOW):
        combine(rows, padded[i : i + height], out=rows)
    out = rows[:, :width].copy()
    for i in range(1, WINDOW):
        combine(out, rows[:, i : i + width], out=out)
    return out
