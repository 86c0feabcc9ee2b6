"""Choose the smoothness by the number of known pixels and their noise: ``smoothness="auto"``.

The data term of a vertex counts its known pixels, the smoothness term all of its pixels. So few
known pixels need a small smoothness, and noise needs a larger one. docs/notes/sparse.md explains
the rule and has its measurements.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.grid import BilateralGrid
from bilateral.numerics import policy
from bilateral.numerics.slope_rule import noise_level

Array = NDArray[Any]

_LEAST_WEIGHT = 0.01
"""Values of less confidence, relative to the largest, do not count in the estimate of the noise:
their confidence may be any small number that stands for unknown."""


def resolve(
    smoothness: float | str,
    grid: BilateralGrid,
    target: Array,
    confidence: Array | None,
    planar: bool,
) -> float:
    """Return a smoothness that is a number as it is, and the rule's for "auto"."""
    return choose(grid, target, confidence, planar) if isinstance(smoothness, str) else smoothness


def choose(grid: BilateralGrid, target: Array, confidence: Array | None, planar: bool) -> float:
    """Return the smoothness that suits a target (..., K), in the unit of the confidence.

    It is proportional to the confidence, and does not change with an affine change of the target.
    """
    weights = np.ones(grid.shape) if confidence is None else confidence.astype(np.float64)
    known = np.isfinite(target).all(axis=-1) & np.isfinite(weights) & (weights > 0)
    if not known.any():
        return policy.SMOOTHNESS
    # Units that keep squares moderate.
    unit = float(weights.max(where=known, initial=0.0))
    weights = np.where(known, weights / unit, 0.0)
    values = _in_unit_range(target, known)
    # Pixels of little confidence hardly count as known.
    mean = float(np.sum(weights**2)) / float(weights.sum())
    density = min(float(weights.sum()) / mean / math.prod(grid.shape), 1.0)
    few, complete = policy.SPARSE_SMOOTHNESS, policy.SMOOTHNESS
    smoothness = mean * (few + (complete - few) * density**3)
    trusted = np.where(weights >= _LEAST_WEIGHT, weights, 0)
    noise, signal, cells = noise_level(grid, values, trusted, careful=False)
    if cells > 0 and signal > 0:
        strength = policy.NOISE_STRENGTH["planar" if planar else "constant"]
        certain = max(0.0, 1 - 2 / math.sqrt(cells))
        wanted = strength * math.sqrt(density) * certain * noise / signal
        smoothness = max(smoothness, min(wanted, mean * policy.LARGEST_AUTO_SMOOTHNESS))
    elif cells > 0 and noise > 0:  # no signal
        smoothness = mean * policy.LARGEST_AUTO_SMOOTHNESS
    return unit * smoothness


def _in_unit_range(target: Array, known: Array) -> Array:
    """Shift the known values of each channel and scale all of them into [-1, 1]; NaN elsewhere."""
    values = np.where(known[..., np.newaxis], target, np.nan).astype(np.float64)
    axes = tuple(range(values.ndim - 1))
    size = float(np.nanmax(np.abs(values)))
    values /= size or 1.0
    middle = 0.5 * (np.nanmin(values, axis=axes) + np.nanmax(values, axis=axes))
    values -= middle
    span = float(np.nanmax(np.abs(values)))
    # A range within the rounding errors of the values is none.
    values *= 1 / span if span > 1e-12 else 0.0
    return values
