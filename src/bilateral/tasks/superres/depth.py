"""Depth super-resolution (paper, section 5.2; supplement, "Depth Superresolution")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bilateral import validation
from bilateral.filters import resize
from bilateral.filters.block_means import BlockMeans
from bilateral.grid import BilateralGrid
from bilateral.solver import BilateralSolver
from bilateral.tasks.superres import policy
from bilateral.tasks.superres.block_fit import LowResolution, Scene, fit_block_means
from bilateral.tasks.superres.noise import MapNoise
from bilateral.tasks.superres.reliability import blend_with_bicubic

Array = NDArray[Any]


@validation.keywords(photo="reference", depth="depth_lowres", target="depth_lowres")
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
    """Enlarge a low-resolution depth map to the resolution of a photograph of the same scene.

    Parameters
    ----------
    depth_lowres : (h, w) array
        Depth or disparity, in any unit and real dtype. A value that is not finite is a hole.
    reference : (H, W) or (H, W, 3) array
        The photograph, aligned with the depth map: uint8, uint16 or floating point, with white at
        255, 65535 or 1.
    factor : float, optional
        Pixels of the reference per pixel of the depth map, any number from 1 on. Default: H / h and
        W / w. With a factor, the depth map may extend beyond the reference at the right and at the
        bottom, by less than one of its pixels.
    preset : {"best", "fast", "paper"}
        "best" treats a low-resolution value as the noisy mean over its block. It estimates the
        level of the noise from the map, and ends with a `polish`. Where the photograph does not
        help to predict the map from its half, the result is the bicubic enlargement. "fast" is the
        paper's pipeline, solved to convergence. "paper" is exactly the pipeline of the paper's
        authors: bicubic enlargement, Gaussian confidences, 15 steps, domain transform, and a 5 x 5
        median.
    confidence : (h, w) array, optional
        Weight of each value relative to the others. Default: 1 everywhere.
    invalid : float or floats, optional
        Values that mean a hole, such as 0. Without it, a map whose zeros are far from all other
        values causes a warning.
    keep_holes : bool
        If true, holes of the depth map stay holes: NaN, or the (first) `invalid` value. Otherwise
        they are filled from their surroundings.
    reference_max : float, optional
        Value of white in the reference. Default: 255, 65535 or 1, by its dtype.
    dtype : dtype, optional
        Dtype of the result. Default: that of the depth map. Integer results are rounded.

    Returns
    -------
    (H, W) array

    Examples
    --------
    >>> import numpy as np
    >>> from bilateral.tasks import superres_depth
    >>> photo = np.zeros((32, 48), np.uint8)
    >>> photo[:, 27:] = 255
    >>> depth = np.array([[1, 1, 1, 2.25, 3, 3]] * 4)  # the fourth column covers both sides
    >>> superres_depth(depth, photo)[16, [0, 26, 27, 47]].round(2).tolist()
    [1.0, 1.0, 3.0, 3.0]
    """
    validation.depth_not_swapped("superres_depth", "depth_lowres", depth_lowres, reference)
    validation.choice("preset", preset, policy.PRESETS)
    hole_values = validation.number_list("invalid", invalid)
    low = validation.lowres_depth("depth_lowres", depth_lowres, hole_values, dtype)
    hole_value = None
    if validation.flag("keep_holes", keep_holes):
        hole_value = validation.hole_value(hole_values, low.dtype)
    guide = validation.reference(reference, reference_max)
    shape = guide.pixels.shape[:2]
    trust = validation.pixel_weights("confidence", confidence, low.values.shape, low.values.dtype)
    known = np.isfinite(low.values) & (trust > 0)
    validation.some_known("depth_lowres", known)
    validation.warn_of_zeros("depth_lowres", low.values, known, stacklevel=3)
    padded = validation.enlarged_shape("factor", factor, low.values.shape, shape)
    pixels = np.pad(
        guide.pixels, [(0, padded[0] - shape[0]), (0, padded[1] - shape[1]), (0, 0)], mode="edge"
    )
    weights = np.where(known, trust / trust.max(), 0).astype(low.values.dtype)
    values = _filled(np.where(known, low.values, np.nan))
    if preset == "best":
        x = _enlarge_best(values, weights, pixels, guide.highest)
    else:
        x = _enlarge(values, weights, _scene(pixels, guide.highest), preset == "paper")
    x = x[: shape[0], : shape[1]]
    if hole_value is not None:
        holes = BlockMeans(low.values, padded).spread(~known) > 0
        x = np.where(holes[: shape[0], : shape[1]], hole_value, x)
    return validation.as_dtype(x, low.dtype)


def _scene(pixels: Array, white: float) -> Scene:
    return Scene(BilateralGrid(pixels, *policy.SIGMAS, reference_max=white), pixels, white)


def _enlarge_best(values: Array, weights: Array, pixels: Array, white: float) -> Array:
    """Fit block means with the photograph, and fall back to bicubic where it does not help."""

    def guided(low: LowResolution, photo: Array) -> Array:
        scene = _scene(photo, white)
        start = _enlarge(low.values, low.weights, scene, as_in_paper=False)
        return fit_block_means(start, low, scene)

    low = LowResolution(values, weights, MapNoise.of(values, weights > 0))
    return blend_with_bicubic(guided(low, pixels), low, pixels, guided)


def _filled(low: Array) -> Array:
    """Fill holes smoothly, so that bicubic interpolation can cross them; their weight is 0."""
    if np.isfinite(low).all():
        return low
    pixel_grid = BilateralGrid.from_features(np.zeros((*low.shape, 0), np.uint8), (), 1)
    smooth = BilateralSolver(pixel_grid, policy.FILL_SMOOTHNESS).solve(low)
    return np.where(np.isfinite(low), low, smooth)


def _enlarge(low: Array, weights: Array, scene: Scene, as_in_paper: bool) -> Array:
    """Enlarge by the paper's pipeline, with the paper's steps or solved to convergence."""
    target = resize.bicubic(low, scene.grid.shape)
    support = _support(weights, scene.grid.shape)
    solver = (
        BilateralSolver(
            scene.grid, policy.SMOOTHNESS, method="paper", max_iterations=policy.PAPER_STEPS
        )
        if as_in_paper
        else BilateralSolver(scene.grid, policy.SMOOTHNESS)
    )
    return scene.smooth(solver.solve(target, support))


def _support(weights: Array, shape: tuple[int, ...]) -> Array:
    """Sum Gaussians at the centres of the low-resolution pixels, each of mass weight / 4."""
    factors = [n / m for n, m in zip(shape, weights.shape, strict=True)]
    support = resize.interpolate(weights, shape, policy.gaussian, 2)
    for factor in factors:
        support /= policy.gaussian_mass(factor)
    return support
