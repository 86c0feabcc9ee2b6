"""A solve that keeps its matrix, for derivatives (section 3 of the paper).

A = lambda L + diag(S c) is the matrix of Eq. 6. S is a partition of the pixels, so diag(S c) is
S diag(c) S^T, and everything that a derivative of the solution needs is a linear map of pixels:

- M = S^T A^-1 S, symmetric. With data everywhere the solution is M (c t).
- U = S^T H S, symmetric, H being the push-pull over the pyramid. A part of the grid without data
  has the value U (c t) / U c, and M is 0 there.
"""

import threading
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral.backends import cpu
from bilateral.grid import BilateralGrid
from bilateral.numerics import system
from bilateral.solver import BilateralSolver

Array = NDArray[Any]

_OF_RESULT = {"multigrid": 12.0, "pyramid": 25.0, "jacobi": 25.0}
"""M g may have an estimated RMS error of this many tolerances of its own RMS. The estimate is too
high, most of all that for the paper's preconditioners: at the tolerance 1e-3 the error is 0.1 to
0.7 % of the norm."""
_OF_SOLUTION = {"multigrid": 0.7, "pyramid": 0.9, "jacobi": 0.9}
"""A confidence's gradient holds the difference of target and solution, which magnifies the
solution's error. So for it a solution with a larger estimated error than this many tolerances is
improved first, from where it was."""
_EXACT = 0.1
"""A forward solve whose confidence needs a gradient goes on to this part of the tolerance: that is
cheaper than to take it up again."""
_TRUST, _ATTEMPTS = 0.5, 4
"""A result of less than this part of its start's size is solved further, since its error was judged
by the start's size; so many times at most."""


class Wanted(NamedTuple):
    """Where gradients go; None: not wanted."""

    target: Array | None
    """(H, W, K)"""
    confidence: Array | None
    """(H, W)"""
    smoothness: bool


