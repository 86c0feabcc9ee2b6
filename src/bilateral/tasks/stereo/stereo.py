"""Depth from a rectified stereo pair: brittle block matching, made whole by the solver."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral import color, confidence, losses, validation
from bilateral.backends import cpu
from bilateral.filters.domain_transform import domain_transform
from bilateral.filters.median import median
from bilateral.grid import BilateralGrid
from bilateral.solver import BilateralSolver
from bilateral.tasks.cell_size import cell_size

Array = NDArray[Any]

_LARGEST_WINDOW = 21
_LARGEST_DISPARITY = 32766
_FIRST_SMOOTHNESS = 64.0
"""Of the solve before the robust rounds: smooth enough that most wrong matches stand out."""
_FIRST_SPREAD = 3.0
"""Errors of that first solution count by so much less than the errors of later ones."""
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
    """Disparities of the left view of a rectified pair.

    In the manner of Barron et al. 2015 as the supplement uses it (stereo-based defocus):
    `match_blocks` gives each pixel a target and a confidence, and the bilateral solver, guided by
    the left view, keeps what fits together and fills in the rest. By default the robust solver
    follows the plain one, since block matching is either right or far off.

    Parameters
    ----------
    left, right : (H, W) or (H, W, 3) array
        Two views of one size whose rows match: uint8, uint16 or floating point.
    max_disparity : int
        The largest disparity to look for, in pixels. That of the nearest object, or a bit more.
    window, margin, consistency
        As for `match_blocks`.
    sigma_xy : float, optional
        Size of a grid cell in pixels. By default 8 for images of up to a third of a megapixel, and
        in proportion to the side of larger ones, up to 64.
    sigma_luma, sigma_chroma : float
        Size of a grid cell in 8-bit grey levels.
    smoothness : float
        The paper's lambda. Without a loss, 4 or more is needed.
    loss : Loss or None
        For the robust solver, in pixels of disparity. None: only one plain solve with the
        confidence of the intervals, as in the supplement.
    iterations : int
        Number of robust rounds, at most.
    smooth : (sigma_xy, sigma_rgb) or None
        Filter the result by `domain_transform` with these sigmas, in pixels and in 8-bit grey
        levels, then by a 5 x 5 `median`. None: leave it as the solver made it.
    reference_max : float, optional
        The value of `left` that means white, where it is not the dtype's usual one.

    Returns
    -------
    (H, W) float32 array
        The disparity of each pixel of the left view in pixels, 0 or above: pixel x of the left
        view lies at x - d in the right one. Large is near. Depth is
        ``focal_length * baseline / (d + offset)`` with the focal length in pixels and the offset of
        the principal points, x_right - x_left.

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
    target, c = match_blocks(
        left, right, max_disparity, window=window, margin=margin, consistency=consistency
    )
    if loss is None:
        disparity = BilateralSolver(grid, smoothness).solve(target, c)
    else:
        disparity = _solve_robust(grid, target, c, smoothness, loss, iterations)
    if sigmas is not None:
        disparity = domain_transform(disparity, guide.pixels, *sigmas, reference_max=guide.highest)
        disparity = median(disparity, 5)
    return np.maximum(disparity, 0)


def _solve_robust(
    grid: BilateralGrid,
    target: Array,
    c: Array,
    smoothness: float,
    loss: losses.Loss,
    iterations: int,
) -> Array:
    """A smooth plain solve tells the outliers, from where the robust rounds go on."""
    first = BilateralSolver(grid, _FIRST_SMOOTHNESS).solve(target, c)
    known = np.isfinite(target)
    error = np.where(known, target - first, 0) / _FIRST_SPREAD
    trust = np.where(known, validation.loss_weights(loss.weight(error), error.shape), 0)
    if not trust.any():  # a loss may give nothing to any of them
        return first
    return BilateralSolver(grid, smoothness).solve_robust(
        target, trust.astype(np.float32), loss, iterations, warm_start=first
    )


def match_blocks(
    left: ArrayLike,
    right: ArrayLike,
    max_disparity: int,
    *,
    window: int = 7,
    margin: float = 0.05,
    consistency: float | None = 1.0,
) -> tuple[Array, Array]:
    """Match each pixel of the left view by itself, and say how sure that is.

    The cost of a disparity is the Hamming distance between the two pixels' census transforms
    (which of the 9 x 7 pixels around are darker), summed over a window: brightness and contrast of
    the views need not agree. Costs near the least one make an interval [l, u] around it, its ends
    between disparities where straight lines say so. The target is (l + u) / 2, the confidence
    exp(l - u) (supplement, stereo-based defocus).

    Parameters
    ----------
    left, right, max_disparity
        As for `stereo_depth`.
    window : int
        Side of the window in pixels, an odd number up to 21. Larger ones are surer on noise, and
        blunter at edges.
    margin : float
        Costs up to 1 + margin times the least one belong to the interval.
    consistency : float or None
        A match that the right view does not confirm to so many pixels counts as unknown. None: no
        such check, as if the other view saw everything.

    Returns
    -------
    target : (H, W) float32 array
        Disparities in pixels, as from `stereo_depth`; NaN where unknown.
    confidence : (H, W) float32 array
        From 0 to 1; 0 where unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from bilateral.tasks import match_blocks
    >>> scene = np.random.default_rng(0).integers(0, 256, (20, 50), np.uint8)
    >>> target, c = match_blocks(scene[:, :40], scene[:, 5:45], max_disparity=16)
    >>> bool(abs(target[:, 10:-4] - 5).max() < 0.1), bool(c[:, 10:-4].min() > 0.8)
    (True, True)
    """
    first, second = validation.stereo_pair(left, right, None)
    most = min(validation.count("max_disparity", max_disparity, 1), first.pixels.shape[1] - 1)
    window = validation.odd("window", window, _LARGEST_WINDOW)
    margin = validation.not_negative("margin", margin)
    found = cpu.match_blocks(
        color.luma(first.pixels).astype(np.float32, copy=False),
        color.luma(second).astype(np.float32, copy=False),
        min(most, _LARGEST_DISPARITY),
        window,
        margin,
    )
    target, c = confidence.from_interval(found.lower, found.upper)
    if consistency is not None:
        consistency = validation.positive("consistency", consistency)
        agreed = confidence.left_right_consistency(found.left, found.right, consistency) > 0
        target, c = np.where(agreed, target, np.float32(np.nan)), np.where(agreed, c, np.float32(0))
    return target, c
