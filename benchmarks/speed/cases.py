"""Define the timed problem: denoise a gray image with its photograph as the reference."""

import importlib.util
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bilateral
from benchmarks.common import machine
from benchmarks.common.machine import Others
from benchmarks.common.opencv import Worker
from benchmarks.common.photos import Image, Photo, centre
from benchmarks.common.timing import Timing, clock, repeated
from benchmarks.cuda.drawn import mirrored
from bilateral import color, validation
from bilateral.backends import cpu
from bilateral.numerics import policy

SIGMAS = (8, 16)
SMOOTHNESS, STEPS, NOISE = 4.0, 25, 0.1
ORACLE = Path(__file__).parents[2] / "tests" / "oracles" / "reference.py"
STAGES = ("grid", "pyramid", "bistochastize", "splat", "start", "PCG", "slice")

Map = NDArray[np.float32]


@dataclass(frozen=True)
class Problem:
    """A reference with a noisy target, its confidence, and the target without noise."""

    reference: Image
    target: Map
    confidence: Map
    clean: Map

    @property
    def maps(self) -> tuple[Image, Map, Map]:
        return self.reference, self.target, self.confidence

    @property
    def shape(self) -> tuple[int, int]:
        return self.target.shape[0], self.target.shape[1]

    @property
    def n_pixels(self) -> int:
        return self.target.size

    def error(self, result: Map) -> float:
        return float(np.sqrt(np.mean((result - self.clean) ** 2, dtype=np.float64)))

    def mirrored(self, times: int) -> "Problem":
        """Tile the problem `times` x `times` with mirror images: the texture stays the same."""
        height, width = (times * side for side in self.shape)
        return Problem(*(mirrored(map_, height, width) for map_ in (*self.maps, self.clean)))

    def centre(self, height: int, width: int) -> "Problem":
        return Problem(*(centre(map_, height, width) for map_ in (*self.maps, self.clean)))


def problem(photo: Photo) -> Problem:
    """The gray photograph plus noise; confidence 1 at one pixel of 4 x 4, 0.01 at the others."""
    luma = np.array([0.299, 0.587, 0.114], np.float32) / np.float32(255)
    clean: Map = photo.pixels @ luma
    noise = np.random.default_rng(0).standard_normal(clean.shape, np.float32)
    confidence = np.full(clean.shape, 0.01, np.float32)
    confidence[::4, ::4] = 1
    return Problem(photo.pixels, clean + np.float32(NOISE) * noise, confidence, clean)


def options(sigma: float) -> dict[str, Any]:
    sigmas = dict.fromkeys(("sigma_xy", "sigma_luma", "sigma_chroma"), sigma)
    return {**sigmas, "smoothness": SMOOTHNESS}


def solve(problem: Problem, sigma: float) -> Map:
    """Solve by the public function: the call that is timed."""
    return bilateral.solve(*problem.maps, **options(sigma), method="paper", max_iterations=STEPS)


def stages(problem: Problem, sigma: float) -> tuple[dict[str, float], int]:
    """Seconds of each of `STAGES`, and the number of vertices."""
    image = validation.reference(problem.reference, None)
    matrix, offset = color.feature_map(3, image.highest)
    cells = [float(sigma)] * 3
    names = ("edge_guard", "lowest_eigenvalue", "level_stiffness", "faint_epsilons")
    limits = {name: getattr(policy, name.upper()) for name in names}
    blur, image_data = validation.blur("paper", 5), (image.pixels, matrix, offset, cells)
    grid = cpu.build_grid(*image_data, image.highest, cells[:2], blur=blur, **limits)
    target = problem.target[:, :, np.newaxis]
    splat, seen = clock(cpu.splat_target, grid, target, problem.confidence)
    start, y = clock(cpu.start, grid, seen.weight, seen.weighted, "pyramid", SMOOTHNESS)
    data = seen.weight, seen.weighted, y, seen.high - seen.low, SMOOTHNESS
    steps, _ = clock(pcg, grid, "pyramid", data, STEPS)
    slice_, _ = clock(cpu.slice_, grid, y, problem.shape)
    seconds = (*grid.core.build_seconds, splat, start, steps, slice_)
    return dict(zip(STAGES, seconds, strict=True)), grid.n_vertices


