"""Depth super-resolution (paper, section 5.2; supplement, "Depth Superresolution")."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bilateral import validation
from bilateral.filters import resize
from bilateral.filters.domain_transform import domain_transform
from bilateral.filters.median import median
from bilateral.filters.polish import polish
from bilateral.grid import BilateralGrid
from bilateral.numerics.observation import BlockMeans
from bilateral.solver import BilateralSolver
from bilateral.tasks.superres.noise import noise_levels

Array = NDArray[Any]

PRESETS = ("best", "fast", "paper")

_SIGMAS = (8, 4, 3)
_SMOOTHNESS = 0.6
"""For confidences that sum to 1/4 for each low-resolution pixel, whatever the factor."""
_STEPS = 15
_FILTER = (16, 16)

_ROUNDS = 3
"""Of back-projection. Each moves the block means about as far as the noise lets them."""
_ROUND_SMOOTHNESS = 0.7
"""For confidences that sum to 1 for a low-resolution pixel with the usual noise."""
_ROUND_ANCHOR = 0.25
"""How much the last estimate counts, on the same scale. It keeps holes as the first one left them,
and vertices that few blocks see."""
_EDGE = 0.2
"""Neighbours in the polished map differ by less than this part of the noise, unless at an edge."""


def superres_depth(
    depth_lowres: ArrayLike,
    reference: ArrayLike,
    factor: float | None = None,
    preset: str = "best",
    *,
    confidence: ArrayLike | None = None,
    invalid: float | Sequence[float] | None = None,
    keep_holes: bool = False,
    reference_max: float | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Bring a low-resolution depth map to the resolution of a photograph of the same scene.

    Parameters
    ----------
    depth_lowres : (h, w) array
        Depth or disparity, in any unit and real dtype. A value that is not finite is a hole.
    reference : (H, W) or (H, W, 3) array
        The photograph, aligned with the depth map: uint8, uint16 or floating point, with white at
        255, 65535 or 1.
    factor : float, optional
        Pixels of the reference per pixel of the depth map; any number from 1 on. Left out, it
        follows from the shapes, H / h and W / w. Given, the depth map may reach beyond the
        reference at the right and at the bottom, by less than one of its pixels.
    preset : {"best", "fast", "paper"}
        "best" takes a low-resolution value for what it is, the mean over its block, with noise
        whose level is found from the map itself, and ends with a polish of the pixels. "fast" is
        the paper's pipeline, converged. "paper" is exactly what the paper's authors did: bicubic
        enlargement, Gaussian confidences, 15 steps, domain transform, and a 5 x 5 median.
    confidence : (h, w) array, optional
        How much to trust each value, relative to the others; 1 everywhere if left out.
    invalid : float or floats, optional
        Values that mean a hole, such as 0.
    keep_holes : bool
        Leave holes where the depth map has them: NaN, or the (first) `invalid` one if that was
        given. Else they are filled from their surroundings.
    reference_max : float, optional
        The reference value that means white, where it is not the dtype's usual one.
    dtype : dtype, optional
        The result's, if not the depth map's. Integer results are rounded.

    Returns
    -------
    (H, W) array

    Examples
    --------
    >>> import numpy as np
    >>> from bilateral.tasks import superres_depth
    >>> photo = np.zeros((32, 48), np.uint8)
    >>> photo[:, 27:] = 255
    >>> depth = np.array([[1, 1, 1, 2.25, 3, 3]] * 4)  # the fourth column sees both sides
    >>> superres_depth(depth, photo)[16, [0, 26, 27, 47]].round(2).tolist()
    [1.0, 1.0, 3.0, 3.0]
    """
    validation.choice("preset", preset, PRESETS)
    marks = validation.number_list("invalid", invalid)
    low = validation.lowres_depth("depth_lowres", depth_lowres, marks, dtype)
    guide = validation.reference(reference, reference_max)
    shape = guide.pixels.shape[:2]
    trust = validation.pixel_weights("confidence", confidence, low.values.shape, low.values.dtype)
    known = np.isfinite(low.values) & (trust > 0)
    validation.some_known("depth_lowres", known)
    padded = validation.enlarged_shape("factor", factor, low.values.shape, shape)
    pixels = np.pad(
        guide.pixels, [(0, padded[0] - shape[0]), (0, padded[1] - shape[1]), (0, 0)], mode="edge"
    )
    scene = _Scene(
        BilateralGrid(pixels, *_SIGMAS, reference_max=guide.highest), pixels, guide.highest
    )
    weights = np.where(known, trust / trust.max(), 0).astype(low.values.dtype)
    values = _filled(np.where(known, low.values, np.nan))
    x = _enlarge(values, weights, scene, exactly=preset == "paper")
    if preset == "best":
        x = _improve(x, values, weights, scene)
    x = x[: shape[0], : shape[1]]
    if keep_holes:
        covers = BlockMeans(low.values, padded).spread(~known) > 0
        x = np.where(covers[: shape[0], : shape[1]], marks[0] if marks else np.nan, x)
    return validation.as_dtype(x, low.dtype)


