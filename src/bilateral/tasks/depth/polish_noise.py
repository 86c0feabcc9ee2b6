"""Reduce the noise of a depth map on the pixel graph, in units of the noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral import validation
from bilateral.filters.polish import polish
from bilateral.tasks.depth.noise import Noise

Array = NDArray[Any]

POLISH_SCALE, _POLISH_SMOOTHNESS, _POLISH_RGB = 3.0, 4.0, 60.0
"""Differences of more than 3 times the noise are edges."""
FILLED_WEIGHT = 0.3
"""Fillings give way to the data beside them."""
MOST_MOVED = 3.0
"""The polish moves no pixel by more than this many times the noise."""


def polish_options(channels: int) -> dict[str, Any]:
    """Return the options of the polish for a photograph with a number of channels."""
    return {
        "scale": POLISH_SCALE,
        "smoothness": _POLISH_SMOOTHNESS,
        "sigma_rgb": _POLISH_RGB * channels / 3,
        "anchor": 0.0,
    }


def polish_noise(x: Array, guide: validation.Reference, kept: Array, noise: Noise) -> Array:
    """Polish an (H, W) float32 map. Pixels that are not `kept` are fillings."""
    w = noise.units(x)
    weights = np.where(kept, np.float32(1), np.float32(FILLED_WEIGHT))
    options = polish_options(guide.pixels.shape[2])
    smooth = polish(w, guide.pixels, w, weights, reference_max=guide.highest, **options)
    moved = np.clip(smooth - w, -MOST_MOVED, MOST_MOVED)
    return np.asarray(x + noise(x).astype(np.float32) * moved, np.float32)
