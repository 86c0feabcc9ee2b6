"""Confidence measures: how much to trust each pixel of a target.

Every function returns an (H, W) array of numbers from 0 to 1: float64 if an input map is float64
(or of integers that need float64), else float32. A value that is not finite has confidence 0, and
never changes the confidence of other pixels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral import validation
from bilateral.filters.domain_transform import domain_transform

Array = NDArray[Any]

_MAX_SIGMAS = 1e150
"""Standard deviations are limited to this many sigmas, so that their squares are finite."""
_SAME_SURFACE = 1.0
"""Largest difference between the disparities of neighbouring pixels of one surface."""


@validation.keywords(photo="reference", depth="target")
def edge_aware_variance(
    target: ArrayLike,
    reference: ArrayLike,
    sigma_xy: float = 32,
    sigma_rgb: float = 32,
    sigma: float = 2.0,
    margin: int | tuple[int, int] = 0,
    *,
    reference_max: float | None = None,
) -> Array:
    """Trust a map where its local variance, within the edges of a reference, is low.

    The confidence is ``exp(-V / (2 sigma^2))`` with ``V = DT(Z^2) - DT(Z)^2``, where DT is the
    domain transform (supplement, section 3, with these defaults and a margin of 80 for the
    disparities of Middlebury).

    Parameters
    ----------
    target : (H, W) or (H, W, K) array
        The map Z. The variances of its channels are added.
    reference : (H, W) or (H, W, C) array
        Guide image, as for `bilateral.domain_transform`.
    sigma_xy, sigma_rgb : float
        Sigmas of the domain transform, in pixels and in 8-bit grey levels.
    sigma : float
        Standard deviation with a confidence of ``exp(-1/2)``, in the target's unit.
    margin : int or (int, int)
        Number of columns with confidence 0 at the left, or at the left and at the right. Stereo
        matching finds no match there: at the left of a left view, at the right of a right view.
    reference_max : float, optional
        Value of white in the reference. Default: 255, 65535 or 1, by its dtype.

    Returns
    -------
    (H, W) array

    Examples
    --------
    >>> import numpy as np
    >>> depth = np.full((40, 60), 7.0)
    >>> depth[:, 30:] += np.random.default_rng(0).normal(0, 5, (40, 30))
    >>> photo = np.zeros((40, 60), np.uint8)
    >>> photo[:, 30:] = 255
    >>> c = edge_aware_variance(depth, photo, margin=3)
    >>> bool((c[:, 3:30] > 0.9).all()), bool((c[:, 30:] < 0.2).all()), c[:, :3].max().item()
    (True, True, 0.0)
    """
    guide = validation.reference(reference, reference_max, channels=(1, 2, 3))
    height, width, _ = guide.pixels.shape
    values = validation.target(target, (height, width), None).values
    sigma = validation.positive("sigma", sigma)
    margins = margin if isinstance(margin, list | tuple) else (margin, 0)
    left, right = validation.one_or_two(
        "margin", margins, lambda name, n: validation.count(name, n, 0)
    )
    sigma_xy = validation.positive("sigma_xy", sigma_xy)
    sigma_rgb = validation.positive("sigma_rgb", sigma_rgb)
    known = np.asarray(np.isfinite(values).all(axis=2))
    if not known.any():
        return np.zeros((height, width), values.dtype)
    z, unit = _centred(values, known)
    means = domain_transform(
        np.concatenate([z * z, z], axis=2),
        guide.pixels,
        sigma_xy,
        sigma_rgb,
        reference_max=guide.highest,
    )
    squares, mean = np.split(means, 2, axis=2)
    deviation = np.sqrt(np.maximum(squares - mean * mean, 0).sum(axis=2))
    c: Array = np.exp(-0.5 * (deviation * min(unit / sigma, _MAX_SIGMAS)) ** 2)
    c[~known] = 0
    c[:, :left] = 0
    c[:, max(0, width - right) :] = 0
    return c.astype(values.dtype)


def _centred(values: Array, known: Array) -> tuple[Array, float]:
    """Centre and scale values to about 1 in float64, so that squares lose few digits."""
    unit = float(np.abs(values[known]).max()) or 1.0
    scaled = np.where(known[..., np.newaxis], values, np.nan) / np.float64(unit)
    centred: Array = scaled - np.median(scaled[known], axis=0)
    return centred, unit


def upsampling_support(
    shape: Sequence[int],
    factor: float | tuple[float, float],
    sigma: float | None = None,
    *,
    overlap: str = "nearest",
) -> Array:
    """Trust an upsampled map near the centres of its low-resolution pixels.

    The confidence is ``exp(-r^2 / (2 sigma^2))`` at the distance r from the centre of a
    low-resolution pixel: a Gaussian bump for the support of each pixel (the paper's depth
    super-resolution). The centre of pixel i is at ``(i + 1/2) factor - 1/2``.

    Parameters
    ----------
    shape : (int, int)
        Height and width of the upsampled map.
    factor : float or (float, float)
        High-resolution pixels per low-resolution pixel, along both axes or along y and x: any
        positive number. If it does not divide the shape, the last low-resolution pixels extend
        beyond the border.
    sigma : float, optional
        Standard deviation of a bump in high-resolution pixels. Default: a quarter of the factor,
        as in the paper.
    overlap : {"nearest", "sum"}
        Where bumps overlap: take the nearest, so that no confidence exceeds 1, or the sum.

    Returns
    -------
    (H, W) float32 array

    Examples
    --------
    >>> print(upsampling_support((4, 8), 4)[1].round(2))
    [0.29 0.78 0.78 0.29 0.29 0.78 0.78 0.29]
    """
    size = validation.height_and_width("shape", shape)
    factors = validation.one_or_two("factor", factor, validation.positive)
    if sigma is not None:
        sigma = validation.positive("sigma", sigma)
    validation.choice("overlap", overlap, ("nearest", "sum"))
    along_y, along_x = (
        _bumps(n, step, step / 4 if sigma is None else sigma, overlap == "sum")
        for n, step in zip(size, factors, strict=True)
    )
    # The bumps are separable, and so is their sum over a grid.
    support: Array = np.outer(along_y, along_x).astype(np.float32)
    return support


def _bumps(n: int, factor: float, sigma: float, add: bool) -> Array:
    """Gaussian bumps along one axis of n pixels: the nearest, or their sum."""
    x = np.arange(n) + 0.5
    count = max(1, math.ceil(n / factor - 1e-6))
    nearest = np.minimum(np.floor(x / factor), count - 1)
    reach = min(count, math.ceil(9 * sigma / factor) + 1) if add else 0
    total = np.zeros(n)
    for neighbour in range(-reach, reach + 1):
        i = nearest + neighbour
        bump = np.exp(-0.5 * ((x - (i + 0.5) * factor) / sigma) ** 2)
        total += np.where((i >= 0) & (i < count), bump, 0)
    return total


def from_interval(lower: ArrayLike, upper: ArrayLike, *, scale: float = 1.0) -> tuple[Array, Array]:
    """Convert an interval of likely values per pixel to a target and its confidence.

    The target is the middle of the interval, ``(l + u) / 2``, the confidence ``exp(l - u)``
    (supplement, stereo-based defocus): 1 for a point, and lower for longer intervals.

    Parameters
    ----------
    lower, upper : (H, W) array
        Ends of the interval. Where one of them is not finite, the confidence is 0 and the target
        NaN.
    scale : float
        Length with a confidence of ``exp(-1)``, in the unit of the ends. The paper uses 1 for
        disparities.

    Returns
    -------
    target, confidence : (H, W) array

    Examples
    --------
    >>> target, c = from_interval([[3.0, 2.0]], [[3.0, 4.0]])
    >>> target.tolist(), c.round(3).tolist()
    ([[3.0, 3.0]], [[1.0, 0.135]])
    """
    low = validation.map_2d("lower", lower)
    high = validation.map_2d("upper", upper, ("lower", low))
    scale = validation.positive("scale", scale)
    validation.ordered_interval(low, high)
    dtype = np.result_type(low, high)
    known = np.isfinite(low) & np.isfinite(high)
    l, u = (np.where(known, end, 0).astype(np.float64) for end in (low, high))  # noqa: E741
    target = np.where(known, l / 2 + u / 2, np.nan)
    with np.errstate(over="ignore"):  # an infinite length has confidence 0
        c = np.where(known, np.exp((l - u) / scale), 0)
    return target.astype(dtype), c.astype(dtype)


def left_right_consistency(
    left: ArrayLike,
    right: ArrayLike,
    threshold: float = 1.0,
    *,
    view: str = "left",
    soft: bool = False,
) -> Array:
    """Trust a disparity that the other view confirms.

    Pixel x of the left view with the disparity d matches x - d in the right view; pixel x of the
    right view matches x + d in the left view. The error is the difference between d and the
    disparity of the other map there. Between two pixels of the other map, the disparity is
    interpolated if the two differ by at most 1. If they differ by more, at an edge, the one closer
    to d counts.

    Parameters
    ----------
    left, right : (H, W) array
        Disparities of the two views in pixels, both positive for points in front of infinity.
    threshold : float
        Largest error of a trusted disparity, in pixels.
    view : {"left", "right"}
        The view of the confidence.
    soft : bool
        If true, the confidence is ``exp(-error^2 / (2 threshold^2))``. Otherwise it is 1 up to the
        threshold and 0 above.

    Returns
    -------
    (H, W) array
        0 where the disparity is not finite, or where its match lies outside the other view or has
        no finite disparity.

    Examples
    --------
    >>> left_right_consistency([[1.0, 1.0, 1.0, 3.0]], [[1.0, 1.0, 1.0, 1.0]]).tolist()
    [[0.0, 1.0, 1.0, 0.0]]
    """
    d_left = validation.map_2d("left", left)
    d_right = validation.map_2d("right", right, ("left", d_left))
    threshold = validation.positive("threshold", threshold)
    validation.choice("view", view, ("left", "right"))
    soft = validation.flag("soft", soft)
    d, d_other, sign = (d_left, d_right, -1) if view == "left" else (d_right, d_left, 1)
    error = _disagreement(d.astype(np.float64), d_other.astype(np.float64), sign)
    with np.errstate(over="ignore"):
        c = np.exp(-0.5 * (error / threshold) ** 2) if soft else error <= threshold
    return c.astype(np.result_type(d, d_other))


def _disagreement(d: Array, d_other: Array, sign: int) -> Array:
    """|d - d'| at each pixel's match in the other view, infinite where there is no match."""
    width = d.shape[1]
    column = np.arange(width) + sign * np.where(np.isfinite(d), d, np.inf)
    inside = (column >= 0) & (column <= width - 1)
    column = np.where(inside, column, 0)
    before = np.floor(column).astype(np.intp)
    after = np.minimum(before + 1, width - 1)
    fraction = column - before
    d_other = np.where(np.isfinite(d_other), d_other, np.inf)
    a, b = (np.take_along_axis(d_other, index, axis=1) for index in (before, after))
    b = np.where(fraction == 0, a, b)
    with np.errstate(invalid="ignore"):  # inf - inf, where neither is known
        interpolated = np.abs(d - (a + fraction * (b - a)))
        closer = np.minimum(np.abs(d - a), np.abs(d - b))
        error = np.where(np.abs(a - b) <= _SAME_SURFACE, interpolated, closer)
    return np.where(inside & ~np.isnan(error), error, np.inf)
