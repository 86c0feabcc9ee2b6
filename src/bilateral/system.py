"""The linear system A y = b of one target on a grid (Eq. 6 of the paper)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral import checks
from bilateral.grid import BilateralGrid
from bilateral.ops import cpu

Array = NDArray[Any]


class System(NamedTuple):
    """A = lambda (D_m - D_n B-bar D_n) + diag(weight) and b = weighted.

    Values and confidences may be in units of their own, so that numbers stay moderate.
    """

    weight: Array
    """S c, one number per vertex."""
    weighted: Array
    """S (c t), one row per vertex."""
    smoothness: float
    """lambda, in the confidences' unit."""
    scale: Array
    """Range of the known values of each channel: what error estimates are relative to."""
    unit: Array | None = None
    """What a value of 1 means, for each channel; None: itself."""


def observe(
    grid: BilateralGrid, target: Array, confidence: Array | None, smoothness: float
) -> System:
    """Sum a target and its confidence over the grid's vertices.

    A float32 problem with numbers that float32 cannot serve becomes one of float64, and a float64
    problem with extreme numbers one in other units.
    """
    seen = cpu.splat_target(grid._core, target, confidence)
    checks.confidence_value(confidence, seen.invalid)
    checks.some_data(seen.known)
    size = np.maximum(np.abs(seen.low), np.abs(seen.high))
    if target.dtype == np.float32:
        if not _moderate(seen, size, smoothness, 1e12) or _stiff(grid, seen, smoothness):
            wide = None if confidence is None else confidence.astype(np.float64)
            return observe(grid, target.astype(np.float64), wide, smoothness)
    elif not _moderate(seen, size, smoothness, 1e100):
        return _in_other_units(grid, target, confidence, smoothness, size)
    return System(seen.weight, seen.weighted, smoothness, _scale(seen))


def _moderate(seen: cpu.Observation, size: Array, smoothness: float, limit: float) -> bool:
    # Together these bound the ratios of the numbers that meet in a solve.
    numbers = np.array([*size[size > 0], seen.confidence / seen.known, smoothness])
    return bool((numbers < limit).all() and (numbers > 1 / limit).all())


def _stiff(grid: BilateralGrid, seen: cpu.Observation, smoothness: float) -> bool:
    # float32's rounding of the smoothness term, summed over the vertices, against the data term
    ratio = smoothness * grid.shape[0] * grid.shape[1] / seen.confidence
    return bool(ratio > 100 * np.sqrt(grid.n_vertices))


def _scale(seen: cpu.Observation) -> Array:
    size = np.maximum(np.abs(seen.low), np.abs(seen.high))
    scale = np.where(seen.high > seen.low, seen.high - seen.low, size)
    return np.where(scale > 0, scale, 1.0)


def _in_other_units(
    grid: BilateralGrid, target: Array, confidence: Array | None, smoothness: float, size: Array
) -> System:
    unit = np.where(size > 0, size, 1.0)
    known = np.asarray(np.isfinite(target).all(axis=2))
    largest = 1.0
    if confidence is not None:
        largest = float(confidence[known].max())
        confidence = np.where(known, confidence, 0) / largest
    values = np.divide(
        target, unit, where=known[:, :, np.newaxis], out=np.full_like(target, np.nan)
    )
    seen = cpu.splat_target(grid._core, values, confidence)
    # Beyond these, more or less smoothness changes nothing that float64 could show.
    with np.errstate(over="ignore", under="ignore"):
        relative = float(np.clip(np.float64(smoothness) / largest, 1e-30, 1e30))
    return System(seen.weight, seen.weighted, relative, _scale(seen), unit)


def start(grid: BilateralGrid, system: System, initial: str) -> Array:
    """Where PCG starts, without an earlier solution."""
    return cpu.start(grid._core, system.weight, system.weighted, initial)


def start_from(grid: BilateralGrid, system: System, pixels: Array) -> Array:
    """Where PCG starts from an earlier solution in pixel space: each vertex's mean."""
    pixels = pixels.astype(system.weight.dtype, copy=False)
    if system.unit is not None:
        pixels = pixels / system.unit
    ones = np.ones(grid.shape, pixels.dtype)
    mean: Array = cpu.splat(grid._core, pixels) / cpu.splat(grid._core, ones)[:, np.newaxis]
    return mean


def solve(
    grid: BilateralGrid,
    system: System,
    x: Array,
    preconditioner: str,
    most_steps: int,
    tolerance: float,
    callback: Callable[[int, float], Any] | None,
) -> tuple[list[float], bool]:
    """Improve the start `x` in place; return the error after each step, whether it converged."""
    return cpu.pcg(
        grid._core,
        system.weight,
        system.weighted,
        x,
        system.scale,
        system.smoothness,
        preconditioner,
        min(most_steps, np.iinfo(np.int32).max),
        tolerance,
        callback,
    )
