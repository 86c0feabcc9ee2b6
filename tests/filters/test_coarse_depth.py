"""Pixels take coarse depths from the nearest blocks, by colour."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bilateral.filters.surfaces import expand_depth, shrink_photo
from support.examples import examples
from support.strategies import seeds, shapes

Array = NDArray[Any]


def expanded(coarse: Array, photo: Array, low: Array, factor: int, unit: float) -> Array:
    """Value of the block with the least cost, of the nearest four.

    The cost is distance plus difference of colour plus twice the deviation of the block's colours.
    """
    out = np.empty(photo.shape[:2], np.float32)
    for y, x in np.ndindex(out.shape):
        at = (np.array([y, x]) + 0.5) / factor - 0.5
        own = np.array([y, x]) // factor
        other = np.clip(own + np.where(at < own, -1, 1), 0, np.array(coarse.shape) - 1)
        costs = {}
        for v in (own[0], other[0]):
            for u in (own[1], other[1]):
                block = photo[v * factor : (v + 1) * factor, u * factor : (u + 1) * factor]
                mixed = 2 * np.abs(block - low[v, u]).mean(axis=(0, 1)).sum()
                difference = (np.abs(photo[y, x] - low[v, u]).sum() + mixed) / unit
                costs[v, u] = abs(at[0] - v) + abs(at[1] - u) + difference
        out[y, x] = coarse[min(costs, key=lambda block: costs[block])]
    return out


@examples(20)
@given(shapes(20), st.integers(1, 5), seeds)
def test_coarse_depths_of_the_nearest_blocks(
    shape: tuple[int, int], factor: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    photo = rng.uniform(0, 255, (*shape, 3)).astype(np.float32)
    low = shrink_photo(photo, factor)
    coarse = rng.uniform(1, 2, low.shape[:2]).astype(np.float32)
    data = rng.uniform(size=shape) < 0.3
    z = rng.uniform(3, 4, shape).astype(np.float32)
    found = expand_depth(coarse, photo, low, z, data, factor=factor, unit=60.0)
    expected = np.where(data, z, expanded(coarse, photo, low, factor, 60.0))
    assert np.mean(found != expected) < 0.01  # rounding decides between equal costs
