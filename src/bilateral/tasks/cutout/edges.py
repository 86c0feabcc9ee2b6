"""Clean a soft segmentation, and measure the opacity of the pixels at its outline."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.filters.labels import find_regions
from bilateral.tasks.cutout.windows import block_sums, fill_blocks, sample, window_mean

Array = NDArray[Any]

_SMALL_AREA = 1 / 1000
"""A region of this fraction of the image may be a speck."""
_NEAR = 1 / 20
"""A speck is wrong unless the object is within this fraction of the image's side, as for hair."""
_BAND = 1 / 100
"""Half the width of the outline, as a fraction of the image's side."""
_CONTRAST = 64.0
"""Difference of the colours on both sides at which opacity counts half, in 8-bit grey levels."""
_RESIDUAL = 24.0
"""Distance of a colour from the line between both colours that divides its weight by e."""
_PRIOR = 0.3
"""Weight of the segmentation in the outline."""
_SHARPEN = 3.0


def remove_specks(x: Array, labels: NDArray[np.int8]) -> Array:
    """Flip small regions without a stroke that are far from all larger regions of their kind."""
    inside = x > 0.5
    area, reach = _SMALL_AREA * x.size, max(2, round(_NEAR * float(np.sqrt(x.size))))
    small = {sign: _small_regions(inside == (sign > 0), labels == sign, area) for sign in (1, -1)}
    large = {sign: (inside == (sign > 0)) & ~small[sign] for sign in (1, -1)}
    out = x.copy()
    if large[1].any() and large[-1].any():
        for sign in (1, -1):
            if small[sign].any():
                flip = small[sign] & (window_mean(large[sign], reach) == 0)
                out[flip] = 1 - out[flip]
    return out


def _small_regions(
    mask: NDArray[np.bool_], strokes: NDArray[np.bool_], area: float
) -> NDArray[np.bool_]:
    regions, _ = find_regions(np.zeros(mask.shape, np.float32), mask, 0.5)
    flat = regions.reshape(-1)
    small = np.bincount(flat) < area
    small[flat[strokes.reshape(-1)]] = False
    small[0] = False
    return np.asarray(small[regions])


def outline_opacity(levels: Array, x: Array, labels: NDArray[np.int8]) -> Array:
    """Return the matte: 0 and 1 away from the outline of `x`, opacity along it.

    A pixel of the outline is a mixture of the colours on both sides. Its opacity is its place on
    the line between them, as far as the colours differ and the pixel lies on that line.

    Parameters
    ----------
    levels : (H, W, C) float32 array
        The photograph in 8-bit grey levels.
    x : (H, W) array
        Soft segmentation, from 0 to 1.
    labels : (H, W) int8 array
        Strokes, whose pixels are exactly 0 or 1.
    """
    inside = x > 0.5
    radius = max(2, round(_BAND * float(np.sqrt(x.size))))
    near = window_mean(inside, radius)
    band = (near > 0) & (near < 1) & (labels == 0)
    matte = np.where(labels != 0, labels > 0, inside).astype(np.float32)
    rows, columns = np.nonzero(band)
    if not rows.size:
        return matte
    object_color, other_color = (
        _colors_around(levels, (inside == is_object) & ~band, radius, rows, columns)
        for is_object in (True, False)
    )
    pixels = levels[rows, columns] - other_color
    line = object_color - other_color
    length = np.sum(line * line, axis=1)
    opacity = np.clip(np.sum(pixels * line, axis=1) / np.maximum(length, 1), 0, 1)
    residual = np.sum((pixels - opacity[:, np.newaxis] * line) ** 2, axis=1)
    weight = length / (length + _CONTRAST**2) * np.exp(-residual / _RESIDUAL**2)
    prior = np.clip((x[rows, columns] - 0.5) * _SHARPEN + 0.5, 0, 1)
    matte[rows, columns] = (weight * opacity + _PRIOR * prior) / (weight + _PRIOR)
    return matte


def _colors_around(
    levels: Array,
    known: NDArray[np.bool_],
    radius: int,
    rows: NDArray[np.intp],
    columns: NDArray[np.intp],
) -> Array:
    """Mean colours of the known pixels near each given pixel."""
    size = max(1, radius // 2)
    weights = block_sums(known.astype(np.float32), size)
    sums = np.stack(
        [block_sums(levels[..., k] * known, size) for k in range(levels.shape[2])], axis=2
    )
    colors = fill_blocks(sums, weights).astype(np.float32)
    return sample(colors, (rows + 0.5) / size - 0.5, (columns + 0.5) / size - 0.5)
