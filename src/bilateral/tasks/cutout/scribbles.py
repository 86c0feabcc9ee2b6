"""Read scribbles: which pixels belong to the object, and which do not."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral import color, validation
from bilateral.tasks.cutout.windows import window_mean

Array = NDArray[Any]
Labels = NDArray[np.int8]
"""1 for "this", -1 for "not this", 0 where nothing is said."""

_DIFFERENT = 0.01
"""A pixel is a stroke if it differs from the photograph by more than this fraction of white."""
_GRAY = 24.0
"""Largest chroma of a gray stroke, in 8-bit grey levels."""
_MARGIN = 1 / 20
"""The border of a rough mask may be wrong by this fraction of the image's side."""


def read_scribbles(scribbles: ArrayLike, photo: validation.Reference) -> Labels:
    """Return labels from signed numbers (H, W), or from a picture of strokes (H, W, 3 or 4)."""
    values = validation.cut_scribbles(scribbles, photo.pixels.shape[:2])
    if values.ndim == 2:
        signs: Labels = np.sign(np.nan_to_num(values)).astype(np.int8)
        return signs
    return _labels_of_picture(values, photo)


def _labels_of_picture(picture: Array, photo: validation.Reference) -> Labels:
    """White and green strokes say "this", black and red ones "not this"."""
    layer = validation.reference(picture, None, channels=(3, 4), name="scribbles", any_scale=True)
    levels = layer.pixels[..., :3].astype(np.float32) * np.float32(255 / layer.highest)
    if picture.shape[2] == 4 and layer.pixels[..., 3].min() != layer.pixels[..., 3].max():
        strokes = layer.pixels[..., 3] > 0
    else:
        before = photo.pixels.astype(np.float32) * np.float32(255 / photo.highest)
        strokes = np.abs(levels - before).sum(axis=2) > 255 * _DIFFERENT
    red, green, blue = np.moveaxis(levels[strokes], -1, 0)
    luma = color.luma(levels[strokes])
    is_gray = np.maximum(np.abs(green - red), np.abs(green - blue)) <= _GRAY
    evidence = np.where(is_gray, luma - 127.5, green - red)
    blueish = ~is_gray & (blue > np.maximum(red, green))
    if blueish.mean() > 0.5 if blueish.size else False:
        raise ValueError(
            "scribbles: expected green or white strokes for this, red or black ones for not this, "
            "got blue ones. Paint with these colours, or give labels of 1, -1 and 0."
        )
    labels = np.zeros(strokes.shape, np.int8)
    labels[strokes] = np.where(evidence > 0, 1, -1)
    return labels


def labels_of_mask(mask: ArrayLike, shape: tuple[int, int]) -> Labels:
    """Return labels for the pixels well inside a rough mask, and well outside of it."""
    inside = validation.mask("mask", mask, shape)
    radius = max(1, round(_MARGIN * float(np.sqrt(inside.size))))
    labels = np.zeros(shape, np.int8)
    for sign, region in ((1, inside), (-1, ~inside)):
        reach = radius
        while reach and not labels[labels == sign].size and region.any():
            labels[region & (window_mean(region, reach) > 1 - 0.5 / (2 * reach + 1) ** 2)] = sign
            reach //= 2
        if not (labels == sign).any():
            labels[region] = sign
    return labels
