"""Depth and disparity maps: outliers and holes gone, edges where the photograph has them."""

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
"""Finds the surfaces below any amount of wrong data, and loses thin structures."""
_CAUTIOUS = Schedule((2.0, 0.5))
"""Keeps thin structures, and wrong data that agree with each other."""
_UNIT_OF_RANGE = 0.03
_LEAST_WEIGHT = 1e-9
_FARTHEST = 100.0
"""In units from the median: beyond, all outliers are alike, and none spoils its surroundings."""


@dataclass(frozen=True)
class Preset:
    """What is known about a kind of map."""

    stereo: bool = False
    """Disparities in pixels, of the left view of a rectified pair."""
    zero_is_unknown: bool = False
    least_unit: float = 0.0
    """In the map's unit: no smaller difference is an edge."""
    cell: float = 8.0
    """The size of the grid's cells in pixels, in an image of 0.35 megapixels."""


PRESETS = {
    "sensor": Preset(),
    "stereo": Preset(stereo=True, zero_is_unknown=True, least_unit=0.5),
    "sparse": Preset(zero_is_unknown=True, cell=4.0),
}


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
    """Refine a depth or disparity map by the photograph it belongs to.

    For maps from stereo matching, a time-of-flight or structured-light camera, a network, or a
    LiDAR projected into the image. Wrong values are overruled by the others around them, holes are
    filled, and edges move to those of the photograph. Values keep their unit, and thin structures
    that the map has, it keeps.

    Parameters
    ----------
    depth : (H, W) array
        Any real dtype and any unit. A value that is not finite is unknown.
    reference : (H, W) or (H, W, 3) array
        The photograph: uint8, uint16 or floating point, with white at 255, 65535 or 1.
    confidence : (H, W) array, optional
        How much to trust each pixel relative to the others, on any scale; 0 for not at all.
    preset : {"sensor", "stereo", "sparse"}
        What the map is. "sensor": any dense map. "stereo": disparities in pixels, larger for nearer
        points, of the left view of a rectified pair; then what the right view cannot see is
        background. "sparse": few known pixels, such as a LiDAR's. In the last two, 0 is unknown.
    invalid : float or floats, optional
        Values that mean "unknown", such as 0 in many 16-bit files.
    mask : (H, W) array of bool or integers, optional
        0 where the map is unknown, such as a left-right check's result.
    sigma_xy : float, optional
        Size of the grid's cells in pixels; by default 8 for 0.35 megapixels (4 if sparse) and
        in proportion to the image's side, from 4 to 64.
    sigma_luma, sigma_chroma : float
        Size of the grid's cells in 8-bit grey levels.
    scale : float, optional
        The error, in the map's unit, from which on a value is wrong rather than noisy. By default
        3 % of the map's range (between its 5th and 95th percentile, noise and outliers aside),
        twice its noise if that is larger, and for stereo at least half a pixel.
    reference_max : float, optional
        The reference value that means white, where it is not the dtype's usual one.
    dtype : dtype, optional
        The result's, if not the map's. Integer results are rounded.

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
    guide = validation.reference(reference, reference_max)
    shape = guide.pixels.shape[:2]
    wanted = validation.depth_target(depth, shape, dtype)
    kind = PRESETS[validation.choice("preset", preset, PRESETS)]
    unknown = validation.number_list("invalid", invalid)
    if kind.zero_is_unknown:
        unknown = (*unknown, 0.0)
    values = wanted.values[..., 0].astype(np.float64)
    trust = _trust(values, confidence, mask, unknown)
    known = trust > 0
    validation.some_known("depth", known)
    middle = float(np.median(values[known]))
    unit = _unit(values, known, kind) if scale is None else validation.positive("scale", scale)
    grid = BilateralGrid(
        guide.pixels,
        cell_size(shape, kind.cell, least=4) if sigma_xy is None else sigma_xy,
        sigma_luma,
        sigma_chroma,
        reference_max=guide.highest,
    )
    if unit == 0:  # all values are the same
        return validation.as_dtype(np.full(wanted.shape, middle), wanted.dtype)
    z = np.where(known, _units(values, middle, unit), 0).astype(np.float32)
    view = LeftView(middle, unit) if kind.stereo else None
    x = _refine(grid, guide, z, trust, view)
    return validation.as_dtype(
        (middle + unit * x.astype(np.float64)).reshape(wanted.shape), wanted.dtype
    )


def _refine(
    grid: BilateralGrid, guide: validation.Reference, z: Array, trust: Array, view: LeftView | None
) -> Array:
    """The recipe, in a unit in which 1 is the size of an edge."""
    bold = anneal(grid, z, trust, _first(guide, z, trust, view), _BOLD, view)
    cautious = anneal(grid, z, trust, trust, _CAUTIOUS, view)
    x = _join(guide, bold, cautious, z, trust > 0, view)
    for _ in range(2):
        x = polish(
            x,
            guide.pixels,
            z,
            trust / np.square(1 + np.square(x - z)),
            scale=0.5,
            sigma_rgb=30 * _brightness(guide),
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
    """Take the grid's blocks and lone vertices from both solutions, then choose among them."""
    both = np.stack([bold.x, cautious.x], axis=2)
    sigma_rgb = 4 * _brightness(guide)
    both = domain_transform(both, guide.pixels, 4, sigma_rgb, reference_max=guide.highest)
    calm = np.ascontiguousarray(np.moveaxis(median(both, 5), 2, 0))
    x = choose(Solution(calm[0], bold.weights), calm[1], z, known, view)
    # The median takes away lines of one or two pixels.
    lines = np.where(np.abs(both[..., 1] - calm[1]) > DIFFERENT, both[..., 1], x)
    return choose(Solution(x, bold.weights), lines, z, known, view)


