"""Check the inputs of a grid: reference images, videos, and features of pixels."""

import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral.validation.arrays import any_real_array, real_array
from bilateral.validation.dtypes import compute_dtype
from bilateral.validation.messages import quote
from bilateral.validation.numbers import is_sequence, one_for_each, positive
from bilateral.validation.photo_scale import photo_range

Array = NDArray[Any]

MAX_FEATURES = 8


class Reference(NamedTuple):
    """A checked reference."""

    pixels: Array
    """(H, W, C), or (T, H, W, C) for a video: uint8, uint16, float32 or float64, contiguous."""
    highest: float
    """The value that means white."""


def reference(
    value: ArrayLike,
    highest: float | None,
    channels: Collection[int] = (1, 3),
    video: bool = False,
    name: str = "reference",
    any_scale: bool = False,
) -> Reference:
    """Return a gray or RGB image or video: uint8, uint16 or floating point, of any strides.

    Without `highest`, floating-point values must suit a white of 1, unless `any_scale`.
    """
    pixels = any_real_array(name, value)
    pixels = pixels.astype(pixels.dtype.newbyteorder("="), copy=False)
    if pixels.dtype not in (np.uint8, np.uint16) and pixels.dtype.kind != "f":
        raise TypeError(
            f"{name}: expected uint8, uint16 or floating point, got dtype {pixels.dtype}. "
            f"Convert it first, for example with .astype(np.float32) and reference_max=."
        )
    axes = 3 if video else 2
    if pixels.ndim == axes:
        pixels = pixels[..., np.newaxis]
    if pixels.ndim != axes + 1 or pixels.shape[-1] not in channels:
        raise _wrong_shape(name, np.shape(value), pixels, video)
    if pixels.size == 0:
        raise ValueError(
            f"{name}: expected at least one pixel, got shape {np.shape(value)}. "
            f"Check that the image was read."
        )
    if pixels.dtype.kind == "f":
        pixels = pixels.astype(np.float64 if pixels.dtype.itemsize > 4 else np.float32, copy=False)
        if highest is None and not any_scale:
            pixel_range(name, pixels)
    if highest is not None:
        highest = positive("reference_max", highest)
    else:
        highest = float(np.iinfo(pixels.dtype).max) if pixels.dtype.kind == "u" else 1.0
    return Reference(np.ascontiguousarray(pixels), highest)


def pixel_range(name: str, pixels: Array, has_parameter: bool = True) -> None:
    """Raise if finite floating-point pixels contradict a white of 1; others are checked later."""
    low, high = float(pixels.min()), float(pixels.max())
    if math.isfinite(low) and math.isfinite(high):
        photo_range(name, low, high, has_parameter)


def _wrong_shape(name: str, shape: tuple[int, ...], pixels: Array, video: bool) -> ValueError:
    axes = 3 if video else 2
    hint = " Channels come last."
    if pixels.ndim == axes + 1 and pixels.shape[-1] == 4:
        hint = (
            f" Drop the alpha channel: {name}[..., :3]. For other channels than colours, use "
            f"BilateralGrid.from_features."
        )
    elif not video and pixels.ndim == 3 and 4 < pixels.shape[-1] <= MAX_FEATURES:
        hint += " For other channels than colours, use BilateralGrid.from_features."
    elif not video and pixels.ndim == 4:
        hint = " A video needs sigma_t, the size of a cell in frames."
    expected = (
        "a gray video (T, H, W) or an RGB video (T, H, W, 3), since sigma_t was given"
        if video
        else "a gray image (H, W) or an RGB image (H, W, 3)"
    )
    return ValueError(f"{name}: expected {expected}, got shape {shape}.{hint}")


class Features(NamedTuple):
    """Checked features and the size of a grid cell along each axis."""

    pixels: Array
    """(H, W, C) or (T, H, W, C)."""
    sigmas: tuple[float, ...]
    """One per feature."""
    sigma_space: tuple[float, ...]
    """One per axis of the image, video or volume."""


def features(
    value: ArrayLike, sigmas: float | Sequence[float], sigma_space: float | Sequence[float]
) -> Features:
    """Return up to eight features per pixel of an image, a video or a volume, with their sigmas."""
    pixels = real_array("features", value)
    pixels = pixels.astype(pixels.dtype.newbyteorder("="), copy=False)
    sigma_per_axis = is_sequence(sigma_space)
    per_axis: Any = sigma_space
    axes = len(per_axis) if sigma_per_axis else min(max(pixels.ndim - 1, 2), 3)
    if axes not in (2, 3):
        raise ValueError(
            f"sigma_space: expected one number, or one for each of the axes (y, x) or (t, y, x), "
            f"got {quote(sigma_space)}."
        )
    if pixels.ndim == axes:
        pixels = pixels[..., np.newaxis]
    if pixels.ndim != axes + 1 or pixels.shape[-1] > MAX_FEATURES:
        expected = "(T, H, W)" if axes == 3 else "(H, W)"
        hint = (
            " For one feature of a volume (T, H, W) give sigma_space as (t, y, x)."
            if pixels.ndim == 3 and not sigma_per_axis
            else ""
        )
        raise ValueError(
            f"features: expected shape {expected[:-1]}, C), with C from 0 to {MAX_FEATURES}, or "
            f"{expected} for one feature, got {np.shape(value)}. Channels come last.{hint}"
        )
    if math.prod(pixels.shape[:-1]) == 0:
        raise ValueError(f"features: expected at least one pixel, got shape {np.shape(value)}.")
    if pixels.dtype not in (np.uint8, np.uint16):
        pixels = pixels.astype(compute_dtype(pixels.dtype), copy=False)
    return Features(
        np.ascontiguousarray(pixels),
        one_for_each("sigmas", sigmas, pixels.shape[-1], "feature"),
        one_for_each("sigma_space", sigma_space, axes, "axis"),
    )
