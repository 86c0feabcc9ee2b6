"""Pictures for the screen: 8 bits per channel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.cli.display.colormaps import turbo

Array = NDArray[Any]

_LIGHT = np.array([-0.45, -0.6, 0.66], np.float32)
"""Direction of the light on a relief: from the upper left."""
_PALETTE_RANGE = 0.03, 0.97
"""Part of the colour map: at its ends, several colours are equal after rounding."""
UNKNOWN = np.array((40, 40, 44), np.uint8)


def eight_bits(photo: Array) -> Array:
    """Return a photograph as (H, W, 3) uint8; floating point has its white at 1."""
    if photo.dtype == np.uint16:
        photo = (photo >> 8).astype(np.uint8)
    elif photo.dtype != np.uint8:
        finite = np.nan_to_num(photo, nan=0, posinf=1, neginf=0)
        photo = np.rint(np.clip(finite, 0, 1) * 255).astype(np.uint8)
    if photo.ndim == 2:
        photo = np.repeat(photo[..., np.newaxis], 3, axis=2)
    return np.ascontiguousarray(photo)


def with_opacity(rgb: Array, alpha: Array) -> Array:
    """Return R, G, B, A pixels; `alpha` (H, W) is from 0 to 255."""
    out = np.empty((*rgb.shape[:2], 4), np.uint8)
    for channel in range(3):
        out[..., channel] = rgb[..., channel]
    out[..., 3] = alpha
    return out


def depth_palette() -> Array:
    """Return the 256 different colours of depths, from far (blue) to near (red)."""
    return turbo(np.linspace(*_PALETTE_RANGE, 256))


def depth_colors(nearness: Array) -> Array:
    """Return the colours of nearness from 0 to 1; unknown pixels are dark gray."""
    known = np.isfinite(nearness)
    level = np.rint(np.clip(np.where(known, nearness, 0), 0, 1) * 255).astype(np.uint8)
    colors = depth_palette()[level]
    colors[~known] = UNKNOWN
    return np.asarray(colors)


def relief(nearness: Array, scale: float) -> Array:
    """Return a shaded relief of nearness from 0 to 1, lit from the upper left.

    Parameters
    ----------
    nearness : (H, W) array
    scale : float
        Height of a nearness of 1, in pixels.
    """
    known = np.isfinite(nearness)
    height = np.where(known, nearness, 0).astype(np.float32) * np.float32(scale)
    slope_y, slope_x = np.gradient(height) if min(height.shape) > 1 else (0 * height, 0 * height)
    length = np.sqrt(slope_x * slope_x + slope_y * slope_y + 1)
    shade = (-slope_x * _LIGHT[0] - slope_y * _LIGHT[1] + _LIGHT[2]) / length
    gray = np.clip(40 + 215 * np.maximum(shade, 0), 0, 255).astype(np.uint8)
    rgb = np.repeat(gray[..., np.newaxis], 3, axis=2)
    rgb[~known] = UNKNOWN
    return np.asarray(rgb)
