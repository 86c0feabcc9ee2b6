"""Split a depth map into surfaces that agree with themselves, doubtful pixels and the rest."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral.filters.surfaces import Polynomial, find_doubt, surface_sizes
from bilateral.tasks.depth.noise import Noise

Array = NDArray[Any]

_JUMP_NOISES, _JUMP_PART = 4.0, 0.015
"""Two surfaces differ by this many times the noise, plus this part of the depth."""
_LEAST_PIXELS, LEAST_PART = 32, 3e-4
"""Smaller surfaces may be errors: pixels, and part of the image."""
SMALL_PIXELS = 8
"""Still smaller ones are noise."""
LARGE_PART = 3e-3
"""Part of the image of a surface that is certainly no speckle."""
LEAST_TRUST = 0.3
"""Pixels with less trust than this are no part of a surface."""


class Surfaces(NamedTuple):
    """The pixels of a map that lie on surfaces."""

    kept: NDArray[np.bool_]
    """Pixels of surfaces large enough to be right."""
    small: NDArray[np.bool_]
    """Pixels of smaller surfaces, within the range of the kept ones."""
    doubt: NDArray[np.bool_]
    """Known pixels that lie on no surface."""
    sizes: NDArray[np.int32]
    """Number of pixels of each pixel's surface; 0 where there is none."""
    jump: Polynomial
    """Smallest difference between surfaces, as coefficients of 1, |z|, z^2."""

    def jump_at(self, z: Array) -> Array:
        """Return the smallest difference between surfaces at depths."""
        size = np.abs(z)
        return np.asarray(self.jump[0] + size * (self.jump[1] + size * self.jump[2]))

    def confirmed(self, x: Array, z: Array) -> NDArray[np.bool_]:
        """Return the kept pixels, and those of small surfaces that are close to a solution `x`."""
        out = self.kept.copy()
        small = self.small
        out[small] = np.abs(x[small] - z[small]) <= self.jump_at(z[small])
        return out

    def all_known(self, z: Array) -> Surfaces:
        """Keep every known pixel of a map."""
        nothing = np.zeros(z.shape, np.bool_)
        return self._replace(kept=np.isfinite(z), small=nothing, doubt=nothing)


def find_surfaces(z: Array, noise: Noise, trust: Array | None = None) -> Surfaces:
    """Find the surfaces of an (H, W) float32 map, NaN where it is unknown."""
    jump = jump_of(noise)
    doubt = find_doubt(z, jump)
    barred = doubt if trust is None else doubt | (trust < LEAST_TRUST)
    sizes = surface_sizes(z, barred, jump)
    kept = sizes >= least_pixels(z.size, LEAST_PART)
    low, high = np.min(z, initial=np.inf, where=kept), np.max(z, initial=-np.inf, where=kept)
    small = (sizes >= SMALL_PIXELS) & ~kept & (z >= low) & (z <= high)
    return Surfaces(kept, small, doubt, sizes, jump)


def jump_of(noise: Noise) -> Polynomial:
    """Return the smallest difference between surfaces."""
    return _JUMP_NOISES * noise.a, _JUMP_PART, _JUMP_NOISES * noise.b


def least_pixels(pixels: int, part: float) -> int:
    """Return the least number of pixels of a surface with this part of an image."""
    return max(_LEAST_PIXELS, round(part * pixels))
