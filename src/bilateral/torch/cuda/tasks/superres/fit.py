"""Fit the block means of a map to the data within their noise: `block_fit` for tensors.

Between two solves, everything is one recorded function. The numbers of the rules, which change from
map to map, are a tensor.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from bilateral import validation
from bilateral.backends.cuda.filters import median, polish
from bilateral.backends.cuda.filters.domain_transform import domain_transform
from bilateral.numerics.options import GridOptions, SolveOptions
from bilateral.tasks.superres import policy
from bilateral.tasks.superres.policy import PolishRule
from bilateral.torch.cpu_filters import FilterOptions
from bilateral.torch.cuda.recorded import recorded
from bilateral.torch.cuda.tasks.solves import PhotoSolver
from bilateral.torch.cuda.tasks.superres.maps import (
    bicubic,
    bilinear,
    reduce_map,
    spread,
    support,
)
from bilateral.torch.cuda.tasks.superres.noise import MapNoise, levels_at
from bilateral.torch.options import LayerOptions

_TABLE = 2 * policy.BINS
_OF_PASS = 5
"""Numbers of a polish: the gain of the data, and those of the kernels."""


class LowResolution(NamedTuple):
    """A low-resolution map (h, w) without holes, and the weights of its values."""

    values: Tensor
    weights: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        return self.values.shape[0], self.values.shape[1]

    def observe(self, means: Tensor, table: Tensor, gain: Tensor) -> Tensor:
        """Return the weights of the data by the inverse variance of their noise.

        `means` are those of the present estimate over the blocks, and `table` is that of the noise;
        typical data weigh `gain`.
        """
        levels = levels_at(table, means)
        known = self.weights > 0
        ordered, _ = torch.where(known, levels, torch.inf).flatten().sort()
        count = known.sum()
        typical = ordered[torch.stack([(count - 1) // 2, count // 2])].double().mean()
        typical = typical.to(levels.dtype)
        relative = (typical / torch.maximum(levels, policy.LEAST_LEVEL * typical)).square()
        return gain * self.weights * relative


class Photo(NamedTuple):
    """A photograph (C, H, W) and its white."""

    pixels: Tensor
    white: float

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        return self.pixels.shape[1], self.pixels.shape[2]


class Scene:
    """A photograph; all solves on it share one grid."""

    def __init__(self, photo: Photo) -> None:
        self._solver = PhotoSolver(photo.pixels)
        blur = validation.blur("paper", 2 + len(photo.pixels))
        self._cells = GridOptions(*policy.SIGMAS, blur, photo.white)

    def solve(
        self, target: Tensor, confidence: Tensor, smoothness: float, *, as_in_paper: bool = False
    ) -> Tensor:
        """Solve for a map (H, W)."""
        options = SolveOptions()
        if as_in_paper:
            options = SolveOptions(
                preconditioner="pyramid",
                initial="pyramid",
                max_iterations=policy.PAPER_STEPS,
                fixed_steps=True,
            )
        layer = LayerOptions(self._cells, options)
        return self._solver.solve(target[None], confidence, smoothness, layer)[0]


def numbers_of(noise: MapNoise, low: tuple[int, int], photo: Photo) -> list[float]:
    """Return the numbers of the rules for a map of this size and noise."""
    shapes = [*reversed(policy.coarse_shapes(photo.shape, low)), photo.shape]
    numbers = [*noise.table, policy.round_gain(noise.noisiness), 1 - noise.noisiness]
    for height, width in shapes:
        rule = PolishRule.of(noise.level, noise.slope, height * width, low[0] * low[1])
        sigma = rule.sigma_rgb * (photo.white / 255)
        scale = polish.Scale(rule.smoothness, sigma, rule.anchor, rule.scale)
        numbers += [rule.gain, *scale.numbers]
    return numbers


def unnoisiness(numbers: Tensor) -> Tensor:
    """Return 1 minus the noisiness."""
    return numbers[_TABLE + 1]


@recorded
def start_data(low: LowResolution, shape: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Return target and confidence of the first solve."""
    return bicubic(low.values, shape), support(low.weights, shape)


