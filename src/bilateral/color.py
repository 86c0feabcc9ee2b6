"""Colour: the luma and chroma of an image, which the grid bins."""

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
