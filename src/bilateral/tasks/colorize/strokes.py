"""What somebody painted on a gray picture: where, and in which colours."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral import color, validation

Array = NDArray[Any]

_DIFFERENT = 0.01
"""Of white, summed over red, green and blue: what differs by more from the gray one is a stroke."""
_NEARLY_ALL = 0.75
_COLOURED = 2.0
"""In 8-bit grey levels of U or V: more than what rounding or compression make of gray."""


class Strokes(NamedTuple):
    """A chroma per pixel, and how much it counts."""

    chroma: Array
    """(H, W, 2): U and V in 8-bit grey levels, 0 for gray."""
    weights: Array
    """(H, W): 0 where nobody painted, else up to 1."""


def find(
    gray: validation.Reference, scribbles: ArrayLike, mask: ArrayLike | None, stacklevel: int
) -> Strokes:
    """Strokes by a mask, by the alpha of a layer, or by what differs from the gray picture."""
    picture = validation.scribbles(scribbles, gray)
    rgb, alpha = picture.pixels[..., :3], _alpha(picture)
    if mask is not None:
        weights = validation.mask("mask", mask, rgb.shape[:2]).astype(np.float32)
        how = "mask is 0 everywhere"
    elif alpha is not None:
        weights = alpha
        how = "its alpha is 0 everywhere"
    else:
        weights = _differences(gray, rgb, picture.highest)
        how = "it is the same as gray"
        _warn_of_noise(float(np.mean(weights)), stacklevel + 1)
    if rgb.dtype.kind == "f":
        finite = np.asarray(np.isfinite(rgb).all(axis=2))
        weights = np.where(finite, weights, np.float32(0))
        rgb = np.where(finite[..., np.newaxis], rgb, rgb.dtype.type(0))
    validation.some_strokes(bool(weights.any()), how)
    chroma = color.chroma(rgb, picture.highest)
    validation.strokes_not_swapped(
        _is_gray(chroma[weights > 0]) and not _is_gray(_own_chroma(gray))
    )
    return Strokes(chroma, weights)


def _alpha(picture: validation.Reference) -> Array | None:
    """The opacity of a layer; None if it has none, or the same everywhere, which tells nothing."""
    if picture.pixels.shape[2] < 4:
        return None
    alpha = picture.pixels[..., 3]
    if (alpha == alpha.flat[0]).all():
        return None
    opacity: Array = np.nan_to_num(alpha.astype(np.float32) / np.float32(picture.highest))
    return np.asarray(np.clip(opacity, 0, 1))


def _differences(gray: validation.Reference, rgb: Array, highest: float) -> Array:
    """1 where a marked picture differs from the gray one, else 0."""
    total = np.zeros(rgb.shape[:2], np.float32)
    scale, own = np.float32(1 / highest), np.float32(1 / gray.highest)
    for channel in range(3):
        before = gray.pixels[..., channel % gray.pixels.shape[2]]
        after = np.multiply(rgb[..., channel], scale, dtype=np.float32)
        total += np.abs(after - np.multiply(before, own, dtype=np.float32))
    return (total > _DIFFERENT).astype(np.float32)


def _warn_of_noise(part: float, stacklevel: int) -> None:
    if part > _NEARLY_ALL:
        warnings.warn(
            f"scribbles: {100 * part:.0f} % of the pixels differ from gray and count as strokes. "
            f"Lossy compression does that: save strokes as PNG, or give mask=.",
            UserWarning,
            stacklevel,
        )


def _own_chroma(gray: validation.Reference) -> Array:
    if gray.pixels.shape[2] == 1:
        return np.zeros(1, np.float32)
    return color.chroma(gray.pixels, gray.highest)


def _is_gray(chroma: Array) -> bool:
    return bool(np.abs(chroma).max(initial=0) <= _COLOURED)
