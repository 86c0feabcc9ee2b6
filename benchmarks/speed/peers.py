"""The peers of the bilateral solver: OpenCV's FastBilateralSolver and the tests' oracle."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.common.opencv import Worker
from benchmarks.speed.cases import SMOOTHNESS, STEPS, Map, Problem

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
