"""Set up the linear system A y = b of one target on a grid (Eq. 6 of the paper)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral import validation
from bilateral.backends import cpu
from bilateral.grid import BilateralGrid, core_of
from bilateral.numerics import policy

Array = NDArray[Any]


class System(NamedTuple):
    """A = lambda (D_m - D_n B-bar D_n) + diag(weight) and b = weighted.

    Values and confidences may have units other than the caller's, to keep numbers moderate.
    """

    weight: Array
    """S c, one number per vertex."""
    weighted: Array
    """S (c t), one row per vertex."""
    smoothness: float
    """lambda, in the unit of the confidences."""
    scale: Array
    """Range of the known values per channel: error estimates are relative to it."""
    bounds: tuple[Array, Array] | None = None
    """Lowest and highest known value per channel, in the caller's unit; None: not known."""
    unit: Array | None = None
    """The caller's value of 1, per channel; None: the caller's own unit."""
    confidence_unit: float = 1.0
    """The caller's confidence of 1."""


def observe(
    grid: BilateralGrid, target: Array, confidence: Array | None, smoothness: float
) -> System | None:
    """Sum a target and its confidence over the vertices; None if no pixel is known.

    Numbers that exceed float32 turn a float32 problem into a float64 one. Numbers that exceed
    float64 turn a float64 problem into one in other units.
    """
    sums = cpu.splat_target(core_of(grid), target, confidence)
    validation.confidence_value(confidence, sums.invalid)
    if sums.known == 0:
        return None
    system = of_sums(grid, sums, smoothness)
    if system is not None:
        return system
    if target.dtype == np.float64:
        return _in_other_units(grid, target, confidence, smoothness, sums)
    confidence = None if confidence is None else confidence.astype(np.float64)
    return observe(grid, target.astype(np.float64), confidence, smoothness)


def of_sums(grid: BilateralGrid, sums: cpu.Observation, smoothness: float) -> System | None:
    """Make a system of the sums over the vertices; None if their dtype cannot hold the numbers."""
    dtype, size = sums.weight.dtype, _size(sums)
    if not dtype_is_enough(grid, dtype, size, sums.known, sums.confidence, smoothness):
        return None
    return System(sums.weight, sums.weighted, smoothness, _scale(sums), (sums.low, sums.high))


def reweigh(
    grid: BilateralGrid, system: System, samples: cpu.Samples, y: Array, loss: cpu.Loss
) -> System | None:
    """Replace the confidences by the loss's weights of the residuals of `y`, in the same arrays.

    None if the dtype cannot hold the new numbers.
    """
    cpu.splat_robust(samples, loss, y, system.weight, system.weighted)
    size, total = np.array(samples.size), cpu.total_weight(system.weight)
    is_enough = dtype_is_enough(grid, y.dtype, size, samples.known, total, system.smoothness)
    return system if is_enough else None


def dtype_is_enough(
    grid: BilateralGrid,
    dtype: np.dtype[Any],
    size: Array,
    known: int,
    confidence: float,
    smoothness: float,
) -> bool:
    """Whether a dtype holds values, confidences and smoothness of these magnitudes."""
    limit = policy.LARGEST_FLOAT64 if dtype == np.float64 else policy.LARGEST_FLOAT32
    # Together these bound the ratios of the numbers that meet in a solve.
    numbers = np.array([*size[size > 0], confidence / known, smoothness])
    moderate = bool((numbers < limit).all() and (numbers > 1 / limit).all())
    if dtype == np.float64 or not moderate:
        return moderate
    return policy.float32_is_enough(smoothness, math.prod(grid.shape), confidence, grid.n_vertices)


def _size(sums: cpu.Observation) -> Array:
    size: Array = np.maximum(np.abs(sums.low), np.abs(sums.high))
    return size


def _scale(sums: cpu.Observation) -> Array:
    scale = np.where(sums.high > sums.low, sums.high - sums.low, _size(sums))
    return np.where(scale > 0, scale, 1.0)


def _in_other_units(
    grid: BilateralGrid,
    target: Array,
    confidence: Array | None,
    smoothness: float,
    sums: cpu.Observation,
) -> System:
    size, bounds = _size(sums), (sums.low, sums.high)
    unit = np.where(size > 0, size, 1.0)
    known = np.asarray(np.isfinite(target).all(axis=-1))
    confidence_unit = 1.0
    if confidence is not None:
        confidence_unit = float(confidence[known].max())
        confidence = np.where(known, confidence, 0) / confidence_unit
    values = np.divide(target, unit, where=known[..., np.newaxis], out=np.full_like(target, np.nan))
    sums = cpu.splat_target(core_of(grid), values, confidence)
    # Beyond these limits, a change of the smoothness has no effect that float64 could show.
    with np.errstate(over="ignore", under="ignore"):
        relative = float(np.clip(np.float64(smoothness) / confidence_unit, 1e-30, 1e30))
    scale = _scale(sums)
    return System(sums.weight, sums.weighted, relative, scale, bounds, unit, confidence_unit)


def values(system: System, y: Array) -> Array:
    """Convert a solution of the system to the caller's unit."""
    return y if system.unit is None else y * system.unit


def solution(system: System, y: Array, bounds: tuple[Array, Array] | None) -> Array:
    """Convert a solution to the caller's unit, and clip it to the range of the known values.

    The exact solution lies within that range: A has no positive entries off its diagonal, and its
    rows sum to the confidences. So clipping only ever reduces the error of an iteration. The result
    may share memory with `y`, which is clipped then.
    """
    x = values(system, y)
    if bounds is not None:
        low, high = (bound.astype(x.dtype) for bound in bounds)
        np.clip(x, low, high, out=x)
    return x


def convert(y: Array, old: System, new: System) -> Array:
    """Convert a solution of one system to the unit and dtype of another."""
    if old.unit is None and new.unit is None:
        return y.astype(new.weight.dtype, copy=False)
    converted: Array = values(old, y).astype(np.float64)
    return converted if new.unit is None else converted / new.unit


def vertices_with_data(grid: BilateralGrid, weight: Array) -> NDArray[np.bool_]:
    """Return whether each vertex is connected to one of positive weight."""
    return cpu.with_data(core_of(grid), weight)


def slice_vertices(grid: BilateralGrid, vertices: Array, out: Array | None = None) -> Array:
    """Compute S^T v: pixels (..., K) of vertices (n_vertices, K), into `out` of any dtype."""
    if out is None or vertices.dtype == out.dtype:
        return cpu.slice_(core_of(grid), vertices, grid.shape, out)
    out[...] = cpu.slice_(core_of(grid), vertices, grid.shape)
    return out
