"""Disparities of a rectified stereo pair: block matching, then the robust bilateral solver."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral import losses, validation
from bilateral.filters.domain_transform import domain_transform
from bilateral.filters.median import median
from bilateral.grid import BilateralGrid
from bilateral.solver import BilateralSolver
from bilateral.tasks.cell_size import cell_size
from bilateral.tasks.stereo.block_matching import match

Array = NDArray[Any]

_FIRST_SMOOTHNESS = 64.0
"""Smoothness of the plain solve before the robust rounds: wrong matches stand out from it."""
_FIRST_SPREAD = 3.0
"""Residuals of the plain solve are divided by this, because its solution is less exact."""
_GEMAN_MCCLURE = losses.GemanMcClure(1.0)


def stereo_depth(
    left: ArrayLike,
    right: ArrayLike,
    max_disparity: int,
    *,
    window: int = 7,
    margin: float = 0.05,
    consistency: float | None = 1.0,
    sigma_xy: float | None = None,
    sigma_luma: float = 8,
    sigma_chroma: float = 8,
    smoothness: float = 0.5,
    loss: losses.Loss | None = _GEMAN_MCCLURE,
    iterations: int = 16,
    smooth: tuple[float, float] | None = (4, 4),
    reference_max: float | None = None,
) -> Array:
    """Return the disparities of the left view of a rectified stereo pair.

    Follows Barron et al. 2015 as used in the paper's supplement (stereo-based defocus).
    `match_blocks` gives each pixel a target and a confidence. The bilateral solver, guided by the
    left view, keeps consistent matches and fills in the rest. By default a robust solve follows the
    plain one, because block matching is either right or far off.

    Parameters
    ----------
    left, right : (H, W) or (H, W, 3) array
        Two views of one size with matching rows: uint8, uint16 or floating point.
    max_disparity : int
        Largest disparity to search, in pixels: that of the nearest object, or a little more. A
        warning tells if it seems too small.
    window, margin, consistency
        As for `match_blocks`.
    sigma_xy : float, optional
        Size of a grid cell in pixels. Default: 8 for images of up to 0.35 megapixels, and in
        proportion to the side of larger images, up to 64.
    sigma_luma, sigma_chroma : float
        Size of a grid cell in 8-bit grey levels.
    smoothness : float
        The paper's lambda. Without a loss, 4 or more is needed.
    loss : Loss or None
        Loss of the robust solve, in pixels of disparity. None: only one plain solve, with the
        confidence of the intervals, as in the supplement.
    iterations : int
        Largest number of robust rounds.
    smooth : (sigma_xy, sigma_rgb) or None
        Sigmas of a `domain_transform` of the result, in pixels and in 8-bit grey levels. A 5 x 5
        `median` follows. None: no filter.
    reference_max : float, optional
        Value of white in `left`. Default: 255, 65535 or 1, by its dtype.

    Returns
    -------
    (H, W) float32 array
        Disparity d of each pixel of the left view in pixels, 0 or above: pixel x of the left view
        matches x - d in the right view. Nearer points have larger disparities. Depth is
        ``focal_length * baseline / (d + offset)`` with the focal length in pixels and the offset
        x_right - x_left of the principal points.

    Examples
    --------
    >>> import numpy as np
    >>> from bilateral.tasks import stereo_depth
    >>> scene = np.random.default_rng(0).integers(0, 256, (40, 70), np.uint8)
    >>> left, right = scene[:, :60], scene[:, 5:65]  # everything 5 pixels further left
    >>> d = stereo_depth(left, right, max_disparity=16)
    >>> d.shape, float(np.median(d).round(2))
    ((40, 60), 5.0)
    """
    guide, _ = validation.stereo_pair(left, right, reference_max)
    smoothness = validation.positive("smoothness", smoothness)
    iterations = validation.count("iterations", iterations, 1)
    if loss is not None:
        validation.loss(loss)
    sigmas = validation.smooth(smooth, guide)
    cell = cell_size(guide.pixels.shape, 8, least=8) if sigma_xy is None else sigma_xy
    grid = BilateralGrid(guide.pixels, cell, sigma_luma, sigma_chroma, reference_max=guide.highest)
    target, confidence = match(
        left, right, max_disparity, window, margin, consistency, stacklevel=3
    )
    if loss is None:
        disparity = BilateralSolver(grid, smoothness).solve(target, confidence)
    else:
        disparity = _solve_robust(grid, target, confidence, smoothness, loss, iterations)
    if sigmas is not None:
        disparity = domain_transform(disparity, guide.pixels, *sigmas, reference_max=guide.highest)
        disparity = median(disparity, 5)
    return np.maximum(disparity, 0)


def _solve_robust(
    grid: BilateralGrid,
    target: Array,
    confidence: Array,
    smoothness: float,
    loss: losses.Loss,
    iterations: int,
) -> Array:
    """Solve with high smoothness to find the outliers, then continue with robust rounds."""
    first = BilateralSolver(grid, _FIRST_SMOOTHNESS).solve(target, confidence)
    known = np.isfinite(target)
    error = np.where(known, target - first, 0) / _FIRST_SPREAD
    trust = np.where(known, validation.loss_weights(loss.weight(error), error.shape), 0)
    if not trust.any():  # the loss may give weight 0 to every pixel
        return first
    return BilateralSolver(grid, smoothness).solve_robust(
        target, trust.astype(np.float32), loss, iterations, warm_start=first
    )
