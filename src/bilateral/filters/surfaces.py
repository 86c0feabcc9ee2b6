"""Surfaces of a depth map: find the pixels on them, continue them into holes, smooth them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.backends import cpu

Array = NDArray[Any]
Growth = cpu.Growth
Polynomial = cpu.Polynomial


def find_doubt(z: Array, jump: Polynomial) -> NDArray[np.bool_]:
    """Find the known pixels that lie on no surface.

    These are flying pixels (one side is nearer and the opposite side is farther by a jump, unless
    the surface is slanted), slivers between a jump and a hole, and lone pixels.

    Parameters
    ----------
    z : (H, W) float32 array
        Depth; NaN where it is unknown.
    jump : (float, float, float)
        Smallest difference between two surfaces at the depth z, as coefficients of 1, |z|, z^2.
    """
    return cpu.find_doubt(z, jump)


def surface_sizes(z: Array, doubt: NDArray[np.bool_], jump: Polynomial) -> NDArray[np.int32]:
    """Return the number of pixels of each pixel's connected surface; 0 where there is none.

    Parameters
    ----------
    z, jump
        As for `find_doubt`.
    doubt : (H, W) bool array
        Pixels that belong to no surface.
    """
    return cpu.surface_sizes(z, doubt, jump)


def grow_surfaces(
    x: Array,
    kept: NDArray[np.bool_],
    measured: Array,
    jump: Polynomial,
    *,
    inverse: bool,
    growth: Growth,
) -> Array:
    """Bring the fillings of holes to the surfaces around them.

    A filling may leave the plane that it continues only little by little. Among several surfaces
    it takes the one closest to it.

    Parameters
    ----------
    x : (H, W) float32 array
        Depth; finite.
    kept : (H, W) bool array
        Where x is data. All other pixels are fillings.
    measured : (H, W) float32 array
        Depths of doubtful pixels, which stay if they agree with a surface that is continued. NaN in
        holes, where the bias counts. Those of kept pixels are not read.
    jump : (float, float, float)
        As for `find_doubt`.
    inverse : bool
        Whether planes are affine in 1 / x; x is then positive.
    growth : Growth
    """
    return cpu.grow_surfaces(x, kept, measured, jump, inverse, growth)


def smooth_depth(
    x: Array, kept: NDArray[np.bool_], noise: Polynomial, *, scale: float, limit: float
) -> Array:
    """Average over neighbours that differ by little more than the noise.

    Parameters
    ----------
    x : (H, W) float32 array
        Depth; finite.
    kept : (H, W) bool array
        Pixels that move by at most `limit` times the noise.
    noise : (float, float, float)
        Noise at the depth z, as coefficients of 1, |z|, z^2.
    scale : float
        A neighbour at this many noises has a quarter of the weight.
    limit : float
    """
    return cpu.smooth_depth(x, kept, noise, scale, limit)


def shrink_photo(pixels: Array, factor: int) -> Array:
    """Average an (H, W, C) photograph over blocks of factor x factor pixels."""
    return cpu.shrink_photo(pixels, factor)


def shrink_depth(z: Array, data: NDArray[np.bool_], factor: int) -> Array:
    """Take the data closest to the centre of each block of a map; NaN where a block has none."""
    return cpu.shrink_depth(z, data, factor)


def expand_depth(
    coarse: Array,
    photo: Array,
    coarse_photo: Array,
    z: Array,
    data: NDArray[np.bool_],
    *,
    factor: int,
    unit: float,
) -> Array:
    """Complete a map by the values of a coarse one.

    Parameters
    ----------
    coarse : (h, w) float32 array
        One value for each block of factor x factor pixels.
    photo, coarse_photo : (H, W, C) and (h, w, C) array
        The photograph, and its means over the blocks.
    z : (H, W) float32 array
    data : (H, W) bool array
        Pixels that keep their value in `z`. Others take that of the block, among the nearest four,
        with the most similar colour; blocks of several colours count as less similar.
    factor : int
    unit : float
        Colour difference, summed over the channels, that counts as much as a block of distance.
    """
    out = np.where(data, z, np.float32(0))
    cpu.expand_depth(coarse, photo, coarse_photo, data, factor, unit, out)
    return out
