"""Random images with the number of grid vertices of a photograph."""

import numpy as np

from support.strategies import Array


def noisy_photo(shape: tuple[int, int], channels: tuple[int, ...], noise: float) -> Array:
    """Return a smooth image of many colours with noise: uint8, gray or RGB."""
    rng = np.random.default_rng(0)
    coarse = rng.uniform(0, 255, (8, 8, *channels))
    smooth = coarse.repeat(-(-shape[0] // 8), axis=0).repeat(-(-shape[1] // 8), axis=1)
    noisy = smooth[: shape[0], : shape[1]] + rng.normal(0, noise, (*shape, *channels))
    return np.clip(noisy, 0, 255).astype(np.uint8)
