"""Remove outliers, fill holes and align the edges of a depth map with its photograph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bilateral import validation
from bilateral.confidence import edge_aware_variance
from bilateral.filters.domain_transform import domain_transform
from bilateral.filters.median import median
from bilateral.filters.polish import polish
from bilateral.grid import BilateralGrid
from bilateral.tasks.cell_size import cell_size
from bilateral.tasks.depth.anneal import Schedule, Solution, anneal
from bilateral.tasks.depth.regions import DIFFERENT, choose
from bilateral.tasks.depth.visibility import LeftView

Array = NDArray[Any]

_BOLD = Schedule((64.0, 0.5))
"""Finds surfaces in spite of many outliers, but loses thin structures."""
_CAUTIOUS = Schedule((2.0, 0.5))
"""Keeps thin structures, but also outliers that agree with each other."""
_UNIT_PER_RANGE = 0.03
"""Size of an edge, relative to the range of the map."""
_LEAST_WEIGHT = 1e-9
_MAX_DEVIATION = 100.0
"""Data are clipped at this many units from the median, so that no outlier spoils the variance
around it."""


@dataclass(frozen=True)
class Preset:
    """Properties of a kind of map."""

    stereo: bool = False
    """Whether values are disparities in pixels, of the left view of a rectified pair."""
    zero_is_unknown: bool = False
    least_unit: float = 0.0
    """Smallest difference that can be an edge, in the map's unit."""
    cell: float = 8.0
    """Size of a grid cell in pixels, for an image of 0.35 megapixels."""


PRESETS = {
    "sensor": Preset(),
    "stereo": Preset(stereo=True, zero_is_unknown=True, least_unit=0.5),
    "sparse": Preset(zero_is_unknown=True, cell=4.0),
}


