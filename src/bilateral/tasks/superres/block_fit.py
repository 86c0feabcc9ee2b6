"""Fit the block means of a map to the data within their noise, on the grid and on the pixels."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral.filters import resize
from bilateral.filters.block_means import BlockMeans
from bilateral.filters.domain_transform import domain_transform
from bilateral.filters.median import median
from bilateral.filters.polish import polish
from bilateral.grid import BilateralGrid
from bilateral.solver import BilateralSolver
from bilateral.tasks.superres.noise import MapNoise

Array = NDArray[Any]

_FILTER_SIGMAS = (16, 16)

_ROUNDS = 2
"""Rounds of back-projection. Each moves the block means about as far as their noise allows."""
_ROUND_SMOOTHNESS = 0.7
"""For confidences that sum to 1 over a low-resolution pixel of a noisy map."""
_ROUND_ANCHOR = 0.25
"""Weight of the last estimate, on the same scale. It preserves the values in holes and at vertices
that few blocks cover."""
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
_COARSE_PASS = (1, 24)
"""Rounds of reweighting and steps at lower resolutions. Their pixels are few."""
_FINE_PASS = (2, 15)


class Scene(NamedTuple):
    """The reference: its grid, its pixels and its white."""

    grid: BilateralGrid
    pixels: Array
    white: float

    def smooth(self, x: Array) -> Array:
        """Remove the blocks of grid cells and the noise of single vertices, as in the paper."""
        x = domain_transform(x, self.pixels, *_FILTER_SIGMAS, reference_max=self.white)
        return median(x, 5)


class LowResolution(NamedTuple):
    """A low-resolution map without holes, the weights of its values, and its noise."""

    values: Array
    weights: Array
    noise: MapNoise

    def observe(self, x: Array, gain: float) -> BlockMeans:
        """Weight the data by the inverse variance of their noise, `gain` where it is typical."""
        shape = (x.shape[0], x.shape[1])
        levels = self.noise.levels(BlockMeans(self.values, shape).means(x))
        typical = float(np.median(levels[self.weights > 0]))
        relative = (typical / np.maximum(levels, typical / 4)) ** 2
        return BlockMeans(self.values, shape, gain * self.weights * relative)


def noisiness(noise: MapNoise) -> float:
    """Return 1 for a noisy map, and less for one whose differences are mostly surface."""
    return min(1.0, _NOISY * noise.level / noise.roughness) if noise.roughness > 0 else 1.0


def fit_block_means(x: Array, low: LowResolution, scene: Scene) -> Array:
    """Improve the estimate x: rounds on the grid, then on the pixels from coarse to fine.

    Parameters
    ----------
    x : (H, W) array
    low : LowResolution
    scene : Scene
    """
    gain = 1 / max(noisiness(low.noise), _LEAST_RATIO) ** 2
    solver = BilateralSolver(scene.grid, _ROUND_SMOOTHNESS)
    for _ in range(_ROUNDS):
        target, confidence = low.observe(x, gain).back_project(x)
        anchor = _ROUND_ANCHOR * low.values.size / x.size
        total = confidence + anchor
        x = scene.smooth(solver.solve((confidence * target + anchor * x) / total, total))
    factor = math.sqrt(x.size / low.values.size)
    # Blocks of two pixels are the smallest that a reduced photograph can divide.
    octaves = math.floor(math.log2(factor) + 1e-9) - 1
    for photo in reversed(_pyramid(scene.pixels, low.values.shape, octaves)):
        reduced = reduce_map(x, (photo.shape[0], photo.shape[1]))
        # few steps reach far at a low resolution
        change = _polish(reduced, low, photo, scene.white, _COARSE_PASS) - reduced
        x = scene.smooth(x + resize.bilinear(change, x.shape))
    return _polish(x, low, scene.pixels, scene.white, _FINE_PASS)


def _pyramid(pixels: Array, least: tuple[int, ...], octaves: int) -> list[Array]:
    """Return the photograph at a half, a quarter ... of its resolution, no smaller than `least`."""
    photos: list[Array] = []
    for octave in range(1, octaves + 1):
        rows, columns = (
            max(m, round(n / 2**octave)) for n, m in zip(pixels.shape[:2], least, strict=True)
        )
        photos.append(reduce_map(photos[-1] if photos else pixels, (rows, columns)))
    return photos


def reduce_map(image: Array, shape: tuple[int, int]) -> Array:
    """Average an (H, W) or (H, W, K) image over blocks, in a floating-point dtype."""
    dtype = image.dtype if image.dtype == np.float64 else np.dtype(np.float32)
    size = (image.shape[0], image.shape[1])
    blocks = BlockMeans(np.zeros(shape, dtype), size)
    channels = image.reshape(*size, -1).transpose(2, 0, 1)
    means = [blocks.means(np.ascontiguousarray(channel, dtype)) for channel in channels]
    return means[0] if image.ndim == 2 else np.stack(means, axis=2)


def _polish(
    x: Array, low: LowResolution, pixels: Array, white: float, effort: tuple[int, int]
) -> Array:
    """Polish x on the graph of pixels, with the block means as data.

    In a noisy map, an edge is a step beyond the noise. In a map with little noise it is a step
    beyond the slopes, and the data weigh more by as much as the noise is smaller.
    """
    noise = low.noise
    unit = math.hypot(noise.level, _SLOPES * noise.slope)
    gain = min((unit / noise.level) ** 2, _MOST_GAIN)
    octaves = math.log2(math.sqrt(x.size / low.values.size))
    rounds, steps = effort
    return polish(
        x,
        pixels,
        scale=_EDGE_SIZE * unit,
        smoothness=6 * 2 ** (-(octaves - 1) / 2),
        sigma_rgb=120 * 2 ** (-2 * (octaves - 1) / 3),
        anchor=0.05 * 2**-octaves,
        observation=low.observe(x, gain),
        rounds=rounds,
        steps=steps,
        reference_max=white,
    )
