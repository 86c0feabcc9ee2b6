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
    """A = lambda (D_m - D_n B-bar D_n) + diag(weight) and b = weighted, lambda left open."""

    weight: Array
    """S c, one number per vertex."""
    weighted: Array
    """S (c t), one row per vertex."""
    scale: Array
    """Range of the known values of each channel: the unit of error estimates."""


def observe(grid: BilateralGrid, target: Array, confidence: Array | None) -> System:
    """Sum a target and its confidence over the grid's vertices."""
    seen = cpu.splat_target(grid._core, target, confidence)
    checks.confidence_value(confidence, seen.invalid)
    checks.some_data(seen.known)
    extremes = (seen.weighted.min(), seen.weighted.max(), seen.weight.max())
    if target.dtype == np.float32 and not np.isfinite(extremes).all():
        wide = None if confidence is None else confidence.astype(np.float64)
        return observe(grid, target.astype(np.float64), wide)
    size = np.maximum(np.abs(seen.low), np.abs(seen.high))
    scale = np.where(seen.high > seen.low, seen.high - seen.low, size)
    return System(seen.weight, seen.weighted, np.where(scale > 0, scale, 1.0))


def start(grid: BilateralGrid, system: System, initial: str) -> Array:
    """Where PCG starts, without an earlier solution."""
    return cpu.start(grid._core, system.weight, system.weighted, initial)


def start_from(grid: BilateralGrid, pixels: Array) -> Array:
    """Where PCG starts from an earlier solution in pixel space: each vertex's mean."""
    ones = np.ones(grid.shape, pixels.dtype)
    mean: Array = cpu.splat(grid._core, pixels) / cpu.splat(grid._core, ones)[:, np.newaxis]
    return mean


def solve(
    grid: BilateralGrid,
    system: System,
    x: Array,
    smoothness: float,
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
        smoothness,
        preconditioner,
        min(most_steps, np.iinfo(np.int32).max),
        tolerance,
        callback,
    )
