"""Convert colours: RGB to luma and chroma (BT.601) and back, sRGB to linear light and back."""

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
CHROMA_TO_RGB = np.linalg.inv(RGB_TO_YUV)[:, 1:]
FAINT = 1e-9
"""Differences between channels below this fraction of white are rounding errors."""
_BAND = 1 << 15
"""Pixels of a band: its temporary arrays stay in the cache of a core."""


def feature_map(channels: int, highest: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the matrix and offset that convert reference values to features in 8-bit grey levels.

    Parameters
    ----------
    channels : int
        1 for a gray reference (its feature is luma), 3 for RGB (Y, U, V).
    highest : float
        Value of white in the reference.

    Returns
    -------
    matrix : (channels, channels) array
    offset : (channels,) array
    """
    scale = 255.0 / highest
    if channels == 1:
        return np.full((1, 1), scale), np.zeros(1)
    return RGB_TO_YUV * scale, YUV_OFFSET


def luma(pixels: NDArray[Any]) -> NDArray[Any]:
    """Return the luma (H, W) of gray (H, W, 1) or RGB (H, W, 3) pixels, on the same scale.

    The result is float64 if the pixels are, else float32.
    """
    dtype = np.float64 if pixels.dtype == np.float64 else np.float32
    if pixels.shape[-1] == 1:
        return pixels[..., 0].astype(dtype)
    return _combine(pixels, RGB_TO_YUV[0].astype(dtype))


def chroma(pixels: NDArray[Any], highest: float) -> NDArray[np.float32]:
    """Return U and V of RGB pixels as (H, W, 2), in 8-bit grey levels; 0 for gray.

    Parameters
    ----------
    pixels : (H, W, 3) array
    highest : float
        Value of white.
    """
    rows = (RGB_TO_YUV[1:] * (255.0 / highest)).astype(np.float32)
    return np.stack([_combine(pixels, row) for row in rows], axis=-1)


def colored(
    luma: NDArray[Any], chroma: NDArray[np.float32], highest: float, dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Return RGB pixels of a given luma and chroma.

    A colour outside the range from black to white becomes paler until it fits: its hue and luma
    stay. A pixel brighter than white or darker than black is gray. Integers are rounded so that
    their luma rounds to the given luma.

    Parameters
    ----------
    luma : (H, W) array
    chroma : (H, W, 2) array
        U and V in 8-bit grey levels; 0 for gray.
    highest : float
        Luma of white.
    dtype : dtype
        Dtype of the result.
    """
    out = np.empty((*luma.shape, 3), dtype)
    rows = max(1, _BAND // max(1, luma.shape[1]))
    for y in range(0, luma.shape[0], rows):
        band = slice(y, y + rows)
        _color_band(luma[band], chroma[band], highest, out[band])
    return out


def _color_band(
    luma: NDArray[Any], chroma: NDArray[np.float32], highest: float, out: NDArray[Any]
) -> None:
    """Write the RGB pixels of some rows to `out`."""
    weights = (CHROMA_TO_RGB * (highest / 255)).astype(luma.dtype)
    offsets = [_combine(chroma, row) for row in weights]
    up = np.maximum(np.maximum(offsets[0], offsets[1]), offsets[2])
    down = -np.minimum(np.minimum(offsets[0], offsets[1]), offsets[2])
    least = highest * FAINT
    room = np.minimum((highest - luma) / np.maximum(up, least), luma / np.maximum(down, least))
    saturation = np.clip(room, 0, 1)
    low, high = np.minimum(luma, 0), np.maximum(luma, highest)
    red, blue = (np.clip(luma + saturation * offsets[k], low, high) for k in (0, 2))
    if out.dtype.kind == "u":
        red, blue = np.rint(red), np.rint(blue)
        green = (luma - RGB_TO_YUV[0, 0] * red - RGB_TO_YUV[0, 2] * blue) / RGB_TO_YUV[0, 1]
        green = np.clip(np.rint(green), low, high)
    else:
        green = np.clip(luma + saturation * offsets[1], low, high)
    out[..., 0], out[..., 1], out[..., 2] = red, green, blue


def _combine(pixels: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    """Weighted sum over the channels, in the dtype of the weights."""
    dtype = weights.dtype
    total: NDArray[Any] = np.multiply(pixels[..., 0], weights[0], dtype=dtype)
    for channel in range(1, len(weights)):
        total += np.multiply(pixels[..., channel], weights[channel], dtype=dtype)
    return total


def srgb_to_linear(values: NDArray[Any]) -> NDArray[np.float32]:
    """Convert sRGB values to linear light, with white at 1 (IEC 61966-2-1).

    Parameters
    ----------
    values : array
        uint8 or uint16 of the full range, or floating point with white at 1. Values above 1 follow
        the same curve, values below 0 its linear part.
    """
    if values.dtype.kind == "u":
        return linear_table(values.dtype.itemsize).take(values)
    v = values.astype(np.float32, copy=False)
    curve = ((np.maximum(v, 0) + np.float32(0.055)) / np.float32(1.055)) ** np.float32(2.4)
    light: NDArray[np.float32] = np.where(v <= np.float32(0.04045), v / np.float32(12.92), curve)
    return light


def linear_to_srgb(light: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Invert `srgb_to_linear`; integers are rounded and clipped to black and white."""
    if dtype.kind != "u":
        return _encode(light).astype(dtype, copy=False)
    clipped: NDArray[np.float32] = np.clip(light, 0, 1)
    if dtype.itemsize == 1:
        root = np.rint(np.sqrt(clipped) * np.float32(65535)).astype(np.uint16)
        return srgb_table().take(root)
    values: NDArray[Any] = np.rint(_encode(clipped) * np.iinfo(dtype).max).astype(dtype)
    return values


def _encode(light: NDArray[Any]) -> NDArray[np.float32]:
    v = light.astype(np.float32, copy=False)
    curve = np.float32(1.055) * np.maximum(v, 0) ** np.float32(1 / 2.4) - np.float32(0.055)
    values: NDArray[np.float32] = np.where(v <= np.float32(0.0031308), v * np.float32(12.92), curve)
    return values


@functools.cache
def linear_table(size: int) -> NDArray[np.float32]:
    """Linear light of every integer of `size` bytes, 1 or 2."""
    levels = 256**size
    return srgb_to_linear(np.arange(levels, dtype=np.float64) / (levels - 1))


@functools.cache
def srgb_table() -> NDArray[np.uint8]:
    """8-bit sRGB values by the square root of the light: their relation is nearly linear."""
    root = np.arange(65536) / 65535
    return np.rint(_encode(root * root) * 255).astype(np.uint8)
