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
from benchmarks.common.timing import Timing, clock, repeated
from benchmarks.speed.cases import SMOOTHNESS, STEPS, Problem, options, solve, stages

ORACLE = Path(__file__).parents[2] / "tests" / "oracles" / "reference.py"


class OpenCV(Worker):
    """OpenCV's solver for one problem, in a process of its own; a context manager."""

    def __init__(self, python: str, problem: Problem, threads: int) -> None:
        self._threads = threads
        guide = problem.reference[..., ::-1]
        maps = {"target": problem.target, "confidence": problem.confidence}
        super().__init__(python, {"guide": guide, **maps})

    def solve(self, sigma: float, save: bool = False) -> dict[str, Any]:
        """Construct the filter and apply it, once: its times and the steps that it reports."""
        call = "fast bilateral solver", "guide target confidence"
        settings = sigma, sigma, sigma, SMOOTHNESS, STEPS
        return self.run(*call, *settings, threads=self._threads, save=save)


def compare(
    problem: Problem, sigma: float, opencv: OpenCV | None, counts: tuple[int, ...], repeats: int
) -> dict[str, Any]:
    """Compare on one photograph at one sigma, OpenCV with as many threads as our largest count."""
    warm_up = opencv.solve(sigma, save=True) if opencv else {"iterations": None}
    error = problem.error(solve(problem, sigma))
    ours: dict[int, dict[str, list[float]]] = {count: defaultdict(list) for count in counts}
    theirs: list[float] = []
    vertices = 0
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
        "sigma": sigma,
        "vertices": vertices,
        "other_work": others.cores(),
        "ours": {
            threads: {stage: Timing.of(seconds) for stage, seconds in parts.items()}
            for threads, parts in ours.items()
        },
        "error": error,
        "opencv": peer,
        "opencv_error": problem.error(opencv.result()) if opencv else None,
        "opencv_iterations": warm_up["iterations"],
        "ratio": peer.median / whole.median if peer else None,
    }


def oracle() -> ModuleType:
    """The slow reference implementation, which lies among the tests."""
    spec = importlib.util.spec_from_file_location("reference", ORACLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    return module


def compare_with_oracle(
    problem: Problem, sigma: float, threads: int, repeats: int
) -> dict[str, Any]:
    """Time ours and the oracle on a small problem, and compare their results."""
    solve_paper = oracle().solve_paper
    bilateral.set_num_threads(threads)
    seconds, truth = clock(solve_paper, *problem.maps, steps=STEPS, **options(sigma))
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
