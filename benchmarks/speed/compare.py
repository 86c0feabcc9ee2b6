"""Time our solve, whole and by stage, in turns with the peers, so that noise hits all alike."""

import importlib.util
import sys
import time
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import bilateral
from benchmarks.common.machine import Others
from benchmarks.common.opencv import Worker
from benchmarks.common.timing import Timing, clock, geometric_mean, repeated
from benchmarks.speed.cases import SMOOTHNESS, STEPS, Map, Problem, solve
from benchmarks.speed.stages import STAGES, stages

ORACLE = Path(__file__).parents[2] / "tests" / "oracles" / "reference.py"
Seconds = dict[str, list[float]]


class OpenCV(Worker):
    """OpenCV's solver for one problem, in a process of its own; a context manager."""

    def __init__(self, python: str, problem: Problem, threads: int) -> None:
        self._threads = threads
        guide = problem.reference[..., ::-1]
        maps = {"target": problem.target, "confidence": problem.confidence}
        super().__init__(python, {"guide": guide, **maps})

    def solve(self, sigma: float, save: bool = False) -> dict[str, Any]:
        """Construct the filter and apply it, once: its times and the steps that it reports."""
        settings = sigma, sigma, sigma, SMOOTHNESS, STEPS
        maps, options = "guide target confidence", {"threads": self._threads, "save": save}
        return self.run("fast bilateral solver", maps, *settings, **options)


def oracle() -> ModuleType:
    """The slow reference implementation, which lies among the tests."""
    spec = importlib.util.spec_from_file_location("reference", ORACLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    return module


def oracle_solve(module: ModuleType, problem: Problem, sigma: float) -> Map:
    sigmas = dict.fromkeys(("sigma_xy", "sigma_luma", "sigma_chroma"), sigma)
    maps = problem.reference, problem.target, problem.confidence
    result: Map = module.solve_paper(*maps, smoothness=SMOOTHNESS, steps=STEPS, **sigmas)
    return result


def compare(
    problem: Problem,
    sigma: float,
    opencv: OpenCV | None,
    thread_counts: tuple[int, ...],
    repeats: int,
) -> dict[str, Any]:
    """Compare on one photograph at one sigma, OpenCV with as many threads as our largest count."""
    warm_up = opencv.solve(sigma, save=True) if opencv else None
    error = problem.error(solve(problem, sigma))
    ours: dict[int, Seconds] = {threads: defaultdict(list) for threads in thread_counts}
    theirs: list[float] = []
    vertices = 0
    others = Others(lambda: time.process_time() + (opencv.cpu_seconds if opencv else 0.0))
    for _ in range(repeats):
        for threads in thread_counts:
            bilateral.set_num_threads(threads)
            parts, vertices = stages(problem, sigma)
            parts["whole"] = clock(solve, problem, sigma)[0]
            for stage, seconds in parts.items():
                ours[threads][stage].append(seconds)
        if opencv:
            theirs.append(opencv.solve(sigma)["seconds"])
    result: dict[str, Any] = {
        "sigma": sigma,
        "vertices": vertices,
        "other_work": others.cores(),
        "ours": {
            threads: {stage: Timing.of(seconds[stage]) for stage in (*STAGES, "whole")}
            for threads, seconds in ours.items()
        },
        "error": error,
        "opencv": None,
        "ratio": None,
    }
    if opencv and warm_up:
        whole = result["ours"][thread_counts[-1]]["whole"]
        result["opencv"] = Timing.of(theirs)
        result["opencv_error"] = problem.error(opencv.result())
        result["opencv_iterations"] = warm_up["iterations"]
        result["ratio"] = result["opencv"].median / whole.median
    return result


def summary(cases: list[dict[str, Any]]) -> dict[str, float] | None:
    """Geometric mean and minimum of the ratios to OpenCV."""
    ratios = [case["ratio"] for case in cases if case["ratio"] is not None]
    if not ratios:
        return None
    return {"geometric_mean": geometric_mean(ratios), "minimum": min(ratios)}


def compare_with_oracle(
    problem: Problem, sigma: float, threads: int, repeats: int
) -> dict[str, Any]:
    """Time ours and the oracle on a small problem, and compare their results."""
    module = oracle()
    bilateral.set_num_threads(threads)
    seconds, truth = clock(oracle_solve, module, problem, sigma)
    difference = np.abs(solve(problem, sigma) - truth).max()
    ours = repeated(solve, repeats, problem, sigma)
    return {
        "sigma": sigma,
        "shape": problem.shape,
        "ours": ours,
        "oracle": seconds,
        "ratio": seconds / ours.median,
        "largest_difference": float(difference),
    }
