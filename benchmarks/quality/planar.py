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
HOLED = f"holes of radius {RADIUS}"
STRONG = {"slope_smoothness": 30.0, "slope_ridge": 1e-2}
NOISE, NOISY_SMOOTHNESS = 4.0, 4.0
ERROR, MOST_STEPS = 1e-3, 40  # of the range of the known values


def known_pixels(shape: tuple[int, ...]) -> dict[str, Array]:
    """Return a mask of the known pixels for each kind of input."""
    masks = {
        name: np.random.default_rng(0).random(shape) < fraction
        for name, fraction in zip(AIMS, (0.005, 0.01, 0.05), strict=False)
    }
    lines, holed = np.zeros(shape, bool), np.ones(shape, bool)
    lines[::16] = True
    y, x = np.ogrid[: shape[0], : shape[1]]
    for centre in np.random.default_rng(0).random((HOLES, 2)) * shape:
        holed[(y - centre[0]) ** 2 + (x - centre[1]) ** 2 < RADIUS**2] = False
    return {**masks, "every 16th line": lines, HOLED: holed}


def mean_errors(scene: Scene, grid: BilateralGrid) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the mean absolute errors of both models for each kind of input."""
    solvers = {f"{s:g}": BilateralSolver(grid, s) for s in CONSTANT}
    solvers["planar"] = BilateralSolver(grid, SMOOTHNESS, model="planar")
    solvers["strong"] = BilateralSolver(grid, SMOOTHNESS, model="planar", **STRONG)
    for name, known in known_pixels(scene.truth.shape).items():
        target = np.where(known, scene.truth, np.nan)
        truth = np.where(known, np.nan, scene.truth) if name == HOLED else scene.truth
        maps = {key: solver.solve(target) for key, solver in solvers.items()}
        maps["median"] = bilateral.median(maps["planar"])
        yield name, {key: float(np.nanmean(abs(x - truth))) for key, x in maps.items()}


def error_row(name: str, every: list[dict[str, float]]) -> Results:
    """Compare the means over the scenes with that of the constant model's best smoothness."""
    means = {key: float(np.mean([errors[key] for errors in every])) for key in every[0]}
    best = min((f"{s:g}" for s in CONSTANT), key=lambda key: means[key])
    ratios = {key: means[key] / means[best] for key in ("planar", "median", "strong")}
    worst = max(errors["planar"] / errors[best] for errors in every)
    names: dict[str, Any] = {"input": name, "best": best, "constant": means[best]}
    return names | {"errors": means, "ratios": ratios, "worst": worst}


def step_inputs(truth: Array) -> Iterator[tuple[str, Array, float]]:
    """Yield sparse, holed and noisy targets, each with its smoothness."""
    masks = known_pixels(truth.shape)
    for name in ("1 % known", HOLED):
        yield name, np.where(masks[name], truth, np.nan), SMOOTHNESS
    noisy = truth + NOISE * np.random.default_rng(0).normal(size=truth.shape)
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
        for key, measured in mean_errors(scene, grid):
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
        f"## Few known pixels and holes\n\nMean absolute error in pixels of disparity, mean of "
        f"{scene_names}: of the constant model with its best smoothness out of "
        f"{', '.join(f'{s:g}' for s in CONSTANT)}, and of the planar model at {SMOOTHNESS:g}, "
        "with a 5 x 5 median after it, and with strong penalties of the slopes "
        f"({', '.join(f'{key} {value:g}' for key, value in STRONG.items())}). The worst scene is "
        "that of the planar model alone. For holes, only the pixels in them count."
    )
    aimed = [row for row in results["errors"] if row["input"] in AIMS]
    each = itertools.product(aimed, {"planar": "", "median": " with a median"}.items())
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
            "planar | {errors[planar]:.3f}; median | {errors[median]:.3f}",
            "strong | {errors[strong]:.3f}; planar / constant | {ratios[planar]:.2f}",
            "median / constant | {ratios[median]:.2f}; strong / constant | {ratios[strong]:.2f}",
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
