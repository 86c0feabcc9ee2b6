"""Defocus: render a shallow depth of field from an image and its depth."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral import color, validation
from bilateral.filters.defocus import blur_layers, cut_radius, is_sharp

Array = NDArray[Any]

KINDS = ("depth", "disparity")
_SHARP_RADIUS = 1.0
"""A pixel with a smaller radius, in pixels, looks sharp."""


@validation.keywords(photo="image", reference="image", target="depth")
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

    The image is divided into layers of equal blur, and each layer covers the layers behind it.
    Sharp objects keep their edges and add no light to the blurred background. Blurred objects have
    soft edges, behind which the background continues. The filter adds light, not pixel values, so
    that highlights stay bright.

    Parameters
    ----------
    image : (H, W) or (H, W, 3) array
        uint8 or uint16 sRGB, or floating point linear light.
    depth : (H, W) array
        One number per pixel, without holes. Refine it first by `refine_depth`, which fills holes:
        wrong depths are visible at edges.
    focus : float
        The depth in focus, in the unit of `depth` and within its range.
    aperture : float
        Strength of the blur: a pixel becomes a disc with a radius of ``aperture * |1 / depth - 1 /
        focus|`` pixels or, for disparities, ``aperture * |depth - focus|``. 0 leaves the image
        unchanged.
    kind : {"depth", "disparity"}
        "depth": `depth` is a distance, above 0, and infinite for infinitely far points.
        "disparity": `depth` grows with the inverse of the distance.
    blades : int, optional
        Number of blades of the aperture, at least 3: highlights become polygons with the area of
        the disc. Default: a disc.
    rotation : float
        Rotation of the polygon in degrees. At 0, one corner points up behind the focus, and down in
        front of it.
    max_radius : float, optional
        Largest radius in pixels; larger radii are cut. Default: an eighth of the longer side of the
        image.
    linear : bool, optional
        Whether the values are linear light rather than sRGB. Default: true for floating point,
        false for integers.

    Returns
    -------
    array
        Of the image's shape and dtype.

    Warns
    -----
    UserWarning
        If `focus` is outside the range of `depth`, so that all pixels become blurred.

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
    picture = validation.reference(image, None, name="image", any_scale=True)
    validation.choice("kind", kind, KINDS)
    shape = (picture.pixels.shape[0], picture.pixels.shape[1])
    z = validation.scene_depth(depth, shape, kind)
    check_focus = validation.positive if kind == "depth" else validation.finite
    focus = check_focus("focus", focus)
    aperture = validation.not_negative("aperture", aperture)
    corners = 0 if blades is None else validation.count("blades", blades, 3)
    angle = math.radians(validation.finite("rotation", rotation))
    most = largest_radius(shape, max_radius)
    validation.finite_values("image", picture.pixels)
    if aperture == 0:
        return np.array(image)
    with np.errstate(over="ignore"):  # radii are cut, so they may be infinite here
        radius = aperture * (1 / z - 1 / focus if kind == "depth" else z - focus)
    radius = cut_radius(radius, most)
    least = float(np.abs(radius).min())
    warn_if_nothing_is_sharp(float(z.min()), float(z.max()), least, focus, kind, stacklevel=4)
    if is_sharp(radius):
        return np.array(image)
    dtype = picture.pixels.dtype
    coded = dtype.kind == "u" if linear is None else not validation.flag("linear", linear)
    light = color.srgb_to_linear(picture.pixels) if coded else picture.pixels.astype(np.float32)
    out = blur_layers(light, radius, corners, angle)
    out = color.linear_to_srgb(out, dtype) if coded else validation.as_dtype(out, dtype)
    return validation.as_dtype(out.reshape(np.shape(image)), np.asarray(image).dtype)


def largest_radius(shape: tuple[int, int], max_radius: float | None) -> float:
    """Return the radius at which blurs are cut: an eighth of the longer side by default."""
    if max_radius is None:
        return max(shape) / 8
    return validation.positive("max_radius", max_radius)


def warn_if_nothing_is_sharp(
    low: float, high: float, least_radius: float, focus: float, kind: str, stacklevel: int
) -> None:
    """Warn if the focus is outside the range of the depths and blurs every pixel.

    A plane has no range: it is out of focus on purpose.
    """
    if low == high or low <= focus <= high or least_radius < _SHARP_RADIUS:
        return
    hint = "Choose a focus within it."
    if focus != 0 and low <= 1 / focus <= high:
        names = ("distances", "disparities") if kind == "depth" else ("disparities", "distances")
        other = KINDS[kind == "depth"]
        hint = (
            f"1 / focus is within it: depth and focus must both be {names[0]}, or both "
            f"{names[1]} with kind={other!r}."
        )
    warnings.warn(
        f"focus: {focus:g} is outside the range of depth, {low:g} to {high:g}, so that everything "
        f"is blurred. {hint}",
        UserWarning,
        stacklevel,
    )
