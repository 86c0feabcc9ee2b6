"""What we are compared with: OpenCV's FastBilateralSolver and the tests' oracle."""

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from benchmarks.speed.cases import SMOOTHNESS, STEPS, Map, Problem
from benchmarks.worker import Worker, probe

WORKER = Path(__file__).with_name("opencv_worker.py")
ORACLE = Path(__file__).parents[2] / "tests" / "oracles" / "reference.py"


def opencv_versions(python: str) -> dict[str, str] | None:
    """Versions of OpenCV and its NumPy under that Python, or None where it lacks the solver."""
    return probe(python, WORKER)


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
    construction: float  # of these
    error: float
    cpu_seconds: float  # of the process, since its start
    iterations: int | None


class OpenCV(Worker):
    """OpenCV's solver for one problem, in a process of its own; a context manager."""

    def __init__(self, python: str, problem: Problem, threads: int) -> None:
        self._threads = threads
        arrays = {
            "guide": problem.reference[..., ::-1],
            "target": problem.target,
            "confidence": problem.confidence,
            "clean": problem.clean,
        }
        super().__init__(python, WORKER, arrays)

    def solve(self, sigma: float) -> OpenCVRun:
        """Construct the filter and apply it, once."""
        answer = self.ask(sigma=sigma, smoothness=SMOOTHNESS, steps=STEPS, threads=self._threads)
        return OpenCVRun(**answer)


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
