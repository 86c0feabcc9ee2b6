"""Measure the peak memory of one call in a fresh process (this module, run as a script)."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import memory
from benchmarks.speed.cases import Problem, solve

MAPS = ("reference", "target", "confidence")


def peak_memory(problem: Problem, sigma: float) -> dict[str, Any]:
    """Bytes per pixel at the peak of a call, beyond its inputs and its output."""
    with tempfile.TemporaryDirectory() as folder:
        for name in MAPS:
            np.save(Path(folder) / name, getattr(problem, name))
        row: dict[str, Any] = memory.in_fresh_process(__spec__.name, folder, sigma)
    return row


def measure(folder: Path, sigma: float) -> dict[str, Any]:
    reference, target, confidence = (np.load(folder / f"{name}.npy") for name in MAPS)
    problem = Problem(reference, target, confidence, clean=target)
    solve(problem.centre(16, 16), sigma)
    # The output is subtracted, not held before: freeing it would leave the call memory to reuse.
    growth, result = memory.growth(lambda: solve(problem, sigma))
    return {
        "sigma": sigma,
        "pixels": target.size,
        "bytes_per_pixel": (growth - result.nbytes) / target.size,
        "bytes_per_pixel_with_output": growth / target.size,
    }


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), float(sys.argv[2]))))
