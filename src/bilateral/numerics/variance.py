"""Estimate the variance of a solution, the diagonal of S^T A^-1 S, by random probing.

A is a sum of rank-one terms f u u^T, one per edge and one per vertex with data. Let b be the sum of
the vectors sqrt(f) u with random signs. Then b has the covariance A, and x = A^-1 b has the
covariance A^-1: the mean of x^2 over a few such b estimates the diagonal of A^-1.

- The estimate is unbiased and never negative.
- Its relative standard error is at most sqrt(2 / probes), whatever A is. With x_v = sum_k s_k a_k,
  the variance of x_v^2 is 2 ((sum a_k^2)^2 - sum a_k^4). Random signs have a smaller error than
  Gaussian numbers, and no error at all where a single term decides.
- Hutchinson's estimator, the mean of z * (A^-1 z) over random signs z, has an error that grows with
  the off-diagonal entries of A^-1. For a smooth solution these are about as large as the diagonal.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.backends import cpu
from bilateral.grid import BilateralGrid, core_of, planes_of
from bilateral.info import ConvergenceWarning
from bilateral.numerics import pcg, planar, system
from bilateral.numerics.options import SolveOptions

Array = NDArray[Any]

_PROBES_PER_SOLVE = 8
"""The core solves up to this many channels side by side."""
_OPTIONS = SolveOptions(initial="nested")
"""The error of a solve is far below the error of probing, so other tolerances have no use."""
_PLANAR_OPTIONS = SolveOptions(model="planar")
_MAX_STIFFNESS = 1e18
"""Above this ratio of smoothness to total confidence, a connected part of the grid has one value
with variance 1 / its confidence. A larger ratio only makes b too large."""


def estimate(
    grid: BilateralGrid, observed: system.System, probes: int, seed: int, stacklevel: int
) -> Array:
    """Estimate the diagonal of A^-1, one number per vertex; infinite in parts without data."""
    core = core_of(grid)
    total = float(observed.weight.sum(dtype=np.float64))
    smoothness = min(observed.smoothness, _MAX_STIFFNESS * total)
    observed = observed._replace(smoothness=smoothness)
    has_data = cpu.with_data(core, observed.weight)
    solver = pcg.SystemSolver(grid, _OPTIONS)
    squares = np.zeros(grid.n_vertices)
    starts = range(0, probes, _PROBES_PER_SOLVE)
    seeds = np.random.SeedSequence(seed).generate_state(len(starts), np.uint64)
    converged = True
    for first, group_seed in zip(starts, seeds, strict=True):
        count = min(_PROBES_PER_SOLVE, probes - first)
        b = cpu.draw_probes(core, observed.weight, smoothness, int(group_seed), count)
        probe = observed._replace(weighted=b)
        x = pcg.start(grid, probe, _OPTIONS, _OPTIONS.preconditioner)
        # No variance is below 1 / total, but a start may be far too small for large smoothness.
        scale = max(_median_size(x[has_data]), 1 / np.sqrt(total))
        probe = probe._replace(scale=np.full(count, scale))
        converged &= solver.follow(probe, x, movement_fraction=0.0).converged
        squares += np.square(x, dtype=np.float64).sum(axis=1)
    if not converged and observed.weight.dtype == np.float32:
        # Confidences of many magnitudes: rounding errors of the largest variances hide the median.
        precise = observed._replace(weight=observed.weight.astype(np.float64))
        return estimate(grid, precise, probes, seed, stacklevel + 1)
    if not converged:
        _warn(stacklevel + 1)
    squares /= probes
    with np.errstate(over="ignore", under="ignore"):
        return np.where(has_data, squares / observed.confidence_unit, np.inf)


def estimate_planar(
    grid: BilateralGrid,
    target: Array,
    confidence: Array | None,
    smoothness: float,
    options: SolveOptions,
    probes: int,
    seed: int,
    stacklevel: int,
) -> Array:
    """Estimate the variance of a planar solution at each pixel; infinite in parts without data."""
    observed = planar.observe(grid, target, confidence, smoothness, options.slope_ridge)
    if observed is None:
        return np.full(grid.shape, np.inf)
    planes = planes_of(grid)
    slopes = planar.slope_weights(grid, target, confidence, observed, options)
    total = observed.sums.confidence
    solver = planar.PlaneSolver(grid, slopes, _PLANAR_OPTIONS)
    squares, converged = np.zeros(grid.shape), True
    starts = range(0, probes, _PROBES_PER_SOLVE)
    seeds = np.random.SeedSequence(seed).generate_state(len(starts), np.uint64)
    for first, group_seed in zip(starts, seeds, strict=True):
        count = min(_PROBES_PER_SOLVE, probes - first)
        moments = observed.sums.moments
        smooth = min(observed.smoothness, _MAX_STIFFNESS * total)
        b = cpu.draw_plane_probes(planes, moments, smooth, slopes, int(group_seed), count)
        probe = observed._replace(sums=observed.sums._replace(weighted=b), smoothness=smooth)
        start = solver.solve(probe, None, scale=np.ones(count), steps=0).x
        scale = max(_median_size(start[:, :, 0].T), 1 / np.sqrt(total))
        solution = solver.solve(probe, start, scale=np.full(count, scale))
        converged &= solution.outcome.converged
        pixels = cpu.slice_planes(planes, solution.x, grid.shape)
        squares += np.square(pixels, dtype=np.float64).sum(axis=-1)
    if not converged:
        _warn(stacklevel + 1)
    has_data = cpu.slice_(core_of(grid), solver.vertices_with_data().astype(np.float64), grid.shape)
    with np.errstate(over="ignore", under="ignore"):
        return np.where(has_data > 0, squares / probes / observed.confidence_unit, np.inf)


def _warn(stacklevel: int) -> None:
    warnings.warn(
        f"a solve for the variance stopped after {_OPTIONS.max_iterations} steps: the variance "
        f"may be less exact than its statistical error.",
        ConvergenceWarning,
        stacklevel,
    )


def _median_size(x: Array) -> float:
    """Compute the median over vertices of the RMS over channels."""
    return float(np.median(np.sqrt(np.square(x, dtype=np.float64).mean(axis=1))))
