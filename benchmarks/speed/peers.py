"""What we are compared with: OpenCV's FastBilateralSolver and the tests' oracle."""

import importlib.util
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.speed.cases import SMOOTHNESS, STEPS, Map, Problem

WORKER = Path(__file__).with_name("opencv_worker.py")
ORACLE = Path(__file__).parents[2] / "tests" / "reference.py"


def opencv_versions(python: str) -> dict[str, str] | None:
    """Versions of OpenCV and its NumPy under that Python, or None where it lacks the solver."""
    try:
        probe = subprocess.run(
            [python, "-I", str(WORKER)], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    versions: dict[str, str] = json.loads(probe.stdout)
    return versions


def skipped(python: str) -> str:
    """What to say where OpenCV's solver is missing."""
    return (
        f"OpenCV skipped: {python} has no cv2 with FastBilateralSolver, and neither has any wheel "
        f"of pip's. On Debian and Ubuntu: apt-get install python3-opencv."
    )


@dataclass(frozen=True)
class OpenCVRun:
    """One construction and filtering: its time, its error, the steps it says it took."""

    seconds: float
    error: float
    cpu_seconds: float  # of the process, since its start
    iterations: int | None


class OpenCV:
    """OpenCV's solver for one problem, in a process of its own; a context manager."""

    def __init__(self, python: str, problem: Problem, threads: int) -> None:
        self.cpu_seconds = 0.0
        self._threads = threads
        self._folder = tempfile.TemporaryDirectory()
        maps = {
            "guide": problem.reference[..., ::-1],
            "target": problem.target,
            "confidence": problem.confidence,
            "clean": problem.clean,
        }
        for name, values in maps.items():
            np.save(Path(self._folder.name) / name, np.ascontiguousarray(values))
        # -I: neither our folder nor our environment's packages on its path.
        self._process = subprocess.Popen(
            [python, "-I", str(WORKER), self._folder.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "OpenCV":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
        self._folder.cleanup()

    def solve(self, sigma: float) -> OpenCVRun:
        """Construct the filter and apply it, once."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request: dict[str, Any] = {
            "sigma": sigma,
            "smoothness": SMOOTHNESS,
            "steps": STEPS,
            "threads": self._threads,
        }
        print(json.dumps(request), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"OpenCV's process ended with {self._process.wait()}")
        run = OpenCVRun(**json.loads(answer))
        self.cpu_seconds = run.cpu_seconds
        return run


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
    result: Map = module.solve_paper(
        problem.reference,
        problem.target,
        problem.confidence,
        smoothness=SMOOTHNESS,
        steps=STEPS,
        sigma_xy=sigma,
        sigma_luma=sigma,
        sigma_chroma=sigma,
    )
    return result