class _Scene(NamedTuple):
    """The grid and pixels of the reference."""

    grid: BilateralGrid
    pixels: Array
    white: float

    def smooth(self, x: Array) -> Array:
        """What the authors end with: the blocks of the grid go, and lone vertices' noise."""
        return median(domain_transform(x, self.pixels, *_FILTER, reference_max=self.white), 5)


def _filled(low: Array) -> Array:
    """Fill holes smoothly, for what interpolates across them; they get no confidence."""
    if np.isfinite(low).all():
        return low
    space = BilateralGrid.from_features(np.zeros((*low.shape, 0), np.uint8), (), 1)
    smooth = BilateralSolver(space, 0.01).solve(low)
    return np.where(np.isfinite(low), low, smooth)


def _enlarge(low: Array, weights: Array, scene: _Scene, exactly: bool) -> Array:
    """The authors' pipeline; not `exactly` if it shall converge."""
    target = resize.bicubic(low, scene.grid.shape)
    support = _support(weights, scene.grid.shape)
    solver = (
        BilateralSolver(scene.grid, _SMOOTHNESS, method="paper", max_iterations=_STEPS)
        if exactly
        else BilateralSolver(scene.grid, _SMOOTHNESS)
    )
    return scene.smooth(solver.solve(target, support))


def _support(weights: Array, shape: tuple[int, ...]) -> Array:
    """The sum of Gaussians around low-resolution pixels' centres, each with the mass weight / 4."""
    factors = [n / m for n, m in zip(shape, weights.shape, strict=True)]
    # sigma is a quarter of a low-resolution pixel
    support = resize.interpolate(weights, shape, lambda t: np.exp(-8 * t * t), 2)
    for factor in factors:
        support /= 2 * _gaussian_sum(factor)
    return support


def _gaussian_sum(factor: float) -> float:
    """The sum over all pixels of a Gaussian of sigma = factor / 4 around a block's centre."""
    reach = math.ceil(3 * factor)
    x = np.arange(-reach, reach + 1) + (factor - 1) / 2 % 1
    return float(np.exp(-8 * (x / factor) ** 2).sum())


def _improve(x: Array, low: Array, weights: Array, scene: _Scene) -> Array:
    """Fit the block means, by the noise that is left in them, then polish the pixels."""
    solver = BilateralSolver(scene.grid, _ROUND_SMOOTHNESS)
    for _ in range(_ROUNDS):
        seen, _ = _observe(x, low, weights)
        target, confidence = seen.back_project(x)
        anchor = _ROUND_ANCHOR * low.size / x.size
        sum_ = confidence + anchor
        x = scene.smooth(solver.solve((confidence * target + anchor * x) / sum_, sum_))
    seen, noise = _observe(x, low, weights)
    octaves = math.log2(math.sqrt(x.size / low.size))
    return polish(
        x,
        scene.pixels,
        scale=_EDGE * noise,
        smoothness=6 * 2 ** (-(octaves - 1) / 2),
        sigma_rgb=120 * 2 ** (-2 * (octaves - 1) / 3),
        anchor=0.05 * 2**-octaves,
        observation=seen,
        rounds=3,
        reference_max=scene.white,
    )


def _observe(x: Array, low: Array, weights: Array) -> tuple[BlockMeans, float]:
    """What was seen, by the inverse of its variance, and the usual noise, for a weight of 1."""
    means = BlockMeans(low, (x.shape[0], x.shape[1])).means(x)
    levels = noise_levels(low - means, means, weights > 0)
    usual = float(np.median(levels[weights > 0]))
    relative = weights * (usual / np.maximum(levels, usual / 4)) ** 2
    return BlockMeans(low, (x.shape[0], x.shape[1]), relative), usual