def _brightness(guide: validation.Reference) -> float:
    """Differences are summed over the channels: those of a gray reference are a third of RGB's."""
    channels: int = guide.pixels.shape[2]
    return channels / 3


def _first(guide: validation.Reference, z: Array, trust: Array, view: LeftView | None) -> Array:
    """The weights of the first round: where the map varies little, and away from the margin."""
    known = trust > 0
    sigma_rgb = 64 * _brightness(guide)
    data = np.where(known, np.clip(z, -_FARTHEST, _FARTHEST), np.nan)
    c = edge_aware_variance(data, guide.pixels, 32, sigma_rgb, 3.0, reference_max=guide.highest)
    c = np.where(c > _LEAST_WEIGHT, c, 0) * trust
    if view is not None:
        c[:, : view.margin(z, known)] = 0
    return c if c.any() else trust


def _trust(
    values: Array, confidence: ArrayLike | None, mask: ArrayLike | None, unknown: tuple[float, ...]
) -> Array:
    """A weight per pixel, at most 1, and 0 where the value is unknown."""
    trust = validation.pixel_weights("confidence", confidence, values.shape, np.dtype(np.float64))
    largest = float(trust.max())
    known = np.isfinite(values) & ~np.isin(values, unknown)
    if mask is not None:
        known &= validation.mask("mask", mask, values.shape)
    weights = np.where(known, trust / (largest or 1.0), 0).astype(np.float32)
    return np.where(weights > _LEAST_WEIGHT, weights, 0)


def _units(values: Array, middle: float, unit: float) -> Array:
    """Distances from the middle in units, as far as float32 can square them."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.clip((values - middle) / unit, -1e9, 1e9)


def _unit(values: Array, known: Array, kind: Preset) -> float:
    """The size of an edge, by the map's range and noise; 0 if all its values are the same."""
    data = values[known]
    largest = float(np.abs(data).max()) or 1.0
    scaled = np.where(known, values, np.nan) / largest
    deviation = np.abs(scaled - median(scaled, 5))[known]
    noise = 1.4826 * float(np.median(deviation))
    data = data / largest

    def of_range(part: Array) -> float:
        low, high = np.percentile(part, (5, 95))
        return _UNIT_OF_RANGE * float(high - low)

    usual = deviation <= max(of_range(data), 2 * noise)
    unit = max(of_range(data[usual]) if usual.any() else 0.0, 2 * noise) or of_range(data)
    unit = unit or _UNIT_OF_RANGE * float(np.ptp(data))
    return max(unit * largest, kind.least_unit if unit > 0 else 0.0)
