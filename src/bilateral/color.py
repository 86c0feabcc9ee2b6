"""Colour: the luma and chroma of an image, which the grid bins; the light behind sRGB values."""

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Full-range BT.601, in 8-bit grey levels.
RGB_TO_YUV = np.array(
    [
        [0.299, 0.587, 0.114],
        [-0.168736, -0.331264, 0.5],
        [0.5, -0.418688, -0.081312],
    ]
)
YUV_OFFSET = np.array([0.0, 128.0, 128.0])


def feature_map(channels: int, highest: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Matrix and offset that turn reference values into features in 8-bit grey levels.

    Parameters
    ----------
    channels : int
        1 for a gray reference (its feature is luma), 3 for RGB (Y, U, V).
    highest : float
        The reference value that means white.

    Returns
    -------
    matrix : (channels, channels) array
    offset : (channels,) array
    """
    scale = 255.0 / highest
    if channels == 1:
        return np.full((1, 1), scale), np.zeros(1)
    return RGB_TO_YUV * scale, YUV_OFFSET


def luma(pixels: NDArray[Any]) -> NDArray[np.float32]:
    """The luma of gray (H, W, 1) or RGB (H, W, 3) pixels, on their own scale, as (H, W)."""
    if pixels.shape[-1] == 1:
        return pixels[..., 0].astype(np.float32)
    total = np.zeros(pixels.shape[:-1], np.float32)
    for channel, weight in enumerate(RGB_TO_YUV[0]):
        total += pixels[..., channel] * np.float32(weight)
    return total


def srgb_to_linear(values: NDArray[Any]) -> NDArray[np.float32]:
    """The light that sRGB values stand for, white being 1 (IEC 61966-2-1).

    Parameters
    ----------
    values : array
        uint8 or uint16 of the full range, or floating point with white at 1. Numbers below 0 and
        above 1 follow the same curve.
    """
    if values.dtype.kind == "u":
        return _linear_table(values.dtype.itemsize).take(values)
    v = values.astype(np.float32, copy=False)
    curve = ((np.maximum(v, 0) + np.float32(0.055)) / np.float32(1.055)) ** np.float32(2.4)
    light: NDArray[np.float32] = np.where(v <= np.float32(0.04045), v / np.float32(12.92), curve)
    return light


def linear_to_srgb(light: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Undo `srgb_to_linear`; integers are rounded, and what is beyond white is white."""
    if dtype.kind != "u":
        return _encode(light).astype(dtype, copy=False)
    shown: NDArray[np.float32] = np.clip(light, 0, 1)
    if dtype.itemsize == 1:
        root = np.rint(np.sqrt(shown) * np.float32(65535)).astype(np.uint16)
        return _srgb_table().take(root)
    values: NDArray[Any] = np.rint(_encode(shown) * np.iinfo(dtype).max).astype(dtype)
    return values


def _encode(light: NDArray[Any]) -> NDArray[np.float32]:
    v = light.astype(np.float32, copy=False)
    curve = np.float32(1.055) * np.maximum(v, 0) ** np.float32(1 / 2.4) - np.float32(0.055)
    values: NDArray[np.float32] = np.where(v <= np.float32(0.0031308), v * np.float32(12.92), curve)
    return values


@functools.cache
def _linear_table(size: int) -> NDArray[np.float32]:
    """The light of every value of 1 or 2 bytes."""
    levels = 256**size
    return srgb_to_linear(np.arange(levels, dtype=np.float64) / (levels - 1))


@functools.cache
def _srgb_table() -> NDArray[np.uint8]:
    """8-bit values by the square root of the light, along which the curve is nearly straight."""
    root = np.arange(65536) / 65535
    return np.rint(_encode(root * root) * 255).astype(np.uint8)
