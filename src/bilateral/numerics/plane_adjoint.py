"""Solve with planes and keep the matrix, to apply derivatives of the solution.

With A of `bilateral.numerics.planar`, S^T that evaluates planes at pixels, and F that fills parts
of the grid without data from the planes of all others, the solution is M (c t) with
M = S^T (I + F) A^-1 S. A^-1 is 0 in parts without data. `derivatives` needs M and M^T only.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral import validation
from bilateral.grid import BilateralGrid
from bilateral.numerics import pcg, planar, policy
from bilateral.numerics.options import SolveOptions
from bilateral.numerics.pcg import Outcome
from bilateral.numerics.planar import PlaneSystem
from bilateral.numerics.problem import check_inputs

Array = NDArray[Any]


class PlaneAdjoint:
    """The matrix of one planar solve, ready for any number of right-hand sides.

    Threads may share it; they take turns.
    """

    def __init__(
        self,
        grid: BilateralGrid,
        smoothness: float,
        options: SolveOptions,
        system: PlaneSystem,
        slopes: tuple[float, float],
    ) -> None:
        self.grid = grid
        self.content = int(np.float64(slopes[1]).view(np.int64))
        """The ridge as the bits of an integer, to rebuild the adjoint from a copied handle."""
        self._smoothness = smoothness
        self._options = options
        self._system = system
        slopes = slopes[0], max(slopes[1], policy.LEAST_DERIVATIVE_RIDGE)
        self._solver = planar.PlaneSolver(grid, slopes, options)
        """Solves with the matrix of the derivatives."""
        self._lock = threading.RLock()
        self._with_data: NDArray[np.bool_] | None = None
        """Which vertices are connected to data; None: not computed yet, or all."""
        self._has_gaps = system.has_gaps
        """Whether parts of the grid may have no data."""

    @classmethod
    def solve(
        cls,
        grid: BilateralGrid,
        smoothness: float,
        options: SolveOptions,
        target: Array,
        confidence: Array | None,
        out: Array,
    ) -> tuple[PlaneAdjoint, Outcome]:
        """Solve for a target (H, W, K) into `out`, without the clamp; keep what derivatives need.

        Arguments as for `bilateral.numerics.adjoint.Adjoint.solve`.
        """
        checked, weights = check_inputs(grid, target, confidence, options)
        observed = planar.observe(grid, checked.values, weights, smoothness, options.slope_ridge)
        system = validation.some_data(observed)
        slopes = planar.slope_weights(grid, checked.values, weights, system, options)
        adjoint = cls(grid, smoothness, options, system, slopes)
        solver = adjoint._solver
        if slopes[1] < policy.LEAST_DERIVATIVE_RIDGE:
            solver = planar.PlaneSolver(grid, slopes, options)
        solution = solver.solve(system, None)
        if adjoint._has_gaps:
            adjoint._set_data(solver)
        outcome = solution.outcome
        if outcome.residuals:
            reached = outcome.converged or outcome.residuals[-1] <= options.tolerance
            outcome = outcome._replace(converged=reached)
        out[...] = solution.pixels(grid, None)
        return adjoint, outcome

    @classmethod
    def of_inputs(
        cls,
        grid: BilateralGrid,
        smoothness: float,
        options: SolveOptions,
        target: Array,
        confidence: Array | None,
        content: int,
    ) -> PlaneAdjoint:
        """Rebuild the adjoint of a solve from its inputs and its content."""
        checked, weights = check_inputs(grid, target, confidence, options)
        observed = planar.observe(grid, checked.values, weights, smoothness, options.slope_ridge)
        system = validation.some_data(observed)
        ridge, penalty = float(np.int64(content).view(np.float64)), options.slope_smoothness
        if options.slope_ridge is None:  # the same factor multiplied both
            penalty *= ridge / policy.SLOPE_RIDGE
        return cls(grid, smoothness, options, system, (penalty, ridge))

    def apply(self, g: Array, out: Array, *, transposed: bool) -> Outcome:
        """Compute M g or M^T g for pixels (H, W, K), into `out`."""
        b = planar.pixel_sums(self.grid, g)
        if np.isnan(b).any():
            out.fill(np.nan)
            return Outcome([], converged=True, diverged=False, moved=0.0)
        # Gradients may have any magnitude. Scaling by a power of 2 costs no rounding.
        unit = 2.0 ** np.frexp(max(b.max(), -b.min(), np.finfo(b.dtype).tiny))[1]
        scaled = (b * b.dtype.type(1 / unit)).astype(self._system.sums.weighted.dtype, copy=False)
        with self._lock:
            pixels, outcome = self._solve(scaled, transposed=transposed)
        pixels *= pixels.dtype.type(unit / self._system.confidence_unit)
        out[...] = pixels
        return outcome

    def warn(self, outcome: Outcome, stacklevel: int) -> None:
        """Warn if a solve ended before it reached its tolerance; level 1 is the caller."""
        pcg.warn_if_not_converged(outcome, self._options, self._smoothness, stacklevel + 2)

    def _solve(self, b: Array, *, transposed: bool) -> tuple[Array, Outcome]:
        """Compute S^T (I + F) A^-1 b, or S^T A^-1 (I + F)^T b, as pixels."""
        with_data = self._find_data()
        if with_data is not None and transposed:
            planar.fill_transposed(self.grid, with_data, b)
        elif with_data is not None:
            b[:, ~with_data] = 0
        channels = len(b)
        sums = self._system.sums._replace(weighted=b, origin=[0.0] * channels)
        system = self._system._replace(sums=sums, unit=np.ones(channels))

        def pixels_of(solution: planar.Solution) -> Array:
            if with_data is not None and transposed:
                solution.x[:, ~with_data] = 0
            return solution.pixels(self.grid, None)

        solution = self._solver.solve(system, None, steps=0, scale=np.ones(channels))
        size = _rms(pixels_of(solution))
        tolerance = policy.PLANE_ADJOINT_TOLERANCE * self._options.tolerance
        for _ in range(policy.ADJOINT_ATTEMPTS):
            scale = np.where(size > 0, size, 1.0)
            solution = self._solver.solve(system, solution.x, tolerance=tolerance, scale=scale)
            pixels = pixels_of(solution)
            size = _rms(pixels)
            shrunk = (size > 0) & (size < policy.ADJOINT_TRUST * scale)
            if not solution.outcome.converged or not shrunk.any():
                break
        return pixels, solution.outcome

    def _find_data(self) -> NDArray[np.bool_] | None:
        """Return which vertices are connected to data; None: all."""
        if self._with_data is None and self._has_gaps:
            self._solver.solve(self._system, None, steps=0)
            self._set_data(self._solver)
        return self._with_data

    def _set_data(self, solver: planar.PlaneSolver) -> None:
        """Take over which vertices were connected to data in the last solve of a solver."""
        with_data = solver.vertices_with_data()
        self._has_gaps = not bool(with_data.all())
        self._with_data = with_data if self._has_gaps else None


def _rms(pixels: Array) -> Array:
    """Return the root mean square of each channel of (H, W, K)."""
    return np.asarray(np.sqrt(np.mean(np.square(pixels, dtype=np.float64), axis=(0, 1))))
