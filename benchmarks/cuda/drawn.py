"""Draw photographs and depth maps to measure on, with nothing but NumPy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

SHADOW, NOISE, FLYING, SHADE = 12, 2e-3, 0.5, 0.4
"""Columns without data beside an edge, noise as a part of the depth, the part of the pixels beside
edges that fly, and the brightness of the farther surface: the photograph has the map's edges."""


def mirrored(pixels: Array, height: int, width: int) -> Array:
    """Extend an image by its mirror image, or cut it, to a size."""
    grow = [(0, max(0, height - pixels.shape[0])), (0, max(0, width - pixels.shape[1]))]
    rest = [(0, 0)] * (pixels.ndim - 2)
    return np.pad(pixels, [*grow, *rest], mode="symmetric")[:height, :width].copy()


def drawn(size: tuple[int, int] = (1080, 1920)) -> Array:
    """A photograph of discs of many colours before a gradient, with some noise."""
    rng = np.random.default_rng(1)
    y, x = np.mgrid[: size[0], : size[1]]
    pixels = np.stack([60 + x / 40, 80 + y / 30, 120 - x / 60], axis=2)
    for _ in range(60):
        cy, cx, r = rng.uniform(0, size[0]), rng.uniform(0, size[1]), rng.uniform(20, 150)
        pixels[(y - cy) ** 2 + (x - cx) ** 2 < r * r] = rng.uniform(20, 235, 3)
    noise = rng.normal(0, 2, pixels.shape)
    return np.clip(pixels + noise, 0, 255).astype(np.uint8)


def depth_map(grey: Array, seed: int = 0) -> tuple[Array, Array]:
    """Make the depths of a camera in a photograph with these grey levels.

    Also return which pixels are on the farther surface.
    """
    rng = np.random.default_rng(seed)
    height, width = grey.shape
    rows, columns = (np.linspace(0, 1, n) for n in (height, width))
    side = max(height, width) // 8
    blocks = grey[: height // side * side, : width // side * side]
    blocks = blocks.reshape(height // side, side, -1, side).mean((1, 3))
    near = np.kron(blocks > np.median(blocks), np.ones((side, side), bool))
    near = np.pad(near, ((0, height - near.shape[0]), (0, width - near.shape[1])), "edge")
    z = np.where(near, 1 + 0.3 * rows[:, None], 3 + columns[None])
    z *= 1 + NOISE * rng.normal(size=z.shape)
    edge = np.zeros_like(near)
    edge[:, 1:] = near[:, 1:] != near[:, :-1]
    flying = edge & (rng.uniform(size=z.shape) < FLYING)
    z[flying] = rng.uniform(1.3, 3, np.count_nonzero(flying))
    leaves = np.zeros_like(near)
    leaves[:, 1:] = near[:, :-1] & ~near[:, 1:]
    for k in range(SHADOW):
        z[:, k:][leaves[:, : width - k]] = np.nan
    return z.astype(np.float32), ~near
