"""Set up one solve: check its inputs, sum them at the vertices, choose preconditioner and start."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bilateral import validation
from bilateral.grid import BilateralGrid
from bilateral.numerics import pcg
from bilateral.numerics.options import SolveOptions
from bilateral.numerics.system import System, observe

Array = NDArray[Any]


class Problem(NamedTuple):
    """A system with the preconditioner chosen for it."""

    system: System
    preconditioner: str


def check_inputs(
    grid: BilateralGrid,
    target: ArrayLike,
    confidence: ArrayLike | None,
    options: SolveOptions,
    dtype: DTypeLike | None = None,
) -> tuple[validation.Target, Array | None]:
    """Check target and confidence, and bring them to the dtype of the solve."""
    checked = validation.target(target, grid.shape, dtype, options.needs_float64)
    weights = validation.confidence(confidence, grid.shape, checked.values.dtype)
    if weights is not None:
        checked = checked._replace(values=checked.values.astype(weights.dtype, copy=False))
    return checked, weights


def set_up(
    grid: BilateralGrid,
    values: Array,
    confidence: Array | None,
    smoothness: float,
    options: SolveOptions,
) -> Problem:
    """Sum checked inputs at the vertices and choose the preconditioner; raise if no data."""
    system = validation.some_data(observe(grid, values, confidence, smoothness))
    return Problem(system, pcg.choose_preconditioner(grid, system, options))


def start(
    grid: BilateralGrid, problem: Problem, options: SolveOptions, earlier: Array | None = None
) -> Array:
    """Compute the start of PCG, from an earlier solution where one is known (not NaN).

    `earlier` has one row per vertex in the system's unit.
    """
    if earlier is None:
        return pcg.start(grid, problem.system, options, problem.preconditioner)
    unknown = np.isnan(earlier).any(axis=1)
    if unknown.any():
        fresh = pcg.start(grid, problem.system, options, problem.preconditioner)
        earlier[unknown] = fresh[unknown]
    return earlier
