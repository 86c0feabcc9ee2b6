"""The cells of other implementations, which round colours and cell borders in their own way."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import bilateral
from bilateral.filters.color_cells import color_cells

Array = NDArray[Any]

_FROM_RGB = np.array(
    [[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]]
)
_NEAR = 1e-3
"""Single precision is right to this part of a grey level."""
_ROWS = 8192
"""Rows of one product of matrices. BLAS starts its threads for larger ones, which costs more."""
_SHIFT = 14
"""OpenCV converts 8-bit colours in whole numbers: coefficients are multiples of 2^-14."""
_LUMA = (4899, 9617, 1868)
_RED, _BLUE = 11682, 9241
_HALF = 1 << (_SHIFT - 1)


def notebook_cells(image: Array, sigma_luma: float, sigma_chroma: float) -> Array:
    """Cells of luma, U and V of an RGB image, as the authors' notebook rounds them.

    The luma of a gray pixel comes out as its level or a last bit below, which may be another cell.
    Such pixels, whose colours lie on the border of a cell, get their sums in the notebook's order
    and precision. For all others single precision is enough.
    """
    sigmas = np.array([sigma_luma, sigma_chroma, sigma_chroma])
    if image.dtype != np.uint8 or sigmas.min() < 1:  # bytes may not hold the cells
        return _whole(_exact(image, sigmas))
    levels = np.repeat(np.arange(256, dtype=np.uint8)[:, np.newaxis], 3, axis=1)
    cells, near = color_cells(
        np.ascontiguousarray(image),
        _FROM_RGB / sigmas[:, np.newaxis],
        np.array([0, 128, 128]) / sigmas,
        _NEAR / sigmas,
        _exact(levels, sigmas).astype(np.uint8),
    )
    pixels = np.flatnonzero(near)
    colours = image.reshape(-1, 3)[pixels]
    for first in range(0, len(pixels), _ROWS):
        part = slice(first, first + _ROWS)
        cells.reshape(-1, 3)[pixels[part]] = _exact(colours[part], sigmas)
    return cells


def _exact(image: Array, sigmas: Array) -> Array:
    """Luma, U and V in cells, with the sums of the notebook."""
    yuv: Array = np.tensordot(image, _FROM_RGB, ([image.ndim - 1], [1]))
    yuv[..., 1:] += 128.0
    yuv /= sigmas
    return yuv


def opencv_cells(guide: Array, sigma_luma: float, sigma_chroma: float) -> Array:
    """Cells of the gray levels, or of Y, Cr and Cb of a BGR image in 8 bits, as OpenCV has them."""
    if guide.ndim == 2:
        return _whole(guide[..., np.newaxis] / sigma_luma)
    blue, green, red = (guide[..., k].astype(np.int32) for k in range(3))
    luma = (red * _LUMA[0] + green * _LUMA[1] + blue * _LUMA[2] + _HALF) >> _SHIFT
    offset = (128 << _SHIFT) + _HALF
    cr = np.clip(((red - luma) * _RED + offset) >> _SHIFT, 0, 255)
    cb = np.clip(((blue - luma) * _BLUE + offset) >> _SHIFT, 0, 255)
    sigmas = (sigma_luma, sigma_chroma, sigma_chroma)
    return _whole(np.stack([luma, cr, cb], axis=-1) / sigmas)


def _whole(cells: Array) -> Array:
    """Drop the fractions; few cells fit into bytes, which are the fastest to read."""
    low, high = cells.min(), cells.max()
    if low > -1 and high < 256:
        return cells.astype(np.uint8)
    return np.trunc(cells)


def build(cells: Array, sigma_spatial: float, centre: float) -> bilateral.BilateralGrid:
    """Build the grid of pixels with the given cells of colours, with a blur of (centre, 1, 1)."""
    return bilateral.BilateralGrid.from_features(cells, 1.0, sigma_spatial, blur=(centre, 1.0, 1.0))
