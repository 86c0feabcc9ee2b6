"""Compare fixed penalties of the slopes with the rule that follows the noise."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.common import Array
from benchmarks.common.cells import Results, Setting
from benchmarks.common.tables import page, table
from benchmarks.quality.sparse import Scene, scenes
from bilateral import BilateralGrid, BilateralSolver

FRACTIONS = (0.001, 0.01, 0.1, 1.0)
NOISES = (0.0, 0.25, 1.0, 4.0)  # standard deviation of the known disparities in pixels
SMOOTHNESSES = (0.03, 0.3, 4.0)
CONSTANT = (0.003, 0.03, 0.3, 1.0, 4.0, 16.0)
PENALTIES: dict[str, dict[str, Any]] = {
    "default": {},
    "strong": {"slope_smoothness": 30.0, "slope_ridge": 1e-2},
    "rule": {"slope_ridge": None},
}


def name(smoothness: float, penalties: str) -> str:
    return f"{penalties}, smoothness {smoothness:g}"


def solutions(grid: BilateralGrid, target: Array) -> Iterator[tuple[str, Array]]:
    """Yield the constant solutions, all under one name, and the planar ones."""
    for smoothness in CONSTANT:
        yield "constant", BilateralSolver(grid, smoothness).solve(target)
    for smoothness, (penalties, options) in itertools.product(SMOOTHNESSES, PENALTIES.items()):
        solver = BilateralSolver(grid, smoothness, model="planar", **options)
        yield name(smoothness, penalties), solver.solve(target)


def measure_scene(
    scene: Scene, fractions: Sequence[float]
) -> Iterator[tuple[tuple[float, float], dict[str, float]]]:
    """Yield the mean absolute errors per input; "constant" is that of its best smoothness."""
    grid = BilateralGrid(scene.photo)
    for noise, fraction in itertools.product(NOISES, fractions):
        rng = np.random.default_rng(0)
        known = rng.random(scene.truth.shape) < fraction
        noisy = scene.truth + noise * rng.normal(size=scene.truth.shape)
        errors: dict[str, float] = {}
        for key, x in solutions(grid, np.where(known, noisy, np.nan)):
            error = float(np.nanmean(abs(x - scene.truth)))
            errors[key] = min(error, errors.get(key, np.inf))
        yield (fraction, noise), errors


def measure(setting: Setting) -> Results:
    """Compare with the constant model at its best: geometric means of ratios over the scenes."""
    fractions = FRACTIONS[2:3] if setting.quick else FRACTIONS
    inputs: dict[tuple[float, float], list[dict[str, float]]] = {}
    names = []
    for scene in scenes(setting):
        names.append(scene.name)
        for key, errors in measure_scene(scene, fractions):
            inputs.setdefault(key, []).append(errors)
    rows = []
    for (fraction, noise), every in sorted(inputs.items()):
        logs = {key: np.log([errors[key] for errors in every]) for key in every[0]}
        ratios = {key: float(np.exp(np.mean(v - logs["constant"]))) for key, v in logs.items()}
        constant = float(np.exp(np.mean(logs["constant"])))
        rows.append({"fraction": fraction, "noise": noise, "constant": constant, "ratios": ratios})
    return {"scenes": names, "rows": rows}


def as_text(results: Results) -> str:
    columns = "; ".join(
        f"{smoothness:g}: {penalties} | {{ratios[{name(smoothness, penalties)}]:.2f}}"
        for smoothness, penalties in itertools.product(SMOOTHNESSES, PENALTIES)
    )
    what = (
        "## Penalties of the slopes\n\nMean absolute errors of the planar model by smoothness and "
        "penalties, as ratios to the constant model with its best smoothness (given in pixels): "
        f"geometric means over {', '.join(results['scenes'])}."
    )
    first = "known | {fraction:.1%}; noise | {noise:g}; constant | {constant:.2f}"
    return page(what, table(results["rows"], first, columns))
