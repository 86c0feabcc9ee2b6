"""Time to a true RMS error of 0.1 % of the target's range, whatever a solver itself estimates."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import bilateral
from benchmarks.common.machine import Others
from benchmarks.common.timing import clock, in_turns
from benchmarks.speed.cases import Map, Problem

ERROR, MAX_ITERATIONS = 1e-3, 1000
SOLVERS = {"paper": {"preconditioner": "pyramid", "initial": "pyramid"}, "default": {}}
SPARSE_AT_LEAST, EASY_AT_LEAST = 4.0, 1 / 1.1


class Case(NamedTuple):
    """A fraction of known pixels, whose confidence is 1."""

    known: float
    smoothness: float
    easy: bool

    def confidence(self, shape: tuple[int, int]) -> Map:
        draw = np.random.default_rng(0).uniform(size=shape)
        return (draw < self.known).astype(np.float32)


CASES = (
    *(Case(known, 128, easy=False) for known in (0.001, 0.01, 0.02)),
    *(Case(1, smoothness, easy=True) for smoothness in (0.25, 1)),
)


def convergence(problem: Problem, sigma: float, threads: int, repeats: int) -> list[dict[str, Any]]:
    """Time the solvers in turns on each of `CASES`, each on a new grid: with its hierarchy."""
    bilateral.set_num_threads(threads)
    return [_race(problem, sigma, case, repeats) for case in CASES]


def _race(problem: Problem, sigma: float, case: Case, repeats: int) -> dict[str, Any]:
    confidence = case.confidence(problem.shape)
    grid = bilateral.BilateralGrid(problem.reference, sigma, sigma, sigma)
    exact = bilateral.BilateralSolver(grid, case.smoothness, tolerance=1e-9)
    truth = exact.solve(problem.target.astype(np.float64), confidence)
    largest = ERROR * float(np.ptp(problem.target[confidence > 0]))

    def solve(grid: bilateral.BilateralGrid, name: str, steps: int) -> Map:
        # float32 does not reach this tolerance: the number of steps decides.
        options = {"tolerance": 1e-5, "max_iterations": steps, **SOLVERS[name]}
        solver = bilateral.BilateralSolver(grid, case.smoothness, **options)
        return solver.solve(problem.target, confidence, callback=lambda step, _: step >= steps)

    def enough(name: str, steps: int) -> bool:
        return float(np.sqrt(np.mean((solve(grid, name, steps) - truth) ** 2))) <= largest

    def seconds(name: str) -> float:
        new_grid = bilateral.BilateralGrid(problem.reference, sigma, sigma, sigma)
        return clock(solve, new_grid, name, steps[name])[0]

    steps = {name: _least(partial(enough, name)) for name in SOLVERS}
    others = Others()
    timings = in_turns({name: partial(seconds, name) for name in SOLVERS}, repeats)
    return {
        **case._asdict(),
        **{"vertices": grid.n_vertices, "steps": steps, "seconds": timings},
        "ratio": timings["paper"].median / timings["default"].median,
        "other_work": others.cores(),
    }


def _least(enough: Callable[[int], bool]) -> int:
    high = 1
    while high < MAX_ITERATIONS and not enough(high):
        high *= 2
    low = high // 2  # not enough steps
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
