"""Measure the loss by step of conjugate gradients: the paper's Figure 3."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bilateral
from benchmarks.common import figures
from benchmarks.common.cells import Cell, Results, Setting, Values, per_photograph
from benchmarks.common.photos import Photo
from benchmarks.common.tables import page, plural, table
from benchmarks.common.timing import clock
from benchmarks.speed.cases import SIGMAS, SMOOTHNESS, pcg, problem
from benchmarks.speed.convergence import Case
from bilateral.backends import cpu
from bilateral.grid import core_of
from bilateral.numerics import system

NAME, TITLE, DATA = "convergence", "Convergence (Figure 3)", "hires"
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
TIMED, MULTIGRID_STEPS = 25, 32


def cells(setting: Setting) -> Iterator[Cell]:
    return per_photograph(measure_photograph, setting)


def measure_photograph(photo: Photo, setting: Setting) -> dict[str, Any]:
    """Losses of both problems by method, 0 at the minimum and 1 at the worst start."""
    bilateral.set_num_threads(setting.threads[-1])
    task = problem(photo)
    grid = bilateral.BilateralGrid(task.reference, *[SIGMAS[0]] * 3)
    target = task.target[..., np.newaxis].astype(np.float64)
    confidences = {DENSE: task.confidence, SPARSE: SPARSE_CASE.confidence(task.shape)}
    value: dict[str, Any] = {"vertices": grid.n_vertices}
    for kind, smoothness in ((DENSE, SMOOTHNESS), (SPARSE, SPARSE_CASE.smoothness)):
        seen = system.observe(grid, target, confidences[kind].astype(np.float64), smoothness)
        value[kind] = _losses(core_of(grid), seen)
    return value


def _losses(core: cpu.Grid, seen: system.System) -> dict[str, Any]:
    curves, seconds = {}, {}
    for name, (preconditioner, initial) in METHODS.items():
        start = cpu.start(core, seen.weight, seen.weighted, initial, seen.smoothness)
        curves[name] = _curve(core, seen, preconditioner, start)
        few, many = (
            min(clock(_pcg, core, seen, preconditioner, start, steps, None)[0] for _ in range(3))
            for steps in (1, TIMED + 1)
        )
        seconds[name] = (many - few) / TIMED
    least = min(curve[-1] for curve in curves.values())
    worst = max(curve[0] for curve in curves.values())
    losses = {
        name: [max(0.0, (loss - least) / (worst - least)) for loss in curve]
        for name, curve in curves.items()
    }
    return {"losses": losses, "seconds_per_step": seconds}


def _curve(core: cpu.Grid, seen: system.System, preconditioner: str, start: Map) -> list[float]:
    """The loss after each of `STEPS`."""
    losses = [_loss(core, seen, start)]
    if preconditioner == "multigrid":  # between steps, x is in another order: a run per point
        runs = [steps for steps in STEPS[1:] if steps <= MULTIGRID_STEPS]
        ends = [_pcg(core, seen, preconditioner, start, steps, None) for steps in runs]
        return losses + [_loss(core, seen, y) for y in ends]

    def after(y: Map, step: int) -> None:
        if step in STEPS:
            losses.append(_loss(core, seen, y))

    _pcg(core, seen, preconditioner, start, STEPS[-1], after)
    return losses


def _pcg(
    core: cpu.Grid, seen: system.System, kind: str, start: Map, steps: int, after: Any = None
) -> Map:
    y = start.copy()
    data = seen.weight, seen.weighted, y, seen.scale, seen.smoothness
    pcg(core, kind, data, steps, after and (lambda step, _: after(y, step)))
    return y


def _loss(core: cpu.Grid, seen: system.System, y: Map) -> float:
    # parts without data keep their values: their smoothness does not count
    y = y * cpu.with_data(core, seen.weight)[:, np.newaxis]
    smooth = seen.smoothness * cpu.smoothness_product(core, y, y)
    data = float(np.sum(seen.weight[:, np.newaxis] * y * y))
    return (smooth + data) / 2 - float(np.sum(seen.weighted * y))


def summary(values: Values, _: Setting) -> Results:
    results: Results = {"photographs": list(values), DENSE: {}, SPARSE: {}}
    for kind in (DENSE, SPARSE):
        for name in METHODS:
            curves = [value[kind]["losses"][name] for value in values.values()]
            quartiles = np.percentile(curves, [25, 50, 75], axis=0).tolist()
            seconds = [value[kind]["seconds_per_step"][name] for value in values.values()]
            results[kind][name] = {
                "steps": STEPS[: len(curves[0])],
                **dict(zip(("low", "median", "high"), quartiles, strict=True)),
                "ms_per_step": 1e3 * float(np.median(seconds)),
            }
    return results


def as_text(results: Results) -> str:
    dense = f"Dense: confidence 1 at 1/16 of the pixels, 0.01 elsewhere, smoothness {SMOOTHNESS:g}"
    known, smoothness = SPARSE_CASE.known, SPARSE_CASE.smoothness
    sparse = f"Sparse: {known:.0%} of the pixels known, smoothness {smoothness:g}"
    columns = [f"{'start' if s == 0 else s} | {{at[{s}]:.1e}}" for s in SHOWN]
    columns = ["preconditioner, start | {name}", *columns, "ms per step | {ms_per_step:.2f}"]
    parts = []
    for kind, title in ((DENSE, dense), (SPARSE, sparse)):
        rows = []
        for name, row in results[kind].items():
            at = dict.fromkeys(SHOWN) | dict(zip(row["steps"], row["median"], strict=True))
            rows.append({**row, "name": name, "at": at})
        parts += [f"### {title}", table(rows, *columns, missing="")]
    return page(
        "The loss after so many steps, 0 at its minimum and 1 at the worst start: median over "
        f"{plural(len(results['photographs']), 'photograph')}; the figure has the 25th to 75th "
        f"percentiles. Sigma {SIGMAS[0]}. The paper shows its figure without numbers.",
        f"![Loss by step]({FIGURE})",
        *parts,
        _behind(results),
    )


def _behind(results: Results) -> str:
    def reached(kind: str, name: str, step: int) -> float:
        row = results[kind][name]
        return float(row["median"][row["steps"].index(step)])

    cost = results[DENSE][OURS]["ms_per_step"] / results[DENSE][PAPERS]["ms_per_step"]
    return (
        "**Like the paper**: pyramid start and preconditioner each help, and together most: after "
        f"5 steps the loss is {reached(DENSE, PAPERS, 5):.1e} on dense data, with Jacobi and a "
        f"flat start {reached(DENSE, 'Jacobi, flat start', 5):.1e}.\n\n"
        f"**Behind**: a step of multigrid costs {cost:.1f} steps of the pyramid's, and a hierarchy "
        'per grid: on dense data `preconditioner="multigrid"` chooses the pyramid by itself. On '
        f"sparse data the paper's 25 steps leave {reached(SPARSE, PAPERS, 25):.0e} of the loss, "
        f"multigrid's 5 leave {reached(SPARSE, OURS, 5):.0e}."
    )


def draw(_: Values, results: Results, folder: Path) -> None:
    figures.convergence(results, (DENSE, SPARSE), list(METHODS), folder / FIGURE)
