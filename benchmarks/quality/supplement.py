"""Time the supplement's robust rounds and low-rank solves against plain ones, and check both."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from skimage.transform import resize

from benchmarks.common import middlebury
from benchmarks.common.cells import Cell, Results, Setting, Values
from benchmarks.common.machine import Others
from benchmarks.common.tables import OTHERS, at_most, table
from benchmarks.common.timing import in_turns, stopwatch
from benchmarks.quality import lowrank
from benchmarks.quality.depth_cases import INPUTS, errors
from bilateral import BilateralGrid, BilateralSolver, GemanMcClure, solve

Array = NDArray[Any]

TITLE = "The supplement's parts"
REPEATS = 7
ROUNDS_IN_SOLVES = 8.0
"""Target: robust rounds in single solves."""
ROUNDS = 32
# sigmas and smoothness: a setting for these pictures, and the paper's
SETTINGS = ((8, 4.0), (4, 0.25))


class Scene(NamedTuple):
    """A photograph, a noisy disparity map, and the true one with NaN where it is unknown."""

    name: str
    reference: Array
    disparity: Array
    truth: Array


def read_scenes(folder: Path) -> Iterator[Scene]:
    """Middlebury scenes, each a folder with im0.png, disp0GT.pfm and a 16-bit disparity map."""
    name = INPUTS["MC-CNN raw"]
    for scene in middlebury.folders(folder):
        if middlebury.has_disparity(scene, name):
            maps = middlebury.disparity(scene, name), middlebury.truth(scene)
            yield Scene(scene.name, middlebury.left_view(scene), *maps)


def made_scene(height: int, width: int) -> Scene:
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
    levels = np.clip(shade, 0, 255).astype(np.uint8)
    return Scene("made", np.dstack([levels] * 3), disparity.astype(np.float32), truth)


def resized(scene: Scene, pixels: int) -> Scene:
    """The scene at about this many pixels."""
    factor = float(np.sqrt(pixels / scene.disparity.size))
    shape = tuple(round(side * factor) for side in scene.disparity.shape)
    reference = np.rint(255 * resize(scene.reference, shape, order=1)).astype(np.uint8)
    maps = (
        np.asarray(resize(values, shape, order=0, preserve_range=True) * factor, np.float32)
        for values in (scene.disparity, scene.truth)
    )
    return Scene(scene.name, reference, *maps)


def cost(scene: Scene, sigma: float, smoothness: float, repeats: int) -> dict[str, Any]:
    """Time the rounds in turns with single solves, on an existing grid and with a new grid."""
    grid = BilateralGrid(scene.reference, sigma, sigma, sigma)
    solver = BilateralSolver(grid, smoothness)
    sigmas = dict.fromkeys(("sigma_xy", "sigma_luma", "sigma_chroma"), sigma)
    maps, options = (scene.reference, scene.disparity), {"smoothness": smoothness, **sigmas}
    calls = {
        "solve": stopwatch(solver.solve, scene.disparity),
        "rounds": stopwatch(solver.solve_robust, scene.disparity, iterations=ROUNDS),
        "one_call": stopwatch(solve, *maps, **options),
    }
    others = Others()
    times = in_turns(calls, repeats)
    return {
        "scene": scene.name,
        "megapixels": scene.disparity.size / 1e6,
        "vertices": grid.n_vertices,
        "sigma": sigma,
        "smoothness": smoothness,
        **times,
        "rounds_in_solves": times["rounds"].median / times["solve"].median,
        "rounds_in_calls": times["rounds"].median / times["one_call"].median,
        "other_work": others.cores(),
    }


def gain(scene: Scene, sigma: float, smoothness: float) -> dict[str, Any]:
    """Errors of the input, of least squares, and of robust rounds, inexact and exact."""
    grid = BilateralGrid(scene.reference, sigma, sigma, sigma)
    solver = BilateralSolver(grid, smoothness)
    exact = BilateralSolver(grid, smoothness, tolerance=1e-7, max_iterations=3000)
    loss = GemanMcClure(1.0)
    rounds = {"loss": loss, "iterations": ROUNDS}
    return {
        "scene": scene.name,
        "sigma": sigma,
        "smoothness": smoothness,
        "input": errors(scene.disparity, scene.truth),
        "least_squares": errors(solver.solve(scene.disparity), scene.truth),
        "robust": errors(solver.solve_robust(scene.disparity, **rounds), scene.truth),
        "exact_rounds": errors(exact.solve_robust(scene.disparity, **rounds), scene.truth),
    }


def cells(setting: Setting) -> Iterator[Cell]:
    root = setting.data.root
    pixels, shape = (40_000, (160, 240)) if setting.quick else (1_000_000, (500, 741))
    scenes = [] if root is None else list(read_scenes(root))
    for scene in scenes or [made_scene(*shape)]:
        large = resized(scene, pixels)
        for sigma, smoothness in SETTINGS:
            name = f"{scene.name}, {sigma}, {smoothness:g}"
            work = partial(cost, large, sigma, smoothness, setting.repeats)
            yield Cell(f"{name}: cost", work)
            yield Cell(f"{name}: gain", partial(gain, scene, sigma, smoothness))
    if root is not None and list(lowrank.read_images(root)):
        yield from lowrank.cells(setting)


def summary(values: Values, _: Setting) -> Results:
    return {part: _part(values, part) for part in ("cost", "gain")}


def _part(values: Values, part: str) -> list[Results]:
    return [value for name, value in values.items() if name.endswith(f": {part}")]


def as_text(results: Results) -> str:
    errors = "{{{0}[bad_1]:5.2f}} {{{0}[mean]:5.2f}} {{{0}[rms]:5.2f}}"
    kinds = ("input", "least_squares", "robust", "exact_rounds")
    sigmas = "sigmas | {sigma}, {smoothness:g}"
    return f"## What {ROUNDS} robust rounds gain: bad-1 %, mean and RMS error\n\n" + table(
        results["gain"],
        "scene | {scene}",
        sigmas,
        *(f"{kind.replace('_', ' ')} | {errors.format(kind)}" for kind in kinds),
    )


def details(values: Values) -> str:
    """Times with their spread, and low rank where there are class scores."""
    rows = _part(values, "cost")
    worst = max(row["rounds_in_solves"] for row in rows)
    parts = [
        f"## {ROUNDS} robust rounds in single solves",
        table(
            rows,
            "scene | {scene}; sigmas | {sigma}, {smoothness:g}; vertices | {vertices:,}",
            "rounds, ms | {rounds}; solve, ms | {solve}; ratio | {rounds_in_solves:.1f}",
            "call, ms | {one_call:ms}: {rounds_in_calls:.1f}",
            OTHERS,
        ),
        f"Largest ratio: {at_most(worst, ROUNDS_IN_SOLVES, '.1f')}.",
    ]
    images = {name: value for name, value in values.items() if "rank" in value}
    return "\n\n".join([*parts, lowrank.details(images)] if images else parts)
