"""Check the inputs of single tasks: super-resolution, stereo, colors, cutting and defocus."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral.validation.arrays import finite_values, real_array, real_per_pixel, shape_at_least
from bilateral.validation.images import Reference, pixel_range, reference
from bilateral.validation.messages import position, quote
from bilateral.validation.numbers import positive

Array = NDArray[Any]


def enlarged_shape(
    name: str, factor: float | None, low: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[int, int]:
    """Return the shape of a low-resolution map times a factor.

    It is the shape of the reference, or exceeds it by less than one low-resolution pixel.
    """
    shape_at_least("reference", shape[:2], "depth_lowres", low)
    if factor is None:
        return shape[0], shape[1]
    number = positive(name, factor)
    full = tuple(round(length * number) for length in low)
    if any(not n <= most < n + number for n, most in zip(shape, full, strict=False)):
        ratios = dict.fromkeys(f"{n / m:.4g}" for n, m in zip(shape, low, strict=False))
        raise ValueError(
            f"{name}: expected {' or '.join(ratios)}, the ratio of the shapes {shape[:2]} and "
            f"{low}, got {quote(factor)}. Leave it out to take the ratio."
        )
    return full[0], full[1]


def ordered_interval(lower: Array, upper: Array) -> None:
    """Raise if the lower end of an interval is above its upper end."""
    wrong = lower > upper
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(
            f"lower: expected at most upper, got {lower[row, column]} > {upper[row, column]} at "
            f"row {row}, column {column}. Use NaN where there is no interval."
        )


def stereo_pair(
    left: ArrayLike, right: ArrayLike, left_max: float | None, any_scale: bool = False
) -> tuple[Reference, Array]:
    """Return the left view as a reference and the pixels of the right view: finite, of one size.

    The left view must have its white at `left_max` or at its dtype's default, unless `any_scale`.
    """
    left_view = reference(left, left_max, name="left", any_scale=any_scale)
    right_view = reference(right, None, name="right", any_scale=True)
    if right_view.pixels.shape != left_view.pixels.shape:
        raise ValueError(
            f"right: expected the shape of left, {np.shape(left)}, got {np.shape(right)}. "
            f"Rectify the pair first, so that both views have one size and matching rows."
        )
    finite_values("left", left_view.pixels)
    finite_values("right", right_view.pixels)
    return left_view, right_view.pixels


def scribbles(value: ArrayLike, gray: Reference) -> Reference:
    """Return an RGB or RGBA picture of the size of `gray`.

    Its white is that of `gray` if both have one dtype, else the usual white of its dtype.
    """
    picture = real_array("scribbles", value)
    shape = gray.pixels.shape[:2]
    if picture.ndim != 3 or picture.shape[2] not in (3, 4):
        raise ValueError(
            f"scribbles: expected an RGB picture (H, W, 3) or an RGBA layer (H, W, 4), "
            f"got shape {picture.shape}. Channels come last."
        )
    if picture.shape[:2] != shape:
        raise ValueError(
            f"scribbles: expected the size of gray, {shape}, got {picture.shape[:2]}. "
            f"Paint on the gray picture itself, or on a layer of its size."
        )
    same_dtype = picture.dtype.newbyteorder("=") == gray.pixels.dtype
    highest = gray.highest if same_dtype else None
    layer = reference(picture, highest, channels=(3, 4), name="scribbles", any_scale=True)
    if picture.dtype.kind == "f" and layer.highest == 1:
        finite = layer.pixels[np.isfinite(layer.pixels)]
        pixel_range("scribbles", finite if finite.size else np.zeros(1), has_parameter=False)
    return layer


def some_strokes(has_strokes: bool, reason: str) -> None:
    """Raise if no pixel belongs to a stroke, for the given reason."""
    if not has_strokes:
        raise ValueError(
            f"scribbles: expected at least one stroke, got none: {reason}. "
            f"Strokes are the pixels where scribbles differs from gray, where its alpha is above "
            f"0, or where mask is not 0."
        )


def strokes_not_swapped(swapped: bool) -> None:
    """Raise if the picture to colorize is coloured and the strokes are gray."""
    if swapped:
        raise ValueError(
            "scribbles: expected strokes in colour, got gray ones on a coloured picture. "
            "The order is colorize(gray, scribbles): are they swapped?"
        )


def cut_scribbles(value: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return signed labels (H, W), or a picture of strokes (H, W, 3) or (H, W, 4)."""
    values = real_array("scribbles", value)
    if values.shape[:2] != shape or not (values.ndim == 2 or values.shape[2:] in ((3,), (4,))):
        raise ValueError(
            f"scribbles: expected labels of the shape {shape}, or a picture of strokes "
            f"{(*shape, 3)} or {(*shape, 4)}, got shape {values.shape}."
        )
    if values.ndim == 2 and values.dtype.kind in "ub":
        raise TypeError(
            f"scribbles: expected signed numbers, 1 for this, -1 for not this and 0 for unknown, "
            f"got dtype {values.dtype}. Give a rough mask as mask=."
        )
    return values


def both_kinds_of_scribbles(labels: Array) -> None:
    """Raise unless some pixels belong to the object and some do not."""
    for sign, kind in ((1, "this"), (-1, "not this")):
        if not (labels == sign).any():
            raise ValueError(
                f"scribbles: expected strokes for this and for not this, got none for {kind}. "
                f"Mark at least one pixel of each kind."
            )


def scene_depth(value: ArrayLike, shape: tuple[int, int], kind: str) -> Array:
    """Return one number per pixel: a depth above 0, maybe infinite, or a finite disparity."""
    hint = "Resize it to the image first; the order is defocus(image, depth)."
    values = real_per_pixel("depth", value, shape, hint)
    values = values.astype(np.float64)
    expected = "numbers above 0" if kind == "depth" else "finite numbers"
    valid = values > 0 if kind == "depth" else np.isfinite(values)
    if not valid.all():
        at = tuple(np.argwhere(~valid)[0].tolist())
        marked = ", invalid=0" if values[at] == 0 else ""
        raise ValueError(
            f"depth: expected {expected} for kind={kind!r}, got {values[at]} at {position(at)}. "
            f"Fill holes first: bilateral.tasks.refine_depth(depth, image{marked})."
        )
    return values
