"""Time our solve, whole and by stage, in turns with the peers, so that noise hits all alike."""

import time
from collections import defaultdict
from typing import Any

import numpy as np

import bilateral
from benchmarks.common.machine import Others
from benchmarks.common.timing import Timing, clock, geometric_mean, repeated
from benchmarks.speed import peers
from benchmarks.speed.cases import Problem, solve
from benchmarks.speed.stages import STAGES, stages

Seconds = dict[str, list[float]]


def compare(
    problem: Problem,
    sigma: float,
    opencv: peers.OpenCV | None,
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
    module = peers.oracle()
    bilateral.set_num_threads(threads)
    seconds, truth = clock(peers.oracle_solve, module, problem, sigma)
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
