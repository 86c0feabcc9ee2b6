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

BINS = 8
"""The noise is measured in up to so many ranges of values."""
_LEAST_PER_BIN = 16
_LEAST_NOISE = 1e-3
"""Smallest level of the noise, relative to the range of the values."""
PERCENTILES = 5.0, 95.0
"""The range of the values ends at these."""
MEDIAN_LEVEL = 1.4826
"""Standard deviation of normal noise, relative to its median magnitude."""
_MEDIAN_DIFFERENCE = 0.954
"""Median magnitude of the difference of two values with normal noise, relative to the noise."""
_WHITE, _ROUGH = 1.7, 3.0
"""Growth of the variance from one pixel to two, up to which differences are noise, and from which
on they are surface. Measured: 1 to 1.6 in noisy maps, above 3.5 in most clean ones."""

LEAST_SIZE = 8
"""Rows and columns of the smallest map whose trust in the photograph is measured."""
_TILE = 8
"""Rows and columns of a part of the map with a trust of its own."""
LEAST_KNOWN, MOST_KNOWN = 0.25, 0.5
"""Least divisor of a mean over partly known pixels, and the share known that makes it known."""
WHOLE_MAP = 2.0
"""Weight of the whole map in the trust of a part."""
TRUST_NOISE = 2.0
"""Weight of full trust, in units of the noise's variance. The halved map shares its noise with the
map, which favours the bicubic one; and a noisy map needs the photograph."""
_MIDDLE, _PER_OCTAVE, TRUST_WIDTH = 0.28, 0.07, 0.2
"""Share of the guided map in the best prediction at which the trust is a half; how much lower that
share is for each octave of the factor above the first; and the range from no trust to full."""
WHITE_POWER, STRUCTURE_POWER = 0.2, 0.5
"""Mean product of neighbouring residuals, relative to the variance of the noise, up to which they
are noise, and from which on the guided map is wrong."""
_LITTLE_NOISE, _NOISE_ALONE = 0.1, 0.4
"""Noisiness up to which residuals tell nothing, and from which on they tell all."""
_NO_COHERENCE, _COHERENCE = 0.15, 0.35
"""Correlation of neighbouring pixels up to which a photograph is noise, and from which on it is
none. Averages over the blocks of a map hide such noise from the other tests."""


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
        rows, columns = (max(m, round(n / 2**octave)) for n, m in zip(size, least, strict=True))
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


def bins(count: int) -> int:
    """Return the number of ranges of values in which to measure the noise of so many numbers."""
    return max(1, min(BINS, count // _LEAST_PER_BIN))


def bins_of(count: Any) -> Any:
    """Return `bins` for a tensor of integers."""
    return (count // _LEAST_PER_BIN).clamp(1, BINS)


def noise_share(near: float, far: float) -> float:
    """Return the share of noise in differences, from their levels at one pixel and at two."""
    growth = (far / near) ** 2 if near > 0 else 1.0
    return min(max((_ROUGH - growth) / (_ROUGH - _WHITE), 0.0), 1.0)


def least_level(low: float, high: float) -> float:
    """Return the smallest level of the noise of values with these percentiles."""
    return _LEAST_NOISE * (high - low) or _LEAST_NOISE * abs(high) or 1.0


def slope(step: float, level: float) -> float:
    """Return the typical difference of neighbours that noise of a level does not explain."""
    explained = _MEDIAN_DIFFERENCE * level
    return math.sqrt(max(step * step - explained * explained, 0.0))


def tiles(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the number of tiles of a map along both axes."""
    rows, columns = (math.ceil(n / _TILE) for n in shape)
    return rows, columns


def trust_middle(area: float) -> float:
    """Return the share of the guided map at which the trust is a half, for pixels per pixel."""
    return _MIDDLE - _PER_OCTAVE * (math.log2(area) / 2 - 1)


def residual_weight(noisy: float) -> float:
    """Return how much the residuals of a map with this noisiness tell, 0 to 1."""
    return min(max((noisy - _LITTLE_NOISE) / (_NOISE_ALONE - _LITTLE_NOISE), 0.0), 1.0)


def coherence(variance: float, steps: float) -> float:
    """Return 0 for a photograph of noise alone, in which no two neighbours are alike, else 1.

    Parameters
    ----------
    variance : float
        Sum of the variances of all channels.
    steps : float
        Mean square of the difference of two neighbours, summed over the channels.
    """
    if variance == 0:
        return 1.0
    correlation = 1 - steps / (2 * variance)
    return min(max((correlation - _NO_COHERENCE) / (_COHERENCE - _NO_COHERENCE), 0.0), 1.0)
