"""How sure a solution is: the diagonal of S^T A^-1 S, by probing.

A is a sum of rank-one terms f u u^T, one per edge and one per vertex with data. So b, the sum of
the vectors sqrt(f) u with random signs, has the covariance A, and x = A^-1 b has the covariance
A^-1: the mean of x^2 over a few such b estimates its diagonal.

- The mean is right, and never negative.
- Its relative standard error is at most sqrt(2 / probes), whatever A is. With x_v = sum_k s_k a_k,
  the variance of x_v^2 is 2 ((sum a_k^2)^2 - sum a_k^4): random signs do better than Gaussians,
  and have no error at all where one term alone decides.
- Hutchinson's estimator, the mean of z * (A^-1 z) for signs z, has an error that grows with the
  off-diagonal entries of A^-1, which for a smooth solution are about as large as the diagonal.
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.backends import cpu
from bilateral.grid import BilateralGrid
from bilateral.info import ConvergenceWarning
from bilateral.numerics import system

Array = NDArray[Any]

_AT_ONCE = 8
"""Probes per solve: the most channels that the core takes side by side."""
_OPTIONS = system.Options("multigrid", "nested", most_steps=100, tolerance=1e-3)
"""The error of a solve is far below that of the probing, so no other tolerance is of use."""

_STIFF = 1e18
"""From this ratio of smoothness and all confidence on, a connected part of the grid has one value,
whose variance is 1 / its confidence: more only makes b too large for what decides."""


def estimate(
    grid: BilateralGrid, problem: system.System, probes: int, seed: int, stacklevel: int
) -> Array:
    """The diagonal of A^-1, one number per vertex; infinite in parts without data."""
    total = float(problem.weight.sum(dtype=np.float64))
    problem = problem._replace(smoothness=min(problem.smoothness, _STIFF * total))
    known = cpu.with_data(grid._core, problem.weight)
    solver = system.Solver(grid, _OPTIONS)
    squares = np.zeros(grid.n_vertices)
    starts = range(0, probes, _AT_ONCE)
    seeds = np.random.SeedSequence(seed).generate_state(len(starts), np.uint64)
    converged = True
    for first, own_seed in zip(starts, seeds, strict=True):
        count = min(_AT_ONCE, probes - first)
        b = cpu.draw_probes(grid._core, problem.weight, problem.smoothness, int(own_seed), count)
        probe = problem._replace(weighted=b)
        x = system.start(grid, probe, _OPTIONS)
        # No variance is less than 1 / total, but a start may be far too small for large smoothness.
        scale = max(_typical(x[known]), 1 / np.sqrt(total))
        probe = probe._replace(scale=np.full(count, scale))
        converged &= solver.follow(probe, x, of_movement=0.0).converged
        squares += np.square(x, dtype=np.float64).sum(axis=1)
    if not converged:
        warnings.warn(
            f"a solve for the variance stopped after {_OPTIONS.most_steps} steps: the variance may "
            f"be less exact than its statistical error.",
            ConvergenceWarning,
            stacklevel,
        )
    squares /= probes
    with np.errstate(over="ignore", under="ignore"):
        return np.where(known, squares / problem.confidence_unit, np.inf)


def _typical(x: Array) -> float:
    """The size of a solution at half of the vertices: what its error is relative to."""
    return float(np.median(np.sqrt(np.square(x, dtype=np.float64).mean(axis=1))))
