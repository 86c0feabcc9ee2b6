"""Find the surfaces of a depth map, continue them into holes, and reduce noise."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral import _core
from bilateral.threads import get_num_threads

Array = NDArray[Any]
Polynomial = tuple[float, float, float]
"""Coefficients of 1, |z| and z^2."""


class Growth(NamedTuple):
    """How surfaces grow into holes; distances are in pixels."""

    bias: float
    """A surface nearer than the filling counts as 1 + bias times as far from it: the usual hole is
    the shadow of an object on what is behind."""
    drift: float
    """Jumps per pixel by which a filling may leave the plane that it continues."""
    slope_reach: float
    """Slopes fade to 0 over this distance."""


def find_doubt(z: Array, jump: Polynomial) -> NDArray[np.bool_]:
    """Return whether each pixel of an (H, W) float32 map lies on no surface; NaN is unknown."""
    out = np.empty(z.shape, np.bool_)
    _core.find_doubt(z, jump, out, get_num_threads())
    return out


def surface_sizes(z: Array, doubt: NDArray[np.bool_], jump: Polynomial) -> NDArray[np.int32]:
    """Return the number of pixels of each pixel's connected surface; 0 where there is none."""
    out = np.empty(z.shape, np.int32)
    _core.surface_sizes(z, doubt, jump, out)
    return out


def grow_surfaces(
    x: Array,
    kept: NDArray[np.bool_],
    measured: Array,
    jump: Polynomial,
    inverse: bool,
    growth: Growth,
) -> Array:
    """Return a float32 map with the fillings brought to the surfaces that they continue."""
    out = x.copy()
    _core.grow_surfaces(kept, measured, jump, inverse, growth, out, get_num_threads())
    return out


def smooth_depth(
    x: Array, kept: NDArray[np.bool_], noise: Polynomial, scale: float, limit: float
) -> Array:
    """Return a float32 map with less noise; kept pixels move by at most `limit` noises."""
    out = x.copy()
    _core.smooth_depth(kept, noise, scale, limit, out, get_num_threads())
    return out


def shrink_photo(pixels: Array, factor: int) -> Array:
    """Return the means of factor x factor blocks of (H, W, C) pixels, of the same dtype."""
    height, width, channels = pixels.shape
    out = np.empty((-(-height // factor), -(-width // factor), channels), pixels.dtype)
    _core.shrink_photo(pixels, factor, out, get_num_threads())
    return out


def shrink_depth(z: Array, data: NDArray[np.bool_], factor: int) -> Array:
    """Return the data closest to the centre of each block of an (H, W) map, NaN if none."""
    height, width = z.shape
    out = np.empty((-(-height // factor), -(-width // factor)), np.float32)
    _core.shrink_depth(z, data, factor, out, get_num_threads())
    return out


def expand_depth(
    coarse: Array,
    photo: Array,
    coarse_photo: Array,
    data: NDArray[np.bool_],
    factor: int,
    unit: float,
    out: Array,
) -> None:
    """Write coarse depths to the pixels without data, from the block of the closest colour."""
    _core.expand_depth(coarse, photo, coarse_photo, data, factor, unit, out, get_num_threads())
