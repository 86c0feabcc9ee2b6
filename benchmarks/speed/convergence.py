"""Time to a true RMS error of 0.1 % of the target's range, whatever a solver itself estimates."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

import bilateral
from benchmarks.common.machine import Others
from benchmarks.common.timing import in_turns, stopwatch
from benchmarks.speed.cases import Map, Problem

ERROR = 1e-3
MAX_ITERATIONS = 1000
SOLVERS: dict[str, dict[str, str]] = {
    "paper": {"preconditioner": "pyramid", "initial": "pyramid"},
    "default": {},
}
SPARSE_AT_LEAST = 4.0
EASY_AT_LEAST = 1 / 1.1


class Case(NamedTuple):
    """A fraction of known pixels, whose confidence is 1."""

    known: float
    smoothness: float
    easy: bool

    def confidence(self, shape: tuple[int, int]) -> Map:
        draw = np.random.default_rng(0).uniform(size=shape)
        confidence: Map = (draw < self.known).astype(np.float32)
        return confidence


CASES = (
    Case(0.001, 128, easy=False),
    Case(0.01, 128, easy=False),
    Case(0.02, 128, easy=False),
    Case(1, 0.25, easy=True),
    Case(1, 1, easy=True),
)


def convergence(problem: Problem, sigma: float, threads: int, repeats: int) -> list[dict[str, Any]]:
    """Time the solvers in turns on each of `CASES`.

    Each solve gets a new grid, so that its time includes the multigrid hierarchy.
    """
    bilateral.set_num_threads(threads)
    return [_race(problem, sigma, case, repeats) for case in CASES]


def _race(problem: Problem, sigma: float, case: Case, repeats: int) -> dict[str, Any]:
    confidence = case.confidence(problem.shape)
    reference = (problem.reference, sigma, sigma, sigma)
    grid = bilateral.BilateralGrid(*reference)
    exact = bilateral.BilateralSolver(grid, case.smoothness, tolerance=1e-9).solve(
        problem.target.astype(np.float64), confidence
    )
    spread = float(np.ptp(problem.target[confidence > 0]))
    steps = {
        name: _steps(problem, grid, case, options, exact, spread)
        for name, options in SOLVERS.items()
    }
    others = Others()

    def solve(name: str) -> float:
        new_grid = bilateral.BilateralGrid(*reference)
        return stopwatch(_solve, problem, new_grid, case, SOLVERS[name], steps[name])()

    timings = in_turns({name: partial(solve, name) for name in SOLVERS}, repeats)
    return {
        "known": case.known,
        "smoothness": case.smoothness,
        "easy": case.easy,
        "vertices": grid.n_vertices,
        "steps": steps,
        "seconds": timings,
        "ratio": timings["paper"].median / timings["default"].median,
        "other_work": others.cores(),
    }


def _solve(
    problem: Problem, grid: bilateral.BilateralGrid, case: Case, options: dict[str, str], steps: int
) -> Map:
    # float32 does not reach this tolerance: the number of steps decides.
    solver = bilateral.BilateralSolver(
        grid, case.smoothness, tolerance=1e-5, max_iterations=steps, **options
    )
    result: Map = solver.solve(
        problem.target, case.confidence(problem.shape), callback=lambda step, _: step >= steps
    )
    return result


def _steps(
    problem: Problem,
    grid: bilateral.BilateralGrid,
    case: Case,
    options: dict[str, str],
    exact: Map,
    spread: float,
) -> int:
    """Find the least number of steps with which the true error is small enough."""

    def enough(steps: int) -> bool:
        e = _solve(problem, grid, case, options, steps) - exact
        return float(np.sqrt(np.mean(e**2))) <= ERROR * spread

    high = 1
    while high < MAX_ITERATIONS and not enough(high):
        high *= 2
    low = high // 2  # not enough steps
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
