"""Constants and scalar rules of super-resolution, which arrays and tensors share."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

PRESETS = ("best", "fast", "paper")

SIGMAS = (8, 4, 3)
"""Cells of the grid: pixels, luma and chroma."""
SMOOTHNESS = 0.6
"""For confidences that sum to 1/4 over each low-resolution pixel, whatever the factor."""
PAPER_STEPS = 15
FILL_SMOOTHNESS = 0.01
"""For holes, on the grid of pixels."""
FILTER_SIGMAS = (16, 16)
"""Of the domain transform that removes the blocks of grid cells."""
MEDIAN_SIZE = 5

ROUNDS = 2
"""Rounds of back-projection. Each moves the block means about as far as their noise allows."""
ROUND_SMOOTHNESS = 0.7
"""For confidences that sum to 1 over a low-resolution pixel of a noisy map."""
_ROUND_ANCHOR = 0.25
"""Weight of the last estimate, on the same scale. It preserves the values in holes and at vertices
that few blocks cover."""
LEAST_LEVEL = 0.25
"""Values with less noise than this, relative to typical ones, weigh no more."""
_NOISY = 1.9
"""A map is noisy if the roughness is less than this many times the noise. The smoothness falls with
the square of the noise below that, down to 1 % of it."""
_LEAST_RATIO = 0.1

_EDGE_SIZE = 0.13
"""Size of an edge on the graph of pixels, relative to the noise and the slopes."""
_SLOPES = 2.0
"""Weight of the slopes beside the noise."""
_MOST_GAIN = 100.0
"""Largest weight of a low-resolution pixel on the graph of pixels, relative to a noisy map's."""
COARSE_PASS = (1, 24)
"""Rounds of reweighting and steps at lower resolutions. Their pixels are few."""
FINE_PASS = (2, 15)


def gaussian(t: Array) -> Array:
    """Weight of a low-resolution pixel by the distance t; sigma is a quarter of its size."""
    return np.asarray(np.exp(-8 * t * t))


def gaussian_mass(factor: float) -> float:
    """Return twice the sum of `gaussian` at the centre of a block over all pixels of an axis.

    Confidences are divided by it, so that those of a low-resolution pixel sum to 1/4.
    """
    reach = math.ceil(3 * factor)
    x = np.arange(-reach, reach + 1) + (factor - 1) / 2 % 1
    return 2 * float(gaussian(x / factor).sum())


def noisiness(level: float, roughness: float) -> float:
    """Return 1 for a noisy map, and less for one whose differences are mostly surface."""
    return min(1.0, _NOISY * level / roughness) if roughness > 0 else 1.0


def round_gain(noisy: float) -> float:
    """Return the weight of a typical low-resolution pixel in the rounds on the grid."""
    return 1 / max(noisy, _LEAST_RATIO) ** 2


def round_anchor(low_pixels: int, pixels: int) -> float:
    """Return the weight of the last estimate at each pixel in the rounds on the grid."""
    return _ROUND_ANCHOR * low_pixels / pixels


def coarse_shapes(size: tuple[int, ...], least: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return half the size of a photograph, a quarter ... that are no smaller than the map.

    Parameters
    ----------
    size : (int, int)
        Height and width of the photograph.
    least : (int, int)
        Those of the low-resolution map.
    """
    factor = math.sqrt(math.prod(size) / math.prod(least))
    # Blocks of two pixels are the smallest that a reduced photograph can divide.
    octaves = math.floor(math.log2(factor) + 1e-9) - 1
    shapes = []
    for octave in range(1, octaves + 1):
        rows, columns = (
            max(m, round(n / 2**octave)) for n, m in zip(size, least, strict=True)
        )
        shapes.append((rows, columns))
    return shapes


class PolishRule(NamedTuple):
    """How to polish a map of some resolution with its block means as data."""

    gain: float
    """Weight of a typical low-resolution pixel."""
    scale: float
    smoothness: float
    sigma_rgb: float
    anchor: float

    @classmethod
    def of(cls, level: float, slope: float, pixels: int, low_pixels: int) -> PolishRule:
        """Return the rule for the noise and the slopes of a map.

        In a noisy map, an edge is a step beyond the noise. In a map with little noise it is a step
        beyond the slopes, and the data weigh more by as much as the noise is smaller.
        """
        unit = math.hypot(level, _SLOPES * slope)
        octaves = math.log2(math.sqrt(pixels / low_pixels))
        return cls(
            gain=min((unit / level) ** 2, _MOST_GAIN),
            scale=_EDGE_SIZE * unit,
            smoothness=6 * 2 ** (-(octaves - 1) / 2),
            sigma_rgb=120 * 2 ** (-2 * (octaves - 1) / 3),
            anchor=0.05 * 2**-octaves,
        )
