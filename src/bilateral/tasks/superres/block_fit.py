"""Fit the block means of a map to the data within their noise, on the grid and on the pixels."""

from __future__ import annotations

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
from bilateral.tasks.superres import policy
from bilateral.tasks.superres.noise import MapNoise
from bilateral.tasks.superres.policy import PolishRule

Array = NDArray[Any]


class Scene(NamedTuple):
    """The reference: its grid, its pixels and its white."""

    grid: BilateralGrid
    pixels: Array
    white: float

    def smooth(self, x: Array) -> Array:
        """Remove the blocks of grid cells and the noise of single vertices, as in the paper."""
        x = domain_transform(x, self.pixels, *policy.FILTER_SIGMAS, reference_max=self.white)
        return median(x, policy.MEDIAN_SIZE)


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
        relative = (typical / np.maximum(levels, policy.LEAST_LEVEL * typical)) ** 2
        return BlockMeans(self.values, shape, gain * self.weights * relative)


def noisiness(noise: MapNoise) -> float:
    """Return 1 for a noisy map, and less for one whose differences are mostly surface."""
    return policy.noisiness(noise.level, noise.roughness)


def fit_block_means(x: Array, low: LowResolution, scene: Scene) -> Array:
    """Improve the estimate x: rounds on the grid, then on the pixels from coarse to fine.

    Parameters
    ----------
    x : (H, W) array
    low : LowResolution
    scene : Scene
    """
    gain = policy.round_gain(noisiness(low.noise))
    solver = BilateralSolver(scene.grid, policy.ROUND_SMOOTHNESS)
    anchor = policy.round_anchor(low.values.size, x.size)
    for _ in range(policy.ROUNDS):
        target, confidence = low.observe(x, gain).back_project(x)
        total = confidence + anchor
        x = scene.smooth(solver.solve((confidence * target + anchor * x) / total, total))
    for photo in reversed(_pyramid(scene.pixels, low.values.shape)):
        reduced = reduce_map(x, (photo.shape[0], photo.shape[1]))
        # few steps reach far at a low resolution
        change = _polish(reduced, low, photo, scene.white, policy.COARSE_PASS) - reduced
        x = scene.smooth(x + resize.bilinear(change, x.shape))
    return _polish(x, low, scene.pixels, scene.white, policy.FINE_PASS)


def _pyramid(pixels: Array, least: tuple[int, ...]) -> list[Array]:
    """Return the photograph at a half, a quarter ... of its resolution, no smaller than `least`."""
    photos: list[Array] = []
    for shape in policy.coarse_shapes(pixels.shape[:2], least):
        photos.append(reduce_map(photos[-1] if photos else pixels, shape))
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
    """Polish x on the graph of pixels, with the block means as data."""
    rule = PolishRule.of(low.noise.level, low.noise.slope, x.size, low.values.size)
    rounds, steps = effort
    return polish(
        x,
        pixels,
        scale=rule.scale,
        smoothness=rule.smoothness,
        sigma_rgb=rule.sigma_rgb,
        anchor=rule.anchor,
        observation=low.observe(x, rule.gain),
        rounds=rounds,
        steps=steps,
        reference_max=white,
    )
