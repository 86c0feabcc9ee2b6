"""Time the supplement's robust rounds and low-rank solves against plain ones, and check both."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from skimage.transform import resize

from benchmarks.common import middlebury
from benchmarks.common.cells import Cell, Results, Setting, Values
from benchmarks.common.machine import Others
from benchmarks.common.tables import OTHERS, at_least, at_most, bullets, page, spread, table
from benchmarks.common.timing import in_turns, stopwatch
from benchmarks.quality import lowrank
from benchmarks.quality.depth import INPUTS, Case, errors, from_folder
from bilateral import BilateralGrid, BilateralSolver, GemanMcClure, solve

TITLE, REPEATS = "The supplement's parts", 7
ROUNDS, SOURCE = 32, "MC-CNN raw"
# sigmas and smoothness: a setting for these pictures, and the paper's
SETTINGS = ((8, 4.0), (4, 0.25))


def made_scene(height: int, width: int) -> Case:
    """Make a scene: planes in front of each other, 10 % of the map wrong."""
    rng = np.random.default_rng(0)
    x = np.mgrid[:height, :width][1]
    shade = 120 + 40 * np.sin(x / 90) + rng.normal(0, 4, x.shape)
    truth = 20 + 0.01 * x
    for _ in range(12):
        top, bottom = np.sort(rng.integers(0, height, 2))
        left, right = np.sort(rng.integers(0, width, 2))
        part = np.s_[top : bottom + 1, left : right + 1]
        truth[part] = rng.uniform(25, 90)
        shade[part] = rng.uniform(20, 235) + rng.normal(0, 4, shade[part].shape)
    disparity = truth + rng.normal(0, 0.3, x.shape)
    wrong = rng.uniform(size=x.shape) < 0.1
    disparity[wrong] = rng.uniform(0, 110, int(wrong.sum()))
    photo = np.dstack([np.clip(shade, 0, 255).astype(np.uint8)] * 3)
    return Case("made", "made", photo, disparity.astype(np.float32), truth, ~wrong)


def resized(case: Case, pixels: int) -> Case:
    factor = float(np.sqrt(pixels / case.disparity.size))
    shape = tuple(round(side * factor) for side in case.disparity.shape)
    photo = np.rint(255 * resize(case.photo, shape, order=1)).astype(np.uint8)
    maps = (
        np.asarray(resize(values, shape, order=0, preserve_range=True) * factor, np.float32)
        for values in (case.disparity, case.truth)
    )
    return Case(case.scene, case.source, photo, *maps, case.seen)


def cost(case: Case, sigma: float, smoothness: float, repeats: int) -> dict[str, Any]:
    """Time the rounds in turns with single solves, on an existing grid and with a new grid."""
    grid = BilateralGrid(case.photo, sigma, sigma, sigma)
    solver = BilateralSolver(grid, smoothness)
    sigmas = dict.fromkeys(("sigma_xy", "sigma_luma", "sigma_chroma"), sigma)
    maps, options = (case.photo, case.disparity), {"smoothness": smoothness, **sigmas}
    calls = {
        "solve": stopwatch(solver.solve, case.disparity),
        "rounds": stopwatch(solver.solve_robust, case.disparity, iterations=ROUNDS),
        "one_call": stopwatch(solve, *maps, **options),
    }
    others = Others()
    times = in_turns(calls, repeats)
    return {
        **{"scene": case.scene, "sigma": sigma, "smoothness": smoothness},
        **{"megapixels": case.disparity.size / 1e6, "vertices": grid.n_vertices},
        **times,
        "rounds_in_solves": times["rounds"].median / times["solve"].median,
        "rounds_in_calls": times["rounds"].median / times["one_call"].median,
        "other_work": others.cores(),
    }


def gain(case: Case, sigma: float, smoothness: float) -> dict[str, Any]:
    """Errors of the input, of least squares, and of robust rounds, inexact and exact."""
    grid = BilateralGrid(case.photo, sigma, sigma, sigma)
    solver = BilateralSolver(grid, smoothness)
    exact = BilateralSolver(grid, smoothness, tolerance=1e-7, max_iterations=3000)
    rounds = {"loss": GemanMcClure(1.0), "iterations": ROUNDS}
    maps = {
        "input": case.disparity,
        "least_squares": solver.solve(case.disparity),
        "robust": solver.solve_robust(case.disparity, **rounds),
        "exact_rounds": exact.solve_robust(case.disparity, **rounds),
    }
    setting = {"scene": case.scene, "sigma": sigma, "smoothness": smoothness}
    return setting | {name: errors(map_, case.truth) for name, map_ in maps.items()}


def cells(setting: Setting) -> Iterator[Cell]:
    pixels, shape = (40_000, (160, 240)) if setting.quick else (1_000_000, (500, 741))
    folders = [f for f in setting.data.scenes() if middlebury.has_disparity(f, INPUTS[SOURCE])]
    for case in [from_folder(f, SOURCE) for f in folders] or [made_scene(*shape)]:
        large = resized(case, pixels)
        for sigma, smoothness in SETTINGS:
            name = f"{case.scene}, {sigma}, {smoothness:g}"
            yield Cell(f"{name}: cost", partial(cost, large, sigma, smoothness, setting.repeats))
            yield Cell(f"{name}: gain", partial(gain, case, sigma, smoothness))
    if setting.data.root and list(lowrank.read_images(setting.data.root)):
        yield from lowrank.cells(setting)


def summary(values: Values, setting: Setting | None) -> Results:
    parts = {
        part: [value for name, value in values.items() if name.endswith(f": {part}")]
        for part in ("cost", "gain")
    }
    images = {name: value for name, value in values.items() if "rank" in value}
    return parts | {"lowrank": lowrank.summary(images, setting) if images else None}


def as_text(results: Results) -> str:
    errors = "{{{0}[bad_1]:5.2f}} {{{0}[mean]:5.2f}} {{{0}[rms]:5.2f}}"
    kinds = ("input", "least_squares", "robust", "exact_rounds")
    return page(
        f"## What {ROUNDS} robust rounds gain: bad-1 %, mean and RMS error",
        table(
            results["gain"],
            "scene | {scene}; sigmas | {sigma}, {smoothness:g}",
            *(f"{kind.replace('_', ' ')} | {errors.format(kind)}" for kind in kinds),
        ),
        f"## {ROUNDS} robust rounds in single solves",
        table(
            results["cost"],
            "scene | {scene}; sigmas | {sigma}, {smoothness:g}; vertices | {vertices:,}",
            "in solves | {rounds_in_solves:.1f}; in calls | {rounds_in_calls:.1f}",
            OTHERS,
        ),
        results["lowrank"] and f"## {lowrank.TITLE}\n\n{lowrank.as_text(results['lowrank'])}",
    )


def details(values: Values) -> str:
    results = summary(values, None)
    worst = max(row["rounds_in_solves"] for row in results["cost"])
    lines = [f"robust rounds in single solves: {at_most(worst, 8.0, '.1f')}"]
    low_rank = results["lowrank"]
    if low_rank:
        same = at_least(low_rank["same_class"], 99.5)
        lines.append(f"gain by a low rank: {at_least(low_rank['ratio'], 4.0, '.1f')}")
        lines.append(f"pixels that keep their best class, in percent: {same}")
    return page(spread(values), bullets("## Targets", lines))
