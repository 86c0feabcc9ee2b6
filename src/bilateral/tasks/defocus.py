"""A shallow depth of field from an image and its depth."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral import color, validation
from bilateral.backends import cpu

Array = NDArray[Any]

KINDS = ("depth", "disparity")
_STEP = 0.125
"""Radii of neighbouring layers differ by this part, and by a pixel at least."""
_SHARP = 1e-3
"""A blur by a smaller radius, in pixels, is none."""


def defocus(
    image: ArrayLike,
    depth: ArrayLike,
    focus: float,
    aperture: float,
    *,
    kind: str = "depth",
    blades: int | None = None,
    rotation: float = 0.0,
    max_radius: float | None = None,
    linear: bool | None = None,
) -> Array:
    """Blur an image where it is out of focus, as a lens with a wide aperture does.

    Layers of equal blur are laid over each other from the front: sharp objects keep their edges
    and give no light to the blurred background, blurred objects have soft edges, behind which the
    background goes on. Light is added up, not pixel values, so that highlights stay bright.

    Parameters
    ----------
    image : (H, W) or (H, W, 3) array
        uint8 or uint16 sRGB, or floating point light.
    depth : (H, W) array
        One number per pixel, without holes (refine it first: edges show where the depth is wrong).
    focus : float
        What is sharp, in the unit of `depth`.
    aperture : float
        How much is blurred: a pixel becomes a disc of ``aperture * |1 / depth - 1 / focus|`` pixels
        radius or, of disparities, ``aperture * |depth - focus|``. 0 leaves the image as it is.
    kind : {"depth", "disparity"}
        Whether `depth` is a distance, above 0 and infinite in the far, or grows with its inverse,
        as disparities do.
    blades : int, optional
        Number of the aperture's blades, at least 3: highlights become polygons of the disc's area.
    rotation : float
        Of the polygon, in degrees; at 0, one corner points up behind the focus, and down before it.
    max_radius : float, optional
        Larger radii are cut. By default an eighth of the image's longer side.
    linear : bool, optional
        Whether the values are light already, and not coded for display. By default so for floating
        point, and not for integers.

    Returns
    -------
    array
        Of the image's shape and dtype.

    Examples
    --------
    >>> import numpy as np
    >>> from bilateral.tasks import defocus
    >>> image = np.zeros((32, 32), np.uint8)
    >>> image[:, 16:] = 255
    >>> depth = np.where(np.arange(32) < 16, 2.0, 8.0) * np.ones((32, 1))
    >>> defocus(image, depth, focus=2, aperture=10)[8, 13:19].tolist()
    [0, 0, 0, 255, 255, 255]
    >>> defocus(image, depth, focus=8, aperture=10)[8, 13:19].tolist()
    [84, 134, 169, 203, 225, 243]
    """
    given = validation.reference(image, None, name="image")
    validation.choice("kind", kind, KINDS)
    shape = (given.pixels.shape[0], given.pixels.shape[1])
    z = validation.scene_depth(depth, shape, kind)
    focus = (
        validation.positive("focus", focus)
        if kind == "depth"
        else validation.finite("focus", focus)
    )
    aperture = validation.not_negative("aperture", aperture)
    corners = 0 if blades is None else validation.count("blades", blades, 3)
    turn = math.radians(validation.finite("rotation", rotation))
    most = max(shape) / 8 if max_radius is None else validation.positive("max_radius", max_radius)
    validation.finite_values("image", given.pixels)
    if aperture == 0:
        return np.array(image)
    most = min(most, cpu.LARGEST_BLUR)
    with np.errstate(over="ignore"):  # what is cut may be infinite
        blur = aperture * (1 / z - 1 / focus if kind == "depth" else z - focus)
    blur = np.clip(blur, -most, most)
    reach = float(np.abs(blur).max())
    if reach < _SHARP:
        return np.array(image)
    radii = _radii(reach)
    layers = np.copysign(np.interp(np.abs(blur), radii, np.arange(len(radii))), blur)
    dtype = given.pixels.dtype
    coded = dtype.kind == "u" if linear is None else not linear
    light = color.srgb_to_linear(given.pixels) if coded else given.pixels.astype(np.float32)
    out = cpu.defocus(light, layers.astype(np.float32), radii, corners, turn)
    out = color.linear_to_srgb(out, dtype) if coded else validation.as_dtype(out, dtype)
    return validation.as_dtype(out.reshape(np.shape(image)), np.asarray(image).dtype)


def _radii(most: float) -> list[float]:
    """The blur of each layer, the sharp one first, the last of at least `most`."""
    radii = [0.0, 1.0]
    while radii[-1] < most:
        radii.append(radii[-1] + max(1.0, _STEP * radii[-1]))
    return radii