@recorded
def smooth(x: Tensor, photo: Photo) -> Tensor:
    """Remove the blocks of grid cells and the noise of single vertices, as in the paper."""
    return _smooth(x, photo)


def _smooth(x: Tensor, photo: Photo) -> Tensor:
    options = FilterOptions(*policy.FILTER_SIGMAS, 3, photo.white, photo.white)
    arguments = x[None, None], None, photo.pixels[None], options.scale, options.passes
    filtered, _ = domain_transform(*arguments, options.limits, False)
    return median.median(filtered[0], policy.MEDIAN_SIZE)[0]


@recorded
def round_data(
    solved: Tensor, low: LowResolution, photo: Photo, numbers: Tensor
) -> tuple[Tensor, Tensor]:
    """Return target and confidence of the next round on the grid, after the last solution."""
    x = _smooth(solved, photo)
    anchor = policy.round_anchor(low.values.numel(), x.numel())
    means = reduce_map(x, low.shape)
    weights = low.observe(means, numbers[:_TABLE], numbers[_TABLE])
    total = spread(weights, photo.shape) + anchor
    # confidence * target = confidence * x + correction, and all of x has the anchor's weight
    target = x + spread(weights * (low.values - means), photo.shape) / total
    return target, total


@recorded
def fit_on_pixels(solved: Tensor, low: LowResolution, photo: Photo, numbers: Tensor) -> Tensor:
    """Improve the solution of the last round on the pixels, from coarse to fine."""
    x = _smooth(solved, photo)
    passes = numbers[_TABLE + 2 :].view(-1, _OF_PASS)
    small = _pyramid(photo.pixels, low.shape, x.dtype)
    for i, pixels in enumerate(reversed(small)):
        reduced = reduce_map(x, (pixels.shape[1], pixels.shape[2]))
        coarse = Photo(pixels, photo.white)
        change = _polish(reduced, low, coarse, numbers, passes[i], policy.COARSE_PASS) - reduced
        x = _smooth(x + bilinear(change, photo.shape), photo)
    return _polish(x, low, photo, numbers, passes[-1], policy.FINE_PASS)


def fit_block_means(
    x: Tensor, low: LowResolution, scene: Scene, photo: Photo, numbers: Tensor
) -> Tensor:
    """Improve the first solution x: rounds on the grid, then on the pixels."""
    for _ in range(policy.ROUNDS):
        x = scene.solve(*round_data(x, low, photo, numbers), policy.ROUND_SMOOTHNESS)
    return fit_on_pixels(x, low, photo, numbers)


def _pyramid(photo: Tensor, least: tuple[int, int], dtype: torch.dtype) -> list[Tensor]:
    """Return the photograph at a half, a quarter ... of its resolution, no smaller than `least`."""
    photos: list[Tensor] = []
    for shape in policy.coarse_shapes((photo.shape[1], photo.shape[2]), least):
        photos.append(reduce_map(photos[-1] if photos else as_real(photo), shape))
    return [small.to(dtype) for small in photos]


def as_real(photo: Tensor) -> Tensor:
    """Return a photograph as float64 if it is, else as float32."""
    return photo if photo.dtype == torch.float64 else photo.float()


def _polish(
    x: Tensor,
    low: LowResolution,
    photo: Photo,
    numbers: Tensor,
    of_pass: Tensor,
    effort: tuple[int, int],
) -> Tensor:
    """Polish x on the graph of pixels, with the block means as data."""
    weights = low.observe(reduce_map(x, low.shape), numbers[:_TABLE], of_pass[0])
    polished = polish.polish(
        x[None, None],
        photo.pixels[None].to(x.dtype),
        None,
        None,
        polish.Observation(low.values, weights.to(x.dtype)),
        of_pass[1:].to(x.dtype),
        *effort,
    )
    return polished[0, 0]
