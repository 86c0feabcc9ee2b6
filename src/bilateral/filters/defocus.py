"""Blur an image by a radius per pixel, in layers that cover each other from the front."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.backends import cpu

Array = NDArray[Any]

MAX_RADIUS = cpu.LARGEST_BLUR
_RADIUS_STEP = 0.125
"""Radii of neighbouring layers differ by this fraction of the radius, and by at least a pixel."""
SHARP = 1e-3
"""A blur with a smaller radius, in pixels, is invisible."""


def cut_radius(radius: Array, most: float) -> Array:
    """Limit signed radii to `most` pixels, and to the largest radius that the core takes."""
    most = min(most, MAX_RADIUS)
    return np.clip(radius, -most, most)


def is_sharp(radius: Array) -> bool:
    """Whether no radius is large enough to be visible."""
    return float(np.abs(radius).max()) < SHARP


def blur_layers(light: Array, radius: Array, blades: int, rotation: float) -> Array:
    """Spread the light of each pixel over a disc or polygon.

    Pixels of similar radius form a layer. Each layer covers the layers behind it.

    Parameters
    ----------
    light : (H, W, 1 or 3) float32 array
        Linear light.
    radius : (H, W) array
        Radius of the disc in pixels: negative behind the focus, 0 in focus, positive in front.
    blades : int
        Number of corners of the polygon; 0 for a disc.
    rotation : float
        Of the polygon, in radians.
    """
    radii = layer_radii(float(np.abs(radius).max()))
    layers = np.copysign(np.interp(np.abs(radius), radii, np.arange(len(radii))), radius)
    return cpu.defocus(light, layers.astype(np.float32), radii, blades, rotation)


def layer_radii(most: float) -> list[float]:
    """The radius of each layer, from 0 for the sharp layer to at least `most`."""
    radii = [0.0, 1.0]
    while radii[-1] < most:
        radii.append(radii[-1] + max(1.0, _RADIUS_STEP * radii[-1]))
    return radii
