"""A solve that keeps its matrix, for derivatives (section 3 of the paper).

A = lambda L + diag(S c) is the matrix of Eq. 6. S is a partition of the pixels, so diag(S c) is
S diag(c) S^T, and everything that a derivative of the solution needs is a linear map of pixels:

- M = S^T A^-1 S, symmetric. With data everywhere the solution is M (c t).
- U = S^T H S, symmetric, H being the push-pull over the pyramid. A part of the grid without data
  has the value U (c t) / U c, and M is 0 there.
"""

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral import system
from bilateral.grid import BilateralGrid
from bilateral.ops import cpu
from bilateral.solver import BilateralSolver

Array = NDArray[Any]

_TRUST, _ATTEMPTS = 0.5, 4
"""A solution of less than this part of its start's size is solved further, since its error was
judged by the start's size; so many times at most."""


class Inverse:
    """The matrix of one solve: grid, hierarchy, memory and S c, for as many right-hand sides.

    Threads may share it; they take turns.
    """

    def __init__(self, solver: BilateralSolver, problem: system.System) -> None:
        self.grid: BilateralGrid = solver.grid
        self._solver = solver
        self._problem = problem
        self._engine = system.Solver(solver.grid, solver._options)
        self._lock = threading.Lock()
        self._found: tuple[Array | None] | None = None

    @classmethod
    def of(
        cls, solver: BilateralSolver, confidence: Array | None, dtype: np.dtype[Any]
    ) -> "Inverse":
        """Without a target: for a confidence (H, W), to compute in `dtype`."""
        nothing = np.zeros((*solver.grid.shape, 1), dtype)
        wanted, weights = solver._check(solver.grid, nothing, confidence, None)
        return cls(solver, solver._observe(solver.grid, wanted.values, weights))

    @property
    def may_have_gaps(self) -> bool:
        """Whether a vertex has no data, without which no part of the grid is without."""
        return bool((self._problem.weight == 0).any())

    def apply(self, g: Array, out: Array) -> cpu.Outcome:
        """M g for pixels (H, W, K), into `out`.

        The RMS error of each channel is the solver's tolerance times the RMS of its result.
        """
        with self._lock:
            x, outcome = self._solve(cpu.splat(self.grid._core, g))
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
        v = cpu.splat(self.grid._core, g)
        v[~gaps if transposed else gaps] = 0
        v = cpu.push_pull(self.grid._core, v)
        v[gaps if transposed else ~gaps] = 0
        _slice(self.grid, v, out)

    def _gaps(self) -> Array | None:
        """Which vertices are connected to no data; None: none."""
        if self._found is None:
            gaps = None
            if self.may_have_gaps:
                gaps = ~cpu.with_data(self.grid._core, self._problem.weight)
            self._found = (gaps if gaps is not None and gaps.any() else None,)
        return self._found[0]

    def warn(self, outcome: cpu.Outcome, stacklevel: int) -> None:
        """Warn if a solve ended before its tolerance was reached."""
        self._solver._warn(outcome, stacklevel + 1)

    def _solve(self, b: Array) -> tuple[Array, cpu.Outcome]:
        """A^-1 b at the vertices, 0 in parts without data."""
        problem, gaps = self._problem, self._gaps()
        if gaps is not None:
            b[gaps] = 0
        # Gradients may be of any size. A power of 2 costs no rounding.
        unit = np.exp2(np.round(np.log2(np.maximum(np.abs(b).max(axis=0), np.finfo(b.dtype).tiny))))
        scaled = (b / unit).astype(problem.weight.dtype)
        problem = problem._replace(weighted=scaled)
        x = system.start(self.grid, problem, self._solver._options)
        if gaps is not None:
            x[gaps] = 0
        size = cpu.rms(self.grid._core, x)
        for attempt in range(_ATTEMPTS):
            scale = np.where(size > 0, size, 1.0)
            outcome = self._engine.solve(
                problem._replace(scale=scale), x, warm=attempt > 0, fill=False
            )
            size = cpu.rms(self.grid._core, x)
            if not outcome.converged or not ((size > 0) & (size < _TRUST * scale)).any():
                break
        return x * (unit / problem.confidence_unit).astype(x.dtype), outcome


def solve(
    solver: BilateralSolver, target: Array, confidence: Array | None, out: Array
) -> tuple[Inverse, cpu.Outcome]:
    """Solve for a target (H, W, K) and keep what derivatives need; the solution goes to `out`."""
    grid = solver.grid
    wanted, weights = solver._check(grid, target, confidence, None)
    problem = solver._observe(grid, wanted.values, weights)
    y = solver._start(grid, problem, None)
    kept = Inverse(solver, problem)
    outcome = kept._engine.solve(problem, y)
    _slice(grid, system.values(problem, y), out)
    return kept, outcome


def _slice(grid: BilateralGrid, vertices: Array, out: Array) -> None:
    if vertices.dtype == out.dtype:
        cpu.slice_(grid._core, vertices, grid.shape, out)
    else:
        out[...] = cpu.slice_(grid._core, vertices, grid.shape)
