"""Paint random strokes, similar to those a person would paint."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def strokes(shape: tuple[int, ...], number: int, seed: int = 0) -> Array:
    """Return a mask of strokes along random curves.

    The length of a stroke is a sixth of the longer side of the image.

    Parameters
    ----------
    shape : (int, int)
        Height and width.
    number : int
        Number of strokes. They start inside the image, and may leave it.
    seed : int
        Seed of the random numbers.

    Returns
    -------
    (H, W) array of bool
    """
    rng = np.random.default_rng(seed)
    height, width = shape[:2]
    longer = max(height, width)
    steps = longer // 6
    turns = rng.normal(0, 3 / longer, (number, 1)) + rng.normal(0, 0.05, (number, steps))
    angles = rng.uniform(0, 2 * np.pi, (number, 1)) + np.cumsum(turns, axis=1)
    y = rng.uniform(0, height, (number, 1)) + np.cumsum(np.sin(angles), axis=1)
    x = rng.uniform(0, width, (number, 1)) + np.cumsum(np.cos(angles), axis=1)
    radius = max(1, longer // 400)
    mask = np.zeros((height, width), bool)
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            if dy * dy + dx * dx > radius * radius:
                continue
            rows, columns = np.rint(y + dy).astype(int), np.rint(x + dx).astype(int)
            inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
            mask[rows[inside], columns[inside]] = True
    return mask