@validation.keywords(photo="reference", target="depth")
def refine_depth(
    depth: ArrayLike,
    reference: ArrayLike,
    confidence: ArrayLike | None = None,
    *,
    preset: str = "sensor",
    invalid: float | Sequence[float] | None = None,
    mask: ArrayLike | None = None,
    sigma_xy: float | None = None,
    sigma_luma: float = 8.0,
    sigma_chroma: float = 8.0,
    scale: float | None = None,
    reference_max: float | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Refine a depth or disparity map with the photograph it belongs to.

    For maps from stereo matching, a time-of-flight or structured-light camera, a network, or a
    LiDAR projected into the image. The result replaces outliers by the values around them, fills
    holes, and moves edges to those of the photograph. Values keep their unit. Thin structures of
    the map stay.

    Parameters
    ----------
    depth : (H, W) array
        Depth or disparity, in any unit and real dtype. A value that is not finite is unknown.
    reference : (H, W) or (H, W, 3) array
        The photograph: uint8, uint16 or floating point, with white at 255, 65535 or 1.
    confidence : (H, W) array, optional
        Weight of each pixel's value relative to the others, on any scale; 0 for unknown. Default:
        1 everywhere.
    preset : {"sensor", "stereo", "sparse"}
        Kind of map. "sensor": any dense map. "stereo": disparities in pixels, larger for nearer
        points, of the left view of a rectified pair; pixels that the right view cannot see become
        background. "sparse": few known pixels, such as a LiDAR's. For "stereo" and "sparse", the
        value 0 is unknown.
    invalid : float or floats, optional
        Values that mean "unknown", such as 0 in many 16-bit files. Without it, a map whose zeros
        are far from all other values causes a warning.
    mask : (H, W) array of bool or integers, optional
        0 where the map is unknown, such as the result of a left-right check.
    sigma_xy : float, optional
        Size of a grid cell in pixels. Default: 8 for 0.35 megapixels (4 for "sparse"), and in
        proportion to the side of the image, from 4 to 64.
    sigma_luma, sigma_chroma : float
        Size of a grid cell in 8-bit grey levels.
    scale : float, optional
        Smallest error of an outlier, in the map's unit; smaller errors are noise. Default: 3 % of
        the map's range (5th to 95th percentile, without noise and outliers), or twice its noise if
        that is larger, and for "stereo" at least half a pixel.
    reference_max : float, optional
        Value of white in the reference. Default: 255, 65535 or 1, by its dtype.
    dtype : dtype, optional
        Dtype of the result. Default: that of the map. Integer results are rounded.

    Returns
    -------
    (H, W) array
        Finite everywhere.

    Examples
    --------
    >>> import numpy as np
    >>> import bilateral
    >>> photo = np.full((40, 60), 40, np.uint8)
    >>> photo[:, 30:] = 200
    >>> depth = np.where(photo > 100, 1500, 3000).astype(np.uint16)  # millimetres
    >>> depth[10:20, 20:28] = 0  # no data
    >>> depth[::7, ::5] = 9999  # wrong
    >>> refined = bilateral.tasks.refine_depth(depth, photo, invalid=0)
    >>> refined.dtype, np.unique(refined).tolist()
    (dtype('uint16'), [1500, 3000])
    """
    validation.depth_not_swapped("refine_depth", "depth", depth, reference)
    guide = validation.reference(reference, reference_max)
    shape = guide.pixels.shape[:2]
    checked = validation.depth_target(depth, shape, dtype)
    kind = PRESETS[validation.choice("preset", preset, PRESETS)]
    unknown = validation.number_list("invalid", invalid)
    if kind.zero_is_unknown:
        unknown = (*unknown, 0.0)
    values = checked.values[..., 0].astype(np.float64)
    trust = _trust(values, confidence, mask, unknown)
    known = trust > 0
    validation.some_known("depth", known)
    validation.warn_of_zeros("depth", values, known, stacklevel=3)
    middle = float(np.median(values[known]))
    unit = _unit(values, known, kind) if scale is None else validation.positive("scale", scale)
    grid = BilateralGrid(
        guide.pixels,
        cell_size(shape, kind.cell, least=4) if sigma_xy is None else sigma_xy,
        sigma_luma,
        sigma_chroma,
        reference_max=guide.highest,
    )
    if unit == 0:  # all values are equal
        return validation.as_dtype(np.full(checked.shape, middle), checked.dtype)
    z = np.where(known, _in_units(values, middle, unit), 0).astype(np.float32)
    view = LeftView(middle, unit) if kind.stereo else None
    x = _refine(grid, guide, z, trust, view)
    return validation.as_dtype(
        (middle + unit * x.astype(np.float64)).reshape(checked.shape), checked.dtype
    )


def _refine(
    grid: BilateralGrid, guide: validation.Reference, z: Array, trust: Array, view: LeftView | None
) -> Array:
    """Refine a map `z` in units of the size of an edge."""
    bold = anneal(grid, z, trust, _first_weights(guide, z, trust, view), _BOLD, view)
    cautious = anneal(grid, z, trust, trust, _CAUTIOUS, view)
    x = _join(guide, bold, cautious, z, trust > 0, view)
    for _ in range(2):
        x = polish(
            x,
            guide.pixels,
            z,
            trust / np.square(1 + np.square(x - z)),
            scale=0.5,
            sigma_rgb=30 * _contrast(guide),
            reference_max=guide.highest,
        )
    return x


def _join(
    guide: validation.Reference,
    bold: Solution,
    cautious: Solution,
    z: Array,
    known: Array,
    view: LeftView | None,
) -> Array:
    """Filter the blocks of grid cells out of both solutions, then choose between them."""
    both = np.stack([bold.x, cautious.x], axis=2)
    sigma_rgb = 4 * _contrast(guide)
    both = domain_transform(both, guide.pixels, 4, sigma_rgb, reference_max=guide.highest)
    filtered = np.ascontiguousarray(np.moveaxis(median(both, 5), 2, 0))
    x = choose(Solution(filtered[0], bold.weights), filtered[1], z, known, view)
    # The median removes lines of one or two pixels: choose once more with them.
    lines = np.where(np.abs(both[..., 1] - filtered[1]) > DIFFERENT, both[..., 1], x)
    return choose(Solution(x, bold.weights), lines, z, known, view)


def _contrast(guide: validation.Reference) -> float:
    """Contrast relative to RGB: filters sum it over the channels, so gray has a third of it."""
    channels: int = guide.pixels.shape[2]
    return channels / 3


def _first_weights(
    guide: validation.Reference, z: Array, trust: Array, view: LeftView | None
) -> Array:
    """Weights of the first round: high where the map varies little, 0 in the left margin."""
    known = trust > 0
    sigma_rgb = 64 * _contrast(guide)
    data = np.where(known, np.clip(z, -_MAX_DEVIATION, _MAX_DEVIATION), np.nan)
    c = edge_aware_variance(data, guide.pixels, 32, sigma_rgb, 3.0, reference_max=guide.highest)
    c = np.where(c > _LEAST_WEIGHT, c, 0) * trust
    if view is not None:
        c[:, : view.margin(z, known)] = 0
    return c if c.any() else trust


def _trust(
    values: Array, confidence: ArrayLike | None, mask: ArrayLike | None, unknown: tuple[float, ...]
) -> Array:
    """A weight per pixel: at most 1, and 0 where the value is unknown."""
    trust = validation.pixel_weights("confidence", confidence, values.shape, np.dtype(np.float64))
    largest = float(trust.max())
    known = np.isfinite(values) & ~np.isin(values, unknown)
    if mask is not None:
        known &= validation.mask("mask", mask, values.shape)
    weights = np.where(known, trust / (largest or 1.0), 0).astype(np.float32)
    return np.where(weights > _LEAST_WEIGHT, weights, 0)


def _in_units(values: Array, middle: float, unit: float) -> Array:
    """Signed distances from the middle in units, clipped so that float32 can square them."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.clip((values - middle) / unit, -1e9, 1e9)


def _unit(values: Array, known: Array, kind: Preset) -> float:
    """Size of an edge, from the map's range and noise; 0 if all values are equal."""
    data = values[known]
    largest = float(np.abs(data).max()) or 1.0
    scaled = np.where(known, values, np.nan) / largest
    deviation = np.abs(scaled - median(scaled, 5))[known]
    noise = 1.4826 * float(np.median(deviation))
    data = data / largest

    def unit_of(part: Array) -> float:
        low, high = np.percentile(part, (5, 95))
        return _UNIT_PER_RANGE * float(high - low)

    inliers = deviation <= max(unit_of(data), 2 * noise)
    unit = max(unit_of(data[inliers]) if inliers.any() else 0.0, 2 * noise) or unit_of(data)
    unit = unit or _UNIT_PER_RANGE * float(np.ptp(data))
    return max(unit * largest, kind.least_unit if unit > 0 else 0.0)
