"""Find the strokes of colour that a user painted on a gray picture."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral import color, validation
from bilateral.tasks.colorize import policy

Array = NDArray[Any]


class Strokes(NamedTuple):
    """The chroma of each pixel, and its weight."""

    chroma: Array
    """(H, W, 2): U and V in 8-bit grey levels, 0 for gray."""
    weights: Array
    """(H, W): 0 outside the strokes, up to 1 on them."""


def find_strokes(
    gray: validation.Reference, scribbles: ArrayLike, mask: ArrayLike | None, stacklevel: int
) -> Strokes:
    """Find strokes by a mask, else by the alpha of a layer, else by the difference from `gray`."""
    picture = validation.scribbles(scribbles, gray)
    rgb, alpha = picture.pixels[..., :3], _alpha(picture)
    if mask is not None:
        weights = validation.mask("mask", mask, rgb.shape[:2]).astype(np.float32)
        reason_if_none = "mask is 0 everywhere"
    elif alpha is not None:
        weights = alpha
        reason_if_none = "its alpha is 0 everywhere"
    else:
        weights = _differences(gray, rgb, picture.highest)
        reason_if_none = "it is the same as gray"
        warn_of_compression(float(np.mean(weights)), stacklevel + 1)
    if rgb.dtype.kind == "f":
        finite = np.asarray(np.isfinite(rgb).all(axis=2))
        weights = np.where(finite, weights, np.float32(0))
        rgb = np.where(finite[..., np.newaxis], rgb, rgb.dtype.type(0))
    box = _bounding_box(weights)
    validation.some_strokes(box is not None, reason_if_none)
    assert box is not None
    chroma = np.zeros((*weights.shape, 2), np.float32)
    chroma[box] = color.chroma(rgb[box], picture.highest)
    has_gray_strokes = _is_gray(chroma[box][weights[box] > 0])
    validation.strokes_not_swapped(has_gray_strokes and not _is_gray(_chroma_of(gray)))
    return Strokes(chroma, weights)


def _bounding_box(weights: Array) -> tuple[slice, slice] | None:
    """The part of the picture with all strokes; None if there is no stroke."""
    rows = np.flatnonzero(weights.any(axis=1))
    if not len(rows):
        return None
    down = slice(rows[0], rows[-1] + 1)
    columns = np.flatnonzero(weights[down].any(axis=0))
    return down, slice(columns[0], columns[-1] + 1)


def _alpha(picture: validation.Reference) -> Array | None:
    """The opacity of a layer; None if there is no alpha channel, or if it is constant."""
    if picture.pixels.shape[2] < 4:
        return None
    alpha = picture.pixels[..., 3]
    if (alpha == alpha.flat[0]).all():
        return None
    opacity: Array = np.divide(alpha, np.float32(picture.highest), dtype=np.float32)
    if alpha.dtype.kind == "f":
        opacity = np.nan_to_num(opacity)
    return np.asarray(np.clip(opacity, 0, 1, out=opacity))


def _differences(gray: validation.Reference, rgb: Array, highest: float) -> Array:
    """1 where a marked picture differs from the gray one, else 0."""
    total = np.zeros(rgb.shape[:2], np.float32)
    scale, gray_scale = np.float32(1 / highest), np.float32(1 / gray.highest)
    for channel in range(3):
        before = gray.pixels[..., channel % gray.pixels.shape[2]]
        after = np.multiply(rgb[..., channel], scale, dtype=np.float32)
        total += np.abs(after - np.multiply(before, gray_scale, dtype=np.float32))
    return (total > policy.STROKE_DIFFERENCE).astype(np.float32)


def warn_of_compression(fraction: float, stacklevel: int) -> None:
    """Warn if so many pixels are strokes that compression must have caused them."""
    if fraction > policy.SUSPICIOUS_FRACTION:
        warnings.warn(
            f"scribbles: {100 * fraction:.0f} % of the pixels differ from gray and count as "
            f"strokes. Lossy compression causes this: save strokes as PNG, or give mask=.",
            UserWarning,
            stacklevel,
        )


def _chroma_of(gray: validation.Reference) -> Array:
    if gray.pixels.shape[2] == 1:
        return np.zeros(1, np.float32)
    return color.chroma(gray.pixels, gray.highest)


def _is_gray(chroma: Array) -> bool:
    return bool(np.abs(chroma).max(initial=0) <= policy.MAX_GRAY_CHROMA)