def pcg(
    grid: cpu.Grid, preconditioner: str, data: tuple[Any, ...], steps: int, callback: Any = None
) -> None:
    """Take exactly that many steps; the data: weights, weighted values, x, scale, smoothness."""
    *arrays, smoothness = data
    limits = {"min_iterations": steps, "max_iterations": steps, "tolerance": -1.0}
    limits |= {"movement_fraction": 0.0, "step_noise": policy.STEP_NOISE}
    limits |= {"error_window": policy.ERROR_WINDOW, "smoothness": smoothness}
    solver = cpu.Solver(grid, preconditioner)
    cpu.pcg(solver, *arrays, fill=True, callback=callback, **limits)


def peak_memory(problem: Problem, sigma: float) -> dict[str, Any]:
    growth, size = machine.in_fresh_process(_growth, problem, sigma)
    names = "pixels", "bytes_per_pixel", "bytes_per_pixel_with_output"
    n = problem.n_pixels
    return {"sigma": sigma, **dict(zip(names, (n, (growth - size) / n, growth / n), strict=True))}


def _growth(problem: Problem, sigma: float) -> tuple[int, int]:
    solve(problem.centre(16, 16), sigma)
    # The output is subtracted, not held before: freeing it would leave the call memory to reuse.
    growth, result = machine.growth(lambda: solve(problem, sigma))
    return growth, result.nbytes


class OpenCV(Worker):
    """OpenCV's solver for one problem, in a process of its own; a context manager."""

    def __init__(self, python: str, problem: Problem, threads: int) -> None:
        self._threads = threads
        maps = {"target": problem.target, "confidence": problem.confidence}
        super().__init__(python, {"guide": problem.reference[..., ::-1], **maps})

    def solve(self, sigma: float, save: bool = False) -> dict[str, Any]:
        """Construct the filter and apply it, once: its times and the steps that it reports."""
        settings = "guide target confidence", sigma, sigma, sigma, SMOOTHNESS, STEPS
        return self.run("fast bilateral solver", *settings, threads=self._threads, save=save)


def compare(
    problem: Problem, sigma: float, opencv: OpenCV | None, counts: tuple[int, ...], repeats: int
) -> dict[str, Any]:
    """Compare on one photograph at one sigma, OpenCV with as many threads as our largest count."""
    warm_up = opencv.solve(sigma, save=True) if opencv else {"iterations": None}
    error = problem.error(solve(problem, sigma))
    ours: dict[int, dict[str, list[float]]] = {count: defaultdict(list) for count in counts}
    theirs, vertices = list[float](), 0
    others = Others(lambda: time.process_time() + (opencv.cpu_seconds if opencv else 0.0))
    for _ in range(repeats):
        for threads in counts:
            bilateral.set_num_threads(threads)
            parts, vertices = stages(problem, sigma)
            parts["whole"] = clock(solve, problem, sigma)[0]
            for stage, seconds in parts.items():
                ours[threads][stage].append(seconds)
        if opencv:
            theirs.append(opencv.solve(sigma)["seconds"])
    whole = Timing.of(ours[counts[-1]]["whole"])
    peer = Timing.of(theirs) if opencv else None
    return {
        **{"sigma": sigma, "vertices": vertices, "other_work": others.cores()},
        "ours": {n: {k: Timing.of(v) for k, v in parts.items()} for n, parts in ours.items()},
        **{"error": error, "opencv": peer},
        "opencv_error": problem.error(opencv.result()) if opencv else None,
        "opencv_iterations": warm_up["iterations"],
        "ratio": peer.median / whole.median if peer else None,
    }


def oracle() -> ModuleType:
    """The slow reference implementation, which lies among the tests."""
    spec: Any = importlib.util.spec_from_file_location("reference", ORACLE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    return module


def compare_with_oracle(
    problem: Problem, sigma: float, threads: int, repeats: int
) -> dict[str, Any]:
    solve_paper = oracle().solve_paper
    bilateral.set_num_threads(threads)
    seconds, truth = clock(solve_paper, *problem.maps, steps=STEPS, **options(sigma))
    difference = float(np.abs(solve(problem, sigma) - truth).max())
    ours = repeated(solve, repeats, problem, sigma)
    return {
        **{"sigma": sigma, "shape": problem.shape, "ours": ours, "oracle": seconds},
        **{"ratio": seconds / ours.median, "largest_difference": difference},
    }