class Inverse:
    """The matrix of one solve: grid, hierarchy, memory and S c, for as many right-hand sides.

    Threads may share it; they take turns.
    """

    def __init__(self, solver: BilateralSolver, problem: system.System, y: Array) -> None:
        self.grid: BilateralGrid = solver.grid
        self._solver = solver
        self._problem = problem
        self._y = y  # of the problem, where derivatives are taken
        self._error = np.inf  # of y, estimated, relative to the range of the known values
        self._lock = threading.RLock()
        self._found: Array | None = None
        self.may_have_gaps = bool((problem.weight == 0).any())
        """Whether parts of the grid may have no data; where it was looked up, whether they do."""
        self._engine = system.Solver(solver.grid, solver._options)

    @classmethod
    def of(
        cls, solver: BilateralSolver, target: Array, confidence: Array | None, solution: Array
    ) -> "Inverse":
        """The same from inputs and output of a solve: pixels (H, W, K), confidence (H, W)."""
        grid = solver.grid
        wanted, weights = solver._check(grid, target, confidence, None)
        problem = solver._observe(grid, wanted.values, weights)
        means = system.vertex_means(grid, np.ascontiguousarray(solution, wanted.values.dtype))
        return cls(solver, problem, system.start_at(problem, means))

    def apply(self, g: Array, out: Array) -> cpu.Outcome:
        """M g for pixels (H, W, K), into `out`."""
        x, outcome = self._solve(cpu.splat(self.grid._core, g, self.grid.shape))
        _slice(self.grid, x, out)
        return outcome

    def surroundings(self, g: Array, out: Array, *, transposed: bool) -> None:
        """U g in the parts without data, from g in all others, and 0 elsewhere, into `out`.

        Transposed: from the parts without data into all others.
        """
        gaps = self._gaps()
        if gaps is None:
            out[...] = 0
            return
        v = cpu.splat(self.grid._core, g, self.grid.shape)
        _slice(self.grid, self._spread(v, gaps if transposed else ~gaps), out)

    def gradients(
        self, h: Array, target: Array, confidence: Array | None, wanted: Wanted
    ) -> tuple[float, cpu.Outcome]:
        """The gradients of a loss from its gradient h in the solution, into `wanted`.

        As `bilateral.torch.derivatives` derives them, but with all that happens at pixels in one
        pass. Returns the gradient of the smoothness, and how the solve went.
        """
        grid, problem, gaps = self.grid._core, self._problem, self._gaps()
        h_v = cpu.splat(grid, h, self.grid.shape)
        x, outcome = self._solve(h_v)
        y = self._solution(exact=wanted.confidence is not None).astype(h.dtype, copy=False)
        z, extra = x, None
        if gaps is not None and (wanted.target is not None or wanted.confidence is not None):
            q = cpu.push_pull(grid, problem.weight).astype(h.dtype, copy=False)
            a = h_v * (gaps / (q * h.dtype.type(problem.confidence_unit)))[:, np.newaxis]
            of_y = np.einsum("vk,vk->v", a, y)
            spread = self._spread(np.column_stack([a, of_y]), gaps)
            pulled = np.ascontiguousarray(spread[:, :-1])
            z, extra = x + pulled, np.einsum("vk,vk->v", pulled, y) - spread[:, -1]
        if wanted.target is not None or wanted.confidence is not None:
            cpu.slice_gradients(
                grid, z, y, extra, target, confidence, wanted.target, wanted.confidence
            )
        return -cpu.smoothness_product(grid, x, y) if wanted.smoothness else 0.0, outcome

    def warn(self, outcome: cpu.Outcome, stacklevel: int) -> None:
        """Warn if a solve ended before its tolerance was reached; level 1 is the caller."""
        self._solver._warn(outcome, stacklevel + 2)

    def _solution(self, *, exact: bool) -> Array:
        with self._lock:
            tolerance = _OF_SOLUTION[self._kind] * self._solver.tolerance if exact else np.inf
            if self._error > tolerance:
                y = self._y.copy()
                self._engine.solve(self._problem, y, warm=True, fill=False, tolerance=tolerance)
                self._y, self._error = y, 0.0
            return system.values(self._problem, self._y)

    @property
    def _kind(self) -> str:
        return system.preconditioner(self.grid, self._problem, self._solver._options)

    def _gaps(self) -> Array | None:
        """Which vertices are connected to no data; None: none."""
        if not self.may_have_gaps:
            return None
        if self._found is None:
            self._set_gaps(~cpu.with_data(self.grid._core, self._problem.weight))
        return self._found

    def _set_gaps(self, gaps: Array) -> None:
        self.may_have_gaps = bool(gaps.any())
        self._found = gaps

    def _spread(self, v: Array, source: Array) -> Array:
        """H v from vertices of one kind, in and out of parts without data, to the other."""
        v = cpu.push_pull(self.grid._core, v * source[:, np.newaxis])
        v *= ~source[:, np.newaxis]
        return v

    def _solve(self, b: Array) -> tuple[Array, cpu.Outcome]:
        """A^-1 b at the vertices, 0 in parts without data."""
        problem, gaps = self._problem, self._gaps()
        # Gradients may be of any size. A power of 2 costs no rounding.
        unit = 2.0 ** np.frexp(max(b.max(), -b.min(), np.finfo(b.dtype).tiny))[1]
        scaled = (b * b.dtype.type(1 / unit)).astype(problem.weight.dtype, copy=False)
        if gaps is not None:
            scaled *= ~gaps[:, np.newaxis]
        problem = problem._replace(weighted=scaled)
        x = system.start(self.grid, problem, self._solver._options)
        if gaps is not None:
            x *= ~gaps[:, np.newaxis]
        size = cpu.rms(self.grid._core, x)
        with self._lock:
            for attempt in range(_ATTEMPTS):
                scale = np.where(size > 0, size, 1.0)
                outcome = self._engine.solve(
                    problem._replace(scale=scale),
                    x,
                    warm=attempt > 0,
                    fill=False,
                    tolerance=_OF_RESULT[self._kind] * self._solver.tolerance,
                )
                size = cpu.rms(self.grid._core, x)
                if not outcome.converged or not ((size > 0) & (size < _TRUST * scale)).any():
                    break
        x *= x.dtype.type(unit / problem.confidence_unit)
        return x.astype(b.dtype, copy=False), outcome


def solve(
    solver: BilateralSolver,
    target: Array,
    confidence: Array | None,
    out: Array,
    *,
    exact: bool = False,
) -> tuple[Inverse, cpu.Outcome]:
    """Solve for a target (H, W, K) and keep what derivatives need; the solution goes to `out`.

    `exact`: as the gradient of a confidence needs it.
    """
    grid = solver.grid
    wanted, weights = solver._check(grid, target, confidence, None)
    problem = solver._observe(grid, wanted.values, weights)
    y = solver._start(grid, problem, None)
    kept = Inverse(solver, problem, y)
    tolerance = _EXACT * solver.tolerance if exact else None
    outcome = kept._engine.solve(problem, y, tolerance=tolerance)
    if outcome.residuals:
        kept._error = outcome.residuals[-1]
        reached = outcome.converged or kept._error <= solver.tolerance
        outcome = outcome._replace(converged=reached)
    if kept.may_have_gaps:
        kept._set_gaps(~kept._engine.with_data())
    _slice(grid, system.values(problem, y), out)
    return kept, outcome


def _slice(grid: BilateralGrid, vertices: Array, out: Array) -> None:
    if vertices.dtype == out.dtype:
        cpu.slice_(grid._core, vertices, grid.shape, out)
    else:
        out[...] = cpu.slice_(grid._core, vertices, grid.shape)
