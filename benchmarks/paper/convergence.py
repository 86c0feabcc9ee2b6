"""The paper's Figure 3: the loss by step of conjugate gradients."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bilateral
from benchmarks.paper import figures
from benchmarks.paper.cells import Cell, Results, Setting, Values
from benchmarks.paper.pictures import per_photograph
from benchmarks.photos import Photo
from benchmarks.speed.cases import SIGMAS, SMOOTHNESS, Problem, problem
from benchmarks.speed.convergence import Case
from benchmarks.tables import table
from benchmarks.timing import clock
from bilateral.backends import cpu
from bilateral.numerics import policy, system

NAME = "convergence"
TITLE = "Convergence (Figure 3)"
DATA = "hires"
FIGURE = "convergence.svg"

Map = NDArray[np.float64]

# preconditioner and start
METHODS = {
    "Jacobi, flat start": ("jacobi", "flat"),
    "Jacobi, pyramid start": ("jacobi", "pyramid"),
    "pyramid, flat start": ("pyramid", "flat"),
    "pyramid, pyramid start": ("pyramid", "pyramid"),
    "multigrid, nested start": ("multigrid", "nested"),
}
PAPERS, OURS = "pyramid, pyramid start", "multigrid, nested start"
DENSE, SPARSE = "dense", "sparse"
SPARSE_CASE = Case(0.02, 128, easy=False)
STEPS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 25, 32, 40, 50, 64, 80, 100, 128, 160, 200)
SHOWN = (0, 1, 2, 5, 10, 25, 100, 200)
TIMED = 25
MOST = 32
"""Steps of multigrid."""


def cells(setting: Setting) -> Iterator[Cell]:
    return per_photograph(measure, setting)


def measure(photo: Photo, setting: Setting) -> dict[str, Any]:
    """Losses by method of both problems, 0 at the minimum and 1 at the worst start."""
    bilateral.set_num_threads(setting.threads[-1])
    task = problem(photo)
    grid = bilateral.BilateralGrid(task.reference, *[SIGMAS[0]] * 3)
    known = SPARSE_CASE.confidence(task.shape)
    return {
        "vertices": grid.n_vertices,
        DENSE: _losses(grid, task, task.confidence, SMOOTHNESS),
        SPARSE: _losses(grid, task, known, SPARSE_CASE.smoothness),
    }


def _losses(
    grid: bilateral.BilateralGrid, task: Problem, confidence: Any, smoothness: float
) -> dict[str, Any]:
    target = task.target[..., np.newaxis].astype(np.float64)
    seen = system.observe(grid, target, confidence.astype(np.float64), smoothness)
    assert seen is not None
    curves, seconds = {}, {}
    for name, (preconditioner, initial) in METHODS.items():
        curve = _curve_of_multigrid if preconditioner == "multigrid" else _curve
        curves[name] = curve(grid, seen, preconditioner, initial)
        seconds[name] = _seconds_per_step(grid, seen, preconditioner, initial)
    least = min(curve[-1] for curve in curves.values())
    worst = max(curve[0] for curve in curves.values())
    return {
        "losses": {
            name: [max(0.0, (loss - least) / (worst - least)) for loss in curve]
            for name, curve in curves.items()
        },
        "seconds_per_step": seconds,
    }


def _curve(
    grid: bilateral.BilateralGrid, seen: system.System, preconditioner: str, initial: str
) -> list[float]:
    """The loss of Eq. 5, less its constant, after each of `STEPS`."""
    y = cpu.start(grid._core, seen.weight, seen.weighted, initial, seen.smoothness)
    losses = [_loss(grid, seen, y)]

    def after(step: int, _: float) -> None:
        if step in STEPS:
            losses.append(_loss(grid, seen, y))

    _pcg(grid, seen, y, preconditioner, STEPS[-1], after)
    return losses


def _curve_of_multigrid(
    grid: bilateral.BilateralGrid, seen: system.System, preconditioner: str, initial: str
) -> list[float]:
    """The same up to `MOST`, each from a run of its own: in between, x is in another order."""
    start = cpu.start(grid._core, seen.weight, seen.weighted, initial, seen.smoothness)
    losses = [_loss(grid, seen, start)]
    for steps in STEPS[1:]:
        if steps <= MOST:
            y = start.copy()
            _pcg(grid, seen, y, preconditioner, steps, None)
            losses.append(_loss(grid, seen, y))
    return losses


def _pcg(
    grid: bilateral.BilateralGrid,
    seen: system.System,
    y: Map,
    preconditioner: str,
    steps: int,
    callback: Any,
) -> None:
    cpu.pcg(
        cpu.Solver(grid._core, preconditioner),
        seen.weight,
        seen.weighted,
        y,
        seen.scale,
        fill=True,
        smoothness=seen.smoothness,
        min_iterations=steps,
        max_iterations=steps,
        tolerance=-1.0,
        movement_fraction=0.0,
        step_noise=policy.STEP_NOISE,
        error_window=policy.ERROR_WINDOW,
        callback=callback,
    )


def _loss(grid: bilateral.BilateralGrid, seen: system.System, y: Map) -> float:
    # parts without data keep their values, whatever those cost
    y = y * cpu.with_data(grid._core, seen.weight)[:, np.newaxis]
    smooth = seen.smoothness * cpu.smoothness_product(grid._core, y, y)
    data = float(np.sum(seen.weight[:, np.newaxis] * y * y))
    return (smooth + data) / 2 - float(np.sum(seen.weighted * y))


def _seconds_per_step(
    grid: bilateral.BilateralGrid, seen: system.System, preconditioner: str, initial: str
) -> float:
    start = cpu.start(grid._core, seen.weight, seen.weighted, initial, seen.smoothness)
    few, many = (
        min(clock(_pcg, grid, seen, start.copy(), preconditioner, steps, None)[0] for _ in range(3))
        for steps in (1, TIMED + 1)
    )
    return (many - few) / TIMED


def summary(values: Values, _: Setting) -> Results:
    results: Results = {"photographs": list(values)}
    for kind in (DENSE, SPARSE):
        results[kind] = {}
        for name in METHODS:
            curves = [value[kind]["losses"][name] for value in values.values()]
            low, median, high = np.percentile(curves, [25, 50, 75], axis=0).tolist()
            seconds = [value[kind]["seconds_per_step"][name] for value in values.values()]
            results[kind][name] = {
                "steps": STEPS[: len(median)],
                "low": low,
                "median": median,
                "high": high,
                "ms_per_step": 1e3 * float(np.median(seconds)),
            }
    return results


def as_text(results: Results) -> str:
    count = len(results["photographs"])
    parts = [
        f"The loss after so many steps, 0 at its minimum and 1 at the worst start: median over "
        f"{count} photograph{'s' if count > 1 else ''}; the figure has the 25th to 75th "
        f"percentiles. Sigma {SIGMAS[0]}. The paper shows its figure without numbers.\n\n"
        f"![Loss by step]({FIGURE})"
    ]
    known = f"{SPARSE_CASE.known:.0%}"
    titles = {
        DENSE: f"Dense: confidence 1 at 1/16 of the pixels and 0.01 elsewhere, smoothness "
        f"{SMOOTHNESS:g}",
        SPARSE: f"Sparse: {known} of the pixels known, smoothness {SPARSE_CASE.smoothness:g}",
    }
    for kind, title in titles.items():
        rows = [
            [
                name,
                *(
                    f"{row['median'][row['steps'].index(step)]:.1e}" if step in row["steps"] else ""
                    for step in SHOWN
                ),
                f"{row['ms_per_step']:.2f}",
            ]
            for name, row in results[kind].items()
        ]
        header = ("preconditioner, start", *("start" if s == 0 else str(s) for s in SHOWN))
        parts.append(f"### {title}\n\n{table((*header, 'ms per step'), rows)}")
    return "\n\n".join([*parts, _behind(results)])


def _behind(results: Results) -> str:
    def reached(kind: str, name: str, step: int) -> float:
        row = results[kind][name]
        return float(row["median"][row["steps"].index(step)])

    dear = results[DENSE][OURS]["ms_per_step"] / results[DENSE][PAPERS]["ms_per_step"]
    lines = [
        "**Like the paper**: the pyramid start and the pyramid preconditioner each help, and "
        f"together most: after 5 steps the loss is {reached(DENSE, PAPERS, 5):.1e} on dense data, "
        f"and {reached(DENSE, 'Jacobi, flat start', 5):.1e} with Jacobi and a flat start.",
        f"**Behind**: a step of multigrid costs {dear:.1f} steps of the pyramid's, and its "
        "hierarchy has to be built once per grid; on dense data, where few steps do, the pyramid "
        'is the faster one, and `preconditioner="multigrid"` chooses it by itself. On sparse data '
        f"the paper's 25 steps leave {reached(SPARSE, PAPERS, 25):.0e} of the loss, multigrid's 5 "
        f"leave {reached(SPARSE, OURS, 5):.0e}.",
    ]
    return "\n\n".join(lines)


def draw(_: Values, results: Results, folder: Path) -> None:
    figures.convergence(results, (DENSE, SPARSE), list(METHODS), folder / FIGURE)
