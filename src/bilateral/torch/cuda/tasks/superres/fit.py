"""Fit the block means of a map to the data within their noise: `block_fit` for tensors."""

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
from bilateral.torch import autograd, inputs
from bilateral.torch.cpu_filters import FilterOptions
from bilateral.torch.cuda.tasks.superres.maps import bilinear, reduce_map, spread
from bilateral.torch.cuda.tasks.superres.noise import MapNoise
from bilateral.torch.options import LayerOptions


class Scene:
    """A photograph (C, H, W) and its white; all solves on it share one grid."""

    def __init__(self, photo: Tensor, white: float) -> None:
        self.photo, self.white = photo, white
        self._grid: Tensor | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        return self.photo.shape[1], self.photo.shape[2]

    def solve(
        self, target: Tensor, confidence: Tensor, smoothness: float, *, as_in_paper: bool = False
    ) -> Tensor:
        """Solve for a map (H, W)."""
        cells = GridOptions(
            *policy.SIGMAS, validation.blur("paper", 2 + len(self.photo)), self.white
        )
        solve = SolveOptions()
        if as_in_paper:
            solve = SolveOptions(
                preconditioner="pyramid",
                initial="pyramid",
                max_iterations=policy.PAPER_STEPS,
                fixed_steps=True,
            )
        y, self._grid = autograd.solve(
            self.photo[None],
            target[None, None],
            confidence[None, None],
            inputs.smoothness(smoothness),
            self._grid,
            LayerOptions(cells, solve),
        )
        return y[0, 0]

    def smooth(self, x: Tensor) -> Tensor:
        """Remove the blocks of grid cells and the noise of single vertices, as in the paper."""
        options = FilterOptions(*policy.FILTER_SIGMAS, 3, self.white, self.white)
        arguments = x[None, None], None, self.photo[None], options.scale, options.passes
        filtered, _ = domain_transform(*arguments, options.limits, False)
        return median.median(filtered[0], policy.MEDIAN_SIZE)[0]


class LowResolution(NamedTuple):
    """A low-resolution map (h, w) without holes, the weights of its values, and its noise."""

    values: Tensor
    weights: Tensor
    noise: MapNoise

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        return self.values.shape[0], self.values.shape[1]

    def observe(self, means: Tensor, gain: float) -> Tensor:
        """Return the weights of the data by the inverse variance of their noise.

        `means` are those of the present estimate over the blocks; typical data weigh `gain`.
        """
        levels = self.noise.levels(means)
        known = self.weights > 0
        ordered, _ = torch.where(known, levels, torch.inf).flatten().sort()
        count = known.sum()
        typical = ordered[torch.stack([(count - 1) // 2, count // 2])].double().mean()
        typical = typical.to(levels.dtype)
        relative = (typical / torch.maximum(levels, policy.LEAST_LEVEL * typical)).square()
        return gain * self.weights * relative


def fit_block_means(x: Tensor, low: LowResolution, scene: Scene) -> Tensor:
    """Improve the estimate x: rounds on the grid, then on the pixels from coarse to fine."""
    gain = policy.round_gain(low.noise.noisiness)
    anchor = policy.round_anchor(low.values.numel(), x.numel())
    for _ in range(policy.ROUNDS):
        means = reduce_map(x, low.shape)
        weights = low.observe(means, gain)
        total = spread(weights, scene.shape) + anchor
        # confidence * target = confidence * x + correction, and all of x has the anchor's weight
        target = x + spread(weights * (low.values - means), scene.shape) / total
        x = scene.smooth(scene.solve(target, total, policy.ROUND_SMOOTHNESS))
    for photo in reversed(_pyramid(scene.photo, low.shape, x.dtype)):
        reduced = reduce_map(x, (photo.shape[1], photo.shape[2]))
        change = _polish(reduced, low, photo, scene.white, policy.COARSE_PASS) - reduced
        x = scene.smooth(x + bilinear(change, scene.shape))
    return _polish(x, low, scene.photo, scene.white, policy.FINE_PASS)


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
    x: Tensor, low: LowResolution, photo: Tensor, white: float, effort: tuple[int, int]
) -> Tensor:
    """Polish x on the graph of pixels, with the block means as data."""
    rule = PolishRule.of(low.noise.level, low.noise.slope, x.numel(), low.values.numel())
    weights = low.observe(reduce_map(x, low.shape), rule.gain)
    scale = polish.Scale(rule.smoothness, rule.sigma_rgb * (white / 255), rule.anchor, rule.scale)
    polished = polish.polish(
        x[None, None],
        photo[None].to(x.dtype),
        None,
        None,
        polish.Observation(low.values, weights.to(x.dtype)),
        scale,
        *effort,
    )
    return polished[0, 0]
