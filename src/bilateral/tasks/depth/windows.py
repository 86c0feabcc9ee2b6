"""Range, mean, sum and presence over the window around each pixel.

Windows end at the image's border.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def window_range(image: Array, radius: int) -> Array:
    """Return the largest minus the smallest value of the window around each pixel."""
    high = low = image
    for axis in (0, 1):
        margin = [(0, 0), (0, 0)]
        margin[axis] = (radius, radius)
        padded = np.pad(high, margin, "edge"), np.pad(low, margin, "edge")
        windows = [
            np.lib.stride_tricks.sliding_window_view(p, 2 * radius + 1, axis) for p in padded
        ]
        high, low = windows[0].max(axis=2), windows[1].min(axis=2)
    return high - low


def contrast(pixels: Array, radius: int) -> Array:
    """Return the range of an (H, W, C) photograph around each pixel, that of its best channel."""
    ranges = [window_range(pixels[..., channel], radius) for channel in range(pixels.shape[2])]
    return np.asarray(np.max(ranges, axis=0))


def extreme(z: Array, radius: int, choose: np.ufunc) -> Array:
    """Return the smallest or largest known value of the window around each pixel, by fmin or fmax.

    Values that are NaN are unknown.
    """
    out = z
    for axis in (0, 1):
        lines = np.moveaxis(out, axis, 0)
        found = lines.copy(order="K")
        for k in range(1, min(radius, len(lines) - 1) + 1):
            choose(found[k:], lines[:-k], out=found[k:])
            choose(found[:-k], lines[k:], out=found[:-k])
        out = np.moveaxis(found, 0, axis)
    return out


def window_mean(image: Array, radius: int) -> Array:
    """Return the mean of the window around each pixel."""
    out = image.astype(np.float64)
    for axis in (0, 1):
        sums = np.cumsum(out, axis=axis)
        out = _window_sums(sums, radius, axis)
        count = _window_sums(np.arange(1, image.shape[axis] + 1), radius, 0)
        out = out / count.reshape((-1, 1) if axis == 0 else (1, -1))
    return out


def any_near(mask: NDArray[np.bool_], radius: int) -> NDArray[np.bool_]:
    """Whether the window around each pixel has a pixel of a mask."""
    out = mask
    for axis in (0, 1):
        out = _window_sums(np.cumsum(out, axis=axis, dtype=np.int32), radius, axis) > 0
    return out


def sums_at(
    y: NDArray[np.intp], x: NDArray[np.intp], values: Array, shape: tuple[int, ...], radius: int
) -> Array:
    """Return the sums of scattered values over the window around each of their pixels.

    Parameters
    ----------
    y, x : (N,) arrays
        The pixels; no two are the same.
    values : (N, K) array
    shape : (int, int)
        Of the image.
    radius : int
    """
    height, width = shape
    table = np.zeros((height + 1, width + 1, values.shape[1]))
    table[y + 1, x + 1] = values
    table = table.cumsum(axis=0).cumsum(axis=1)
    top, left = np.maximum(y - radius, 0), np.maximum(x - radius, 0)
    bottom, right = np.minimum(y + radius + 1, height), np.minimum(x + radius + 1, width)
    return np.asarray(
        table[bottom, right] - table[top, right] - table[bottom, left] + table[top, left]
    )


def _window_sums(sums: Array, radius: int, axis: int) -> Array:
    """Sums over windows along an axis, from the cumulative sums along it."""
    length = sums.shape[axis]
    at = np.arange(length)
    ends = sums.take(np.minimum(at + radius, length - 1), axis)
    starts = sums.take(np.maximum(at - radius - 1, 0), axis)
    shape = [1] * sums.ndim
    shape[axis] = -1
    return np.asarray(ends - np.where((at <= radius).reshape(shape), 0, starts))
