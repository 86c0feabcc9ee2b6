"""Compare planes with constants: errors of sparse maps, steps, time, memory, and penalties."""

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import bilateral
from benchmarks.common import Array
from benchmarks.common.cells import Results, Setting
from benchmarks.common.tables import at_most, bullets, page, table
from benchmarks.quality import planar_cost, planar_penalties
from benchmarks.quality.sparse import Scene, scenes
from bilateral import BilateralGrid, BilateralSolver

TITLE, REPEATS = "Planes instead of constants", 5
CONSTANT = (0.01, 0.03, 0.1)  # smoothnesses of the constant model, of which the best counts
SMOOTHNESS = 0.03  # of the planar model
AIMS = {"0.5 % known": 0.72, "1 % known": 0.70, "5 % known": 0.70, "every 16th line": 0.72}
HOLES, RADIUS = 30, 40
NOISE, NOISY_SMOOTHNESS = 4.0, 4.0
ERROR, MOST_STEPS = 1e-3, 40  # of the range of the known values


def known_pixels(shape: tuple[int, ...]) -> Iterator[tuple[str, Array]]:
    """Yield a mask of the known pixels for each entry of AIMS."""
    for name, fraction in zip(AIMS, (0.005, 0.01, 0.05), strict=False):
        yield name, np.random.default_rng(0).random(shape) < fraction
    lines = np.zeros(shape, bool)
    lines[::16] = True
    yield list(AIMS)[-1], lines


def sparse_errors(scene: Scene, grid: BilateralGrid) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the mean absolute errors of both models for each kind of sparse input."""
    constant = {f"{s:g}": BilateralSolver(grid, s) for s in CONSTANT}
    planar = BilateralSolver(grid, SMOOTHNESS, model="planar")
    for name, known in known_pixels(scene.truth.shape):
        target = np.where(known, scene.truth, np.nan)
        maps = {key: solver.solve(target) for key, solver in constant.items()}
        maps["planar"] = planar.solve(target)
        maps["median"] = bilateral.median(maps["planar"])
        errors = {key: float(np.nanmean(abs(x - scene.truth))) for key, x in maps.items()}
        yield name, errors


def error_row(name: str, every: list[dict[str, float]]) -> Results:
    """Compare the means over the scenes with that of the constant model's best smoothness."""
    means = {key: float(np.mean([errors[key] for errors in every])) for key in every[0]}
    best = min((f"{s:g}" for s in CONSTANT), key=lambda key: means[key])
    ratios = {key: means[key] / means[best] for key in ("planar", "median")}
    worst = max(errors["planar"] / errors[best] for errors in every)
    names: dict[str, Any] = {"input": name, "best": best, "constant": means[best]}
    return names | {"errors": means, "ratios": ratios, "worst": worst}


def step_inputs(truth: Array) -> Iterator[tuple[str, Array, float]]:
    """Yield sparse, holed and noisy targets, each with its smoothness."""
    rng = np.random.default_rng(0)
    yield "1 % known", np.where(rng.random(truth.shape) < 0.01, truth, np.nan), SMOOTHNESS
    y, x = np.ogrid[: truth.shape[0], : truth.shape[1]]
    holed = truth.copy()
    for centre in rng.random((HOLES, 2)) * truth.shape:
        holed[(y - centre[0]) ** 2 + (x - centre[1]) ** 2 < RADIUS**2] = np.nan
    yield f"holes of radius {RADIUS}", holed, SMOOTHNESS
    noisy = truth + NOISE * rng.normal(size=truth.shape)
    yield f"noise of {NOISE:g} px, smoothness {NOISY_SMOOTHNESS:g}", noisy, NOISY_SMOOTHNESS


def steps(scene: Scene, grid: BilateralGrid) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield the steps that calls take, and those that the error itself takes, for both models."""
    for name, target, smoothness in step_inputs(scene.truth):
        counts = {}
        for model in ("constant", "planar"):

            def solver(model: str = model, smoothness: float = smoothness, **options: Any) -> Any:
                return BilateralSolver(grid, smoothness, model=model, clamp=False, **options)

            _, info = solver().solve(target, return_info=True)
            counts[f"{model}, taken"] = info.iterations
            counts[f"{model}, needed"] = needed_steps(solver, target)
        yield name, counts


def needed_steps(solver: Callable[..., BilateralSolver], target: Array) -> int:
    """Return the fewest steps to an RMS error of ERROR, against the converged solution."""
    exact = solver(tolerance=1e-7).solve(target)
    limit = ERROR * float(np.nanmax(target) - np.nanmin(target))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bilateral.ConvergenceWarning)
        for count in range(1, MOST_STEPS):
            x = solver(tolerance=0.0, max_iterations=count).solve(target)
            if np.sqrt(np.mean((x - exact) ** 2)) <= limit:
                return count
    return MOST_STEPS


def measure(setting: Setting) -> Results:
    """Measure all scenes; the penalties are those of `planar_penalties`."""
    names = []
    errors: dict[str, list[dict[str, float]]] = {}
    counts: dict[str, list[dict[str, int]]] = {}
    for scene in scenes(setting):
        names.append(scene.name)
        grid = BilateralGrid(scene.photo)
        for key, measured in sparse_errors(scene, grid):
            errors.setdefault(key, []).append(measured)
        for key, taken in steps(scene, grid):
            counts.setdefault(key, []).append(taken)
    mean_steps = [
        {"input": name, "steps": {key: float(np.mean([c[key] for c in every])) for key in every[0]}}
        for name, every in counts.items()
    ]
    return {
        "scenes": names,
        "errors": [error_row(*item) for item in errors.items()],
        "steps": mean_steps,
        "cost": list(planar_cost.measure(setting)),
        "penalties": planar_penalties.measure(setting),
    }


def as_text(results: Results) -> str:
    scene_names = ", ".join(results["scenes"])
    what = (
        f"## Few known pixels\n\nMean absolute error in pixels of disparity, mean of "
        f"{scene_names}: of the constant model with its best smoothness out of "
        f"{', '.join(f'{s:g}' for s in CONSTANT)}, and of the planar model at {SMOOTHNESS:g}, "
        "without and with a 5 x 5 median after it. The worst scene is without the median."
    )
    each = itertools.product(results["errors"], {"planar": "", "median": " with a median"}.items())
    verdicts = [
        f"{row['input']}{note}: {at_most(row['ratios'][key], AIMS[row['input']])}"
        for row, (key, note) in each
    ]
    taken = (
        f"## Steps\n\nMeans over the same scenes. Taken: by a call with the default tolerance. "
        f"Needed: to an RMS error of {ERROR:g} of the range, against the converged solution."
    )
    return page(
        what,
        table(
            results["errors"],
            "input | {input}; best smoothness | {best}; constant | {constant:.3f}",
            "planar | {errors[planar]:.3f}; with median | {errors[median]:.3f}",
            "ratio | {ratios[planar]:.2f}; with median | {ratios[median]:.2f}",
            "worst scene | {worst:.2f}",
        ),
        bullets("Ratio to the constant model:", verdicts),
        taken,
        table(
            results["steps"],
            "input | {input}; taken: constant | {steps[constant, taken]:.1f}",
            "planar | {steps[planar, taken]:.1f}",
            "needed: constant | {steps[constant, needed]:.1f}",
            "planar | {steps[planar, needed]:.1f}",
        ),
        planar_cost.as_text(results["cost"]),
        planar_penalties.as_text(results["penalties"]),
    )
