"""Refine a whole map by two annealed solves: for maps with many outliers that agree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral import validation
from bilateral.confidence import edge_aware_variance
from bilateral.filters.domain_transform import domain_transform
from bilateral.filters.median import median
from bilateral.filters.polish import polish
from bilateral.grid import BilateralGrid
from bilateral.tasks.depth.anneal import Schedule, Solution, anneal
from bilateral.tasks.depth.matching.regions import DIFFERENT, choose
from bilateral.tasks.depth.matching.visibility import LeftView, background_asymmetry

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


def refine_whole(
    values: Array,
    trust: Array,
    guide: validation.Reference,
    grid: BilateralGrid,
    unit: float,
    *,
    stereo: bool,
) -> Array:
    """Refine a map with the photograph, wherever the map agrees with it or not.

    Parameters
    ----------
    values : (H, W) float64 array
    trust : (H, W) float32 array
        Weights from 0 (unknown) to 1.
    guide : Reference
    grid : BilateralGrid
        Of the photograph.
    unit : float
        Size of an edge, above 0.
    stereo : bool
        Whether values are disparities in pixels, of the left view of a rectified pair.
    """
    known = trust > 0
    middle = float(np.median(values[known]))
    z = np.where(known, _in_units(values, middle, unit), 0).astype(np.float32)
    view = None
    if stereo:
        view = LeftView(middle, unit, background_asymmetry(guide))
        inside = trust * view.matches(z)
        trust = inside if inside.any() else trust
    x = _refine(grid, guide, z, trust, known, view)
    return middle + unit * x.astype(np.float64)


def _refine(
    grid: BilateralGrid,
    guide: validation.Reference,
    z: Array,
    trust: Array,
    known: Array,
    view: LeftView | None,
) -> Array:
    """Refine a map `z` in units of the size of an edge."""
    bold = anneal(grid, z, trust, _first_weights(guide, z, trust, known, view), _BOLD, view)
    cautious = anneal(grid, z, trust, trust, _CAUTIOUS, view)
    x = _join(guide, bold, cautious, z, known, view)
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
    guide: validation.Reference, z: Array, trust: Array, known: Array, view: LeftView | None
) -> Array:
    """Weights of the first round: high where the map varies little, 0 in the left margin."""
    sigma_rgb = 64 * _contrast(guide)
    data = np.where(known, np.clip(z, -_MAX_DEVIATION, _MAX_DEVIATION), np.nan)
    c = edge_aware_variance(data, guide.pixels, 32, sigma_rgb, 3.0, reference_max=guide.highest)
    c = np.where(c > _LEAST_WEIGHT, c, 0) * trust
    if view is not None:
        c[:, : view.margin(z, known)] = 0
    return c if c.any() else trust


def _in_units(values: Array, middle: float, unit: float) -> Array:
    """Signed distances from the middle in units, clipped so that float32 can square them."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.clip((values - middle) / unit, -1e9, 1e9)


def edge_size(values: Array, known: Array, least: float) -> float:
    """Size of an edge, from the map's range and noise, or `least`; 0 if all values are equal."""
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
    return max(unit * largest, least if unit > 0 else 0.0)
