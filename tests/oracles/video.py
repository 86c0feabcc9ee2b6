"""Oracle of the operations on depth videos: plain NumPy and SciPy, in float64."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter, minimum_filter

Array = NDArray[Any]


def packed(pixels: Array, highest: float) -> Array:
    """Red, green, blue and luma from 0 to 255."""
    rgb = np.broadcast_to(pixels * (255 / highest), (*pixels.shape[:2], 3))
    luma = rgb @ [0.299, 0.587, 0.114]
    return np.clip(np.dstack([rgb, luma]), 0, 255)


def halved(image: Array) -> Array:
    """Every second pixel of the image smoothed by 1, 3, 3, 1 in both directions."""
    for _ in range(2):  # rows, then columns
        n = len(image) // 2
        padded = np.pad(image.astype(np.float64), ((1, 2), (0, 0)), mode="edge")
        image = sum(w * padded[k:][: 2 * n : 2] for k, w in enumerate((1, 3, 3, 1))).T / 8
    return image


def positions(shape: tuple[int, int]) -> tuple[Array, Array]:
    """y and x relative to the centre and half of the longer side."""
    y, x = np.mgrid[: shape[0], : shape[1]].astype(float)
    scale = 2 / max(shape)
    return (y - (shape[0] - 1) / 2) * scale, (x - (shape[1] - 1) / 2) * scale


def flow(theta: Array, depth: Array, unit: float) -> tuple[Array, Array]:
    """Flow (dy, dx) to the frame before."""
    y, x = positions(depth.shape)
    q = unit / np.maximum(depth, 0.05 * unit)
    t = np.asarray(theta)
    dx = t[0] + t[1] * x + t[2] * y + x * (t[6] * x + t[7] * y) + q * (t[8] - t[10] * x)
    dy = t[3] + t[4] * x + t[5] * y + y * (t[6] * x + t[7] * y) + q * (t[9] - t[10] * y)
    return dy, dx


def warped(past: Array, dy: Array, dx: Array, jump: Array) -> tuple[Array, Array, Array]:
    """Depth, row-major index of the nearest pixel, and whether the place is inside."""
    height, width = past.shape
    y, x = np.mgrid[:height, :width]
    py, px = y + dy, x + dx
    inside = (py >= 0) & (py <= height - 1) & (px >= 0) & (px <= width - 1)
    py, px = np.clip(py, 0, height - 1), np.clip(px, 0, width - 1)
    y0 = np.minimum(py.astype(int), max(height - 2, 0))
    x0 = np.minimum(px.astype(int), max(width - 2, 0))
    y1, x1 = np.minimum(y0 + 1, height - 1), np.minimum(x0 + 1, width - 1)
    fy, fx = py - y0, px - x0
    four = np.stack([past[y0, x0], past[y0, x1], past[y1, x0], past[y1, x1]])
    linear = (1 - fy) * ((1 - fx) * four[0] + fx * four[1])
    linear += fy * ((1 - fx) * four[2] + fx * four[3])
    nearest = np.where(fy >= 0.5, y1, y0) * width + np.where(fx >= 0.5, x1, x0)
    smooth = np.ptp(four, axis=0) < jump[y0, x0]
    return np.where(smooth, linear, past.ravel()[nearest]), nearest, inside


def other_surface(
    shape: tuple[int, int], nearest: Array, to: tuple[Array, Array], by: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Row-major index of the place that a surface's own flow leads to, and whether it is inside.

    `by` is the flow that led to `nearest`: it stays if both differ by less than half a pixel.
    """
    height, width = shape
    same = np.maximum(np.abs(to[0] - by[0]), np.abs(to[1] - by[1])) < 0.5
    y, x = np.mgrid[:height, :width]
    py, px = np.rint(y + to[0]).astype(int), np.rint(x + to[1]).astype(int)
    inside = (py >= 0) & (py < height) & (px >= 0) & (px < width)
    at = np.where(inside, py * width + px, 0)
    return np.where(same, nearest, at), same | inside


def steady(
    value: Array, past: Array, before: Array, noise: Array, tolerance: float, x: Array
) -> Array:
    """Whether depth stays: within noise and half of what a shift of one pixel changes."""
    low, high = (f(before, 3, mode="nearest") for f in (minimum_filter, maximum_filter))
    limit = tolerance * noise + 0.5 * np.minimum(high - low, 0.02 * np.abs(x))
    with np.errstate(invalid="ignore"):
        return ~(np.abs(value - past) > limit)


def photo_steady(now: Array, before: Array, tolerance: float, shift: float) -> Array:
    """Whether a shift of so many pixels explains all channels, up to a tolerance.

    It changes a pixel by at most this part of the way to the lowest and highest of 3 x 3 pixels.
    """
    then = before.astype(int)
    low = then - np.floor(shift * (then - minimum_filter(then, (3, 3, 1), mode="nearest")))
    high = then + np.floor(shift * (maximum_filter(then, (3, 3, 1), mode="nearest") - then))
    return ((now >= low - tolerance) & (now <= high + tolerance)).all(axis=2)


def local_mean(difference: Array, where: Array, radius: int) -> Array:
    """Mean over windows; divided by at least 5 % of a window's pixels."""
    height, width = difference.shape
    out = np.empty(difference.shape)
    values = np.where(where, difference, 0)
    for y in range(height):
        for x in range(width):
            window = np.s_[max(y - radius, 0) : y + radius + 1, max(x - radius, 0) : x + radius + 1]
            least = 0.05 * (2 * radius + 1) ** 2
            out[y, x] = values[window].sum() / max(where[window].sum(), least)
    return out


def settled(changed: Array, radius: int, part: float) -> Array:
    """Whether less than a part of each window changed."""
    height, width = changed.shape
    out = np.empty(changed.shape, bool)
    for y in range(height):
        for x in range(width):
            window = np.s_[max(y - radius, 0) : y + radius + 1, max(x - radius, 0) : x + radius + 1]
            out[y, x] = changed[window].mean() < part
    return out


def surrounded(steady: Array) -> Array:
    """Whether a pixel and its four neighbours are steady."""
    cross = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]])
    return np.asarray(minimum_filter(steady, footprint=cross, mode="nearest"))
