"""Robust rounds on stereo: their cost in single solves, and what they gain."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from skimage.transform import resize

from benchmarks import middlebury
from benchmarks.machine import Others
from benchmarks.timing import Timing, clock
from bilateral import BilateralGrid, BilateralSolver, GemanMcClure, solve

Array = NDArray[Any]

ROUNDS = 32
# sigmas and smoothness: one made for these pictures, and the paper's
SETTINGS = ((8, 4.0), (4, 0.25))


class Scene(NamedTuple):
    """A photograph, a noisy disparity map, and the true one with NaN where it is unknown."""

    name: str
    reference: Array
    disparity: Array
    truth: Array


def read_scenes(folder: Path) -> Iterator[Scene]:
    """Middlebury scenes, each a folder with im0.png, disp0GT.pfm and a 16-bit disparity map."""
    name = "disp0_mccnnfast_raw"
    for scene in middlebury.folders(folder):
        if (scene / f"{name}_u16x256.png").exists():
            maps = middlebury.disparity(scene, name), middlebury.truth(scene)
            yield Scene(scene.name, middlebury.photograph(scene), *maps)


def made_scene(height: int, width: int) -> Scene:
    """A scene for those without data: planes in front of each other, 10 % of the map wrong."""
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


def errors(found: Array, truth: Array) -> dict[str, float]:
    """Share of pixels off by more than 1, mean and RMS error, where the truth is known."""
    error = np.abs(found - truth)[np.isfinite(truth)]
    return {
        "bad_1": 100 * float(np.mean(error > 1)),
        "mean": float(error.mean()),
        "rms": float(np.sqrt(np.mean(error**2))),
    }


def cost(scene: Scene, sigma: float, smoothness: float, repeats: int) -> dict[str, Any]:
    """Time the rounds in turns with single solves, on a grid that is there and with making it."""
    grid = BilateralGrid(scene.reference, sigma, sigma, sigma)
    solver = BilateralSolver(grid, smoothness)
    sigmas = {"sigma_xy": sigma, "sigma_luma": sigma, "sigma_chroma": sigma}
    calls = {
        "solve": lambda: solver.solve(scene.disparity),
        "rounds": lambda: solver.solve_robust(scene.disparity, iterations=ROUNDS),
        "one_call": lambda: solve(
            scene.reference, scene.disparity, smoothness=smoothness, **sigmas
        ),
    }
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    others = Others()
    for call in calls.values():
        call()
    for _ in range(repeats):
        for name, call in calls.items():
            seconds[name].append(clock(call)[0])
    times = {name: Timing.of(values) for name, values in seconds.items()}
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
    """Errors of the input, of least squares and of the robust solve, as it is and exactly."""
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
