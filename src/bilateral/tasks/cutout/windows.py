"""Means over square windows and blocks of pixels."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def window_mean(mask: NDArray[np.bool_], radius: int) -> NDArray[np.float32]:
    """Return the fraction of true pixels within `radius` pixels along x and y.

    Beyond the border, the nearest pixels count.
    """
    counts = np.pad(mask, radius, mode="edge").astype(np.int32)
    for axis in (0, 1):
        sums = np.cumsum(counts, axis=axis, dtype=np.int32)
        zero = np.zeros_like(np.take(sums, [0], axis))
        sums = np.concatenate([zero, sums], axis)
        size = 2 * radius + 1
        n = sums.shape[axis]
        ends = np.take(sums, range(size, n), axis)
        counts = ends - np.take(sums, range(n - size), axis)
    fraction: NDArray[np.float32] = (counts / np.float32((2 * radius + 1) ** 2)).astype(np.float32)
    return fraction


def block_sums(values: Array, size: int) -> Array:
    """Return the sums over blocks of size x size pixels; the last ones may be cut."""
    for axis in (0, 1):
        values = np.add.reduceat(values, range(0, values.shape[axis], size), axis=axis)
    return values


def fill_blocks(sums: Array, weights: Array) -> Array:
    """Return the weighted mean of each block; without weight, that of its surroundings.

    Push-pull: means over larger and larger blocks fill what smaller ones leave unknown.

    Parameters
    ----------
    sums : (h, w, C) array
        Sum of weight times value.
    weights : (h, w) array
        At 1 and above, the block knows its value.
    """
    trust = np.minimum(weights, 1)[..., np.newaxis]
    means = sums / np.maximum(weights, np.finfo(np.float32).tiny)[..., np.newaxis]
    if min(weights.shape) < 2 or weights.min() >= 1:
        total = float(weights.sum())
        whole = sums.sum(axis=(0, 1)) / total if total else np.zeros(sums.shape[2], sums.dtype)
        return np.asarray(means * trust + whole * (1 - trust))
    scale = 1 / np.maximum(block_sums(weights, 2), 1)
    coarse = fill_blocks(
        block_sums(sums, 2) * scale[..., np.newaxis], block_sums(weights, 2) * scale
    )
    rows, columns = (np.arange(n) for n in weights.shape)
    around = sample(coarse, rows[:, np.newaxis] / 2 - 0.25, columns / 2 - 0.25)
    return np.asarray(means * trust + around * (1 - trust))


def sample(values: Array, y: Array, x: Array) -> Array:
    """Interpolate linearly at positions in pixels; beyond the border, the nearest pixels count."""
    height, width = values.shape[:2]
    y, x = np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)
    top, left = y.astype(np.intp), x.astype(np.intp)
    bottom, right = np.minimum(top + 1, height - 1), np.minimum(left + 1, width - 1)
    down = (y - top).astype(values.dtype)[..., np.newaxis]
    across = (x - left).astype(values.dtype)[..., np.newaxis]
    above = values[top, left] * (1 - across) + values[top, right] * across
    below = values[bottom, left] * (1 - across) + values[bottom, right] * across
    return np.asarray(above * (1 - down) + below * down)
