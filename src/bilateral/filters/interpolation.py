"""Interpolate linearly between scattered pixels."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.backends import cpu

Array = NDArray[Any]


def interpolate_points(z: Array) -> tuple[Array, NDArray[np.uint32]]:
    """Fill the unknown pixels of a map without a photograph.

    Parameters
    ----------
    z : (H, W) float32 array
        NaN where unknown; some pixel is known.

    Returns
    -------
    filled : (H, W) float32 array
        Linear in the triangles of the Delaunay triangulation; outside of them the value of the
        nearest known pixel.
    nearest : (H, W) uint32 array
        Index of the nearest known pixel in the flattened map.
    """
    return cpu.interpolate_points(np.ascontiguousarray(z))
