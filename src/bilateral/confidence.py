"""Confidence: how much to believe each pixel of a target, made from what is known about it.

All of these return an (H, W) array of numbers from 0 to 1, float64 if a map given is float64 (or of
integers that need it), else float32. A value that is not finite has confidence 0, and never
changes the confidence of others.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral import validation
from bilateral.filters.domain_transform import domain_transform

Array = NDArray[Any]

_STEEPEST = 1e150
"""A standard deviation is at most this many sigmas per unit, so that its square is finite."""
_SMOOTH = 1.0
"""Disparities of neighbouring pixels differ by at most this on one surface."""


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
    """Believe a map where it varies little, within the edges of a reference.

    ``exp(-V / (2 sigma^2))`` with ``V = DT(Z^2) - DT(Z)^2``, where DT is the domain transform
    (supplement, section 3, which has these defaults and a margin of 80 for the disparities of
    Middlebury).

    Parameters
    ----------
    target : (H, W) or (H, W, K) array
        The map Z; the variances of its channels are added.
    reference : (H, W) or (H, W, C) array
        As for `bilateral.domain_transform`.
    sigma_xy, sigma_rgb : float
        Extent of the domain transform, in pixels and in 8-bit grey levels.
    sigma : float
        The standard deviation, in the target's unit, at which the confidence is ``exp(-1/2)``.
    margin : int or (int, int)
        So many columns at the left, or at the left and at the right, get confidence 0. Stereo
        matching finds no partner there: at the left of a left view, at the right of a right view.
    reference_max : float, optional
        The reference value that means white, where it is not the dtype's usual one.

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
    given = validation.target(target, (height, width), None)
    sigma = validation.positive("sigma", sigma)
    margins = margin if isinstance(margin, list | tuple) else (margin, 0)
    left, right = validation.one_or_two(
        "margin", margins, lambda name, n: validation.count(name, n, 0)
    )
    sigma_xy = validation.positive("sigma_xy", sigma_xy)
    sigma_rgb = validation.positive("sigma_rgb", sigma_rgb)
    known = np.asarray(np.isfinite(given.values).all(axis=2))
    if not known.any():
        return np.zeros((height, width), given.values.dtype)
    z, unit = _centred(given.values, known)
    means = domain_transform(
        np.concatenate([z * z, z], axis=2),
        guide.pixels,
        sigma_xy,
        sigma_rgb,
        reference_max=guide.highest,
    )
    squares, mean = np.split(means, 2, axis=2)
    deviation = np.sqrt(np.maximum(squares - mean * mean, 0).sum(axis=2))
    c: Array = np.exp(-0.5 * (deviation * min(unit / sigma, _STEEPEST)) ** 2)
    c[~known] = 0
    c[:, :left] = 0
    c[:, max(0, width - right) :] = 0
    return c.astype(given.values.dtype)


def _centred(values: Array, known: Array) -> tuple[Array, float]:
    """Values in float64 around 0, at most about 1, and their unit: squares then lose little."""
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
    """Believe an upsampled map near the centres of the pixels that it was made from.

    ``exp(-r^2 / (2 sigma^2))`` at the distance r from a low-resolution pixel's centre: a Gaussian
    bump for the support of each (the paper's depth super-resolution). The centre of pixel i lies at
    ``(i + 1/2) factor - 1/2``.

    Parameters
    ----------
    shape : (int, int)
        Height and width of the upsampled map.
    factor : float or (float, float)
        High-resolution pixels per low-resolution pixel, along both axes or along y and x; any
        positive real number. Where it does not divide the shape, the last pixels lie in part
        beyond the border.
    sigma : float, optional
        In high-resolution pixels; a quarter of the factor by default, as in the paper.
    overlap : {"nearest", "sum"}
        Where bumps overlap: only the nearest counts, so that no confidence exceeds 1, or their
        sum.

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
    # A Gaussian of the distance is one along y times one along x; so is a sum over a grid of them.
    support: Array = np.outer(along_y, along_x).astype(np.float32)
    return support


def _bumps(n: int, factor: float, sigma: float, add: bool) -> Array:
    """The bumps along one axis of n pixels: the nearest, or their sum."""
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
    """Turn an interval of likely values per pixel into a target and its confidence.

    The target is the interval's middle ``(l + u) / 2``, the confidence ``exp(l - u)`` (supplement,
    stereo-based defocus): 1 for a point, less the longer the interval.

    Parameters
    ----------
    lower, upper : (H, W) array
        The interval's ends. Where one is not finite, the confidence is 0 and the target NaN.
    scale : float
        The length at which the confidence is ``exp(-1)``, in the ends' unit. The paper's
        disparities have 1.

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
    with np.errstate(over="ignore"):  # a length beyond all numbers has confidence 0
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
    """Believe a disparity that the other view confirms.

    Pixel x of the left view with the disparity d matches x - d in the right view, and x of the
    right view x + d in the left one. The error is the difference between d and the other map's
    disparity there. Between two pixels, that is interpolated where they differ by at most 1; where
    they differ by more, at an edge, the one closer to d counts.

    Parameters
    ----------
    left, right : (H, W) array
        Disparities of the two views in pixels, both positive for points in front of infinity.
    threshold : float
        The largest error that is believed.
    view : {"left", "right"}
        Whose confidence is wanted.
    soft : bool
        ``exp(-error^2 / (2 threshold^2))`` instead of 1 up to the threshold and 0 above.

    Returns
    -------
    (H, W) array
        0 where the disparity is not finite, leads out of the other view, or to no finite value.

    Examples
    --------
    >>> left_right_consistency([[1.0, 1.0, 1.0, 3.0]], [[1.0, 1.0, 1.0, 1.0]]).tolist()
    [[0.0, 1.0, 1.0, 0.0]]
    """
    d_left = validation.map_2d("left", left)
    d_right = validation.map_2d("right", right, ("left", d_left))
    threshold = validation.positive("threshold", threshold)
    validation.choice("view", view, ("left", "right"))
    own, other, sign = (d_left, d_right, -1) if view == "left" else (d_right, d_left, 1)
    error = _disagreement(own.astype(np.float64), other.astype(np.float64), sign)
    with np.errstate(over="ignore"):
        c = np.exp(-0.5 * (error / threshold) ** 2) if soft else error <= threshold
    return c.astype(np.result_type(own, other))


def _disagreement(own: Array, other: Array, sign: int) -> Array:
    """|d - d'| at each pixel's match in the other view, infinite where there is none."""
    width = own.shape[1]
    at = np.arange(width) + sign * np.where(np.isfinite(own), own, np.inf)
    seen = (at >= 0) & (at <= width - 1)
    at = np.where(seen, at, 0)
    before = np.floor(at).astype(np.intp)
    after = np.minimum(before + 1, width - 1)
    part = at - before
    other = np.where(np.isfinite(other), other, np.inf)
    a, b = (np.take_along_axis(other, column, axis=1) for column in (before, after))
    b = np.where(part == 0, a, b)
    with np.errstate(invalid="ignore"):  # inf - inf, where neither is known
        between = np.abs(own - (a + part * (b - a)))
        closer = np.minimum(np.abs(own - a), np.abs(own - b))
        error = np.where(np.abs(a - b) <= _SMOOTH, between, closer)
    return np.where(seen & ~np.isnan(error), error, np.inf)
