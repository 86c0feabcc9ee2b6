"""Solve and keep the matrix, to apply derivatives of the solution (section 3 of the paper).

A = lambda L + diag(S c) is the matrix of Eq. 6. S is a partition of the pixels, so diag(S c) is
S diag(c) S^T, and every derivative of the solution is a product of two linear maps of pixels:

- M = S^T A^-1 S, symmetric. With data everywhere the solution is M (c t).
- U = S^T H S, symmetric, where H is the push-pull over the pyramid. A part of the grid without
  data has the value U (c t) / U c, and M is 0 there.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral.backends import cpu
from bilateral.grid import BilateralGrid, core_of
from bilateral.numerics import pcg, policy, system, warm_start
from bilateral.numerics.options import SolveOptions
from bilateral.numerics.pcg import Outcome
from bilateral.numerics.problem import Problem, check_inputs, set_up, start

Array = NDArray[Any]


class Outputs(NamedTuple):
    """Arrays that receive gradients; None: not needed."""

    target: Array | None
    """(H, W, K)"""
    confidence: Array | None
    """(H, W)"""
    smoothness: bool
    """Whether to return the gradient of the smoothness."""


class Adjoint:
    """The matrix of one solve, ready for any number of right-hand sides.

    It keeps the grid, the multigrid hierarchy, the memory of PCG, and S c. Threads may share it;
    they take turns.
    """

    def __init__(
        self,
        grid: BilateralGrid,
        smoothness: float,
        options: SolveOptions,
        problem: Problem,
        y: Array,
    ) -> None:
        self.grid = grid
        self._smoothness = smoothness
        self._options = options
        self._system, self._preconditioner = problem
        self._y = y
        """Solution at which derivatives are taken."""
        self._error = np.inf
        """Estimated error of `_y`, relative to the range of the known values."""
        self._lock = threading.RLock()
        self._gaps: Array | None = None
        """Which vertices are connected to no data; None: not computed yet, or none."""
        self.may_have_gaps = bool((self._system.weight == 0).any())
        """Whether parts of the grid may have no data; exact once `_gaps` is computed."""
        self._solver = pcg.SystemSolver(grid, options)

    @classmethod
    def of_solution(
        cls,
        grid: BilateralGrid,
        smoothness: float,
        options: SolveOptions,
        target: Array,
        confidence: Array | None,
        solution: Array,
    ) -> Adjoint:
        """Rebuild the adjoint from inputs and output of a solve: (H, W, K), (H, W), (H, W, K)."""
        checked, weights = check_inputs(grid, target, confidence, options)
        problem = set_up(grid, checked.values, weights, smoothness, options)
        pixels = np.ascontiguousarray(solution, checked.values.dtype)
        y = warm_start.to_start(problem.system, warm_start.vertex_means(grid, pixels))
        return cls(grid, smoothness, options, problem, y)

    @classmethod
    def solve(
        cls,
        grid: BilateralGrid,
        smoothness: float,
        options: SolveOptions,
        target: Array,
        confidence: Array | None,
        out: Array,
    ) -> tuple[Adjoint, Outcome]:
        """Solve for a target (H, W, K) into `out`, and keep what derivatives need."""
        checked, weights = check_inputs(grid, target, confidence, options)
        problem = set_up(grid, checked.values, weights, smoothness, options)
        y = start(grid, problem, options)
        adjoint = cls(grid, smoothness, options, problem, y)
        outcome = adjoint._solver.solve(problem.system, y, problem.preconditioner)
        if outcome.residuals:
            adjoint._error = outcome.residuals[-1]
            reached = outcome.converged or adjoint._error <= options.tolerance
            outcome = outcome._replace(converged=reached and not outcome.diverged)
        if adjoint.may_have_gaps:
            adjoint._set_gaps(~adjoint._solver.vertices_with_data())
        x = system.solution(problem.system, y, problem.system.bounds)
        system.slice_vertices(grid, x, out)
        return adjoint, outcome

    def apply(self, g: Array, out: Array) -> Outcome:
        """Compute M g for pixels (H, W, K), into `out`."""
        x, outcome = self._solve(cpu.splat(core_of(self.grid), g, self.grid.shape))
        system.slice_vertices(self.grid, x, out)
        return outcome

    def surroundings(self, g: Array, out: Array, *, transposed: bool) -> None:
        """Compute U g in the parts without data, from g in all other parts, into `out`.

        The result is 0 elsewhere. Transposed: from the parts without data into all others.
        """
        gaps = self._find_gaps()
        if gaps is None:
            out[...] = 0
            return
        v = cpu.splat(core_of(self.grid), g, self.grid.shape)
        system.slice_vertices(self.grid, self._spread(v, gaps if transposed else ~gaps), out)

    def gradients(
        self, h: Array, target: Array, confidence: Array | None, outputs: Outputs
    ) -> tuple[float, Outcome]:
        """Compute the gradients of a loss from its gradient `h` in the solution, into `outputs`.

        `bilateral.torch.autograd` derives them; here all work at pixels takes one pass. Returns the
        gradient of the smoothness, and the outcome of the solve.
        """
        grid, gaps = core_of(self.grid), self._find_gaps()
        h_v = cpu.splat(grid, h, self.grid.shape)
        x, outcome = self._solve(h_v)
        y = self._solution(exact=outputs.confidence is not None).astype(h.dtype, copy=False)
        z, extra = x, None
        pixels_needed = outputs.target is not None or outputs.confidence is not None
        if gaps is not None and pixels_needed:
            q = cpu.push_pull(grid, self._system.weight).astype(h.dtype, copy=False)
            a = h_v * (gaps / (q * h.dtype.type(self._system.confidence_unit)))[:, np.newaxis]
            a_y = np.einsum("vk,vk->v", a, y)
            spread = self._spread(np.column_stack([a, a_y]), gaps)
            pulled = np.ascontiguousarray(spread[:, :-1])
            z, extra = x + pulled, np.einsum("vk,vk->v", pulled, y) - spread[:, -1]
        if pixels_needed:
            cpu.slice_gradients(
                grid, z, y, extra, target, confidence, outputs.target, outputs.confidence
            )
        return -cpu.smoothness_product(grid, x, y) if outputs.smoothness else 0.0, outcome

    def warn(self, outcome: Outcome, stacklevel: int) -> None:
        """Warn if a solve ended before it reached its tolerance; level 1 is the caller."""
        pcg.warn_if_not_converged(outcome, self._options, self._smoothness, stacklevel + 2)

    def _solution(self, *, exact: bool) -> Array:
        """Return the solution; improve it first if it is not exact enough."""
        with self._lock:
            tolerance = np.inf
            if exact:
                factor = policy.SOLUTION_TOLERANCE[self._preconditioner]
                tolerance = factor * self._options.tolerance
            if self._error > tolerance:
                y = self._y.copy()
                self._solver.solve(
                    self._system,
                    y,
                    self._preconditioner,
                    warm=True,
                    fill=False,
                    tolerance=tolerance,
                )
                self._y, self._error = y, 0.0
            return system.values(self._system, self._y)

    def _find_gaps(self) -> Array | None:
        """Return which vertices are connected to no data; None: none."""
        if not self.may_have_gaps:
            return None
        if self._gaps is None:
            self._set_gaps(~cpu.with_data(core_of(self.grid), self._system.weight))
        return self._gaps

    def _set_gaps(self, gaps: Array) -> None:
        self.may_have_gaps = bool(gaps.any())
        self._gaps = gaps

    def _spread(self, v: Array, source: Array) -> Array:
        """Compute H v from the vertices in `source` to all others."""
        v = cpu.push_pull(core_of(self.grid), v * source[:, np.newaxis])
        v *= ~source[:, np.newaxis]
        return v

    def _solve(self, b: Array) -> tuple[Array, Outcome]:
        """Compute A^-1 b at the vertices, 0 in parts without data."""
        core, gaps = core_of(self.grid), self._find_gaps()
        # Gradients may have any magnitude. Scaling by a power of 2 costs no rounding.
        unit = 2.0 ** np.frexp(max(b.max(), -b.min(), np.finfo(b.dtype).tiny))[1]
        scaled = (b * b.dtype.type(1 / unit)).astype(self._system.weight.dtype, copy=False)
        if gaps is not None:
            scaled *= ~gaps[:, np.newaxis]
        problem = self._system._replace(weighted=scaled)
        x = pcg.start(self.grid, problem, self._options, self._preconditioner)
        if gaps is not None:
            x *= ~gaps[:, np.newaxis]
        size = cpu.rms(core, x)
        tolerance = policy.ADJOINT_TOLERANCE[self._preconditioner] * self._options.tolerance
        with self._lock:
            for attempt in range(policy.ADJOINT_ATTEMPTS):
                scale = np.where(size > 0, size, 1.0)
                outcome = self._solver.solve(
                    problem._replace(scale=scale),
                    x,
                    self._preconditioner,
                    warm=attempt > 0,
                    fill=False,
                    tolerance=tolerance,
                )
                size = cpu.rms(core, x)
                shrunk = (size > 0) & (size < policy.ADJOINT_TRUST * scale)
                if not outcome.converged or not shrunk.any():
                    break
        x *= x.dtype.type(unit / problem.confidence_unit)
        return x.astype(b.dtype, copy=False), outcome
