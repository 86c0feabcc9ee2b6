"""Peak memory of one call, measured in a fresh process (this module, run as a script)."""

import ctypes
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed.cases import Problem, solve

MAPS = ("reference", "target", "confidence")


def peak_memory(problem: Problem, sigma: float) -> dict[str, Any]:
    """Bytes per pixel at the peak of a call, beyond its inputs and its output."""
    with tempfile.TemporaryDirectory() as folder:
        for name in MAPS:
            np.save(Path(folder) / name, getattr(problem, name))
        command = [sys.executable, "-m", __spec__.name, folder, str(sigma)]
        answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(answer.stdout)
    return result


def measure(folder: Path, sigma: float) -> dict[str, Any]:
    reference, target, confidence = (np.load(folder / f"{name}.npy") for name in MAPS)
    problem = Problem(reference, target, confidence, clean=target)
    solve(problem.centre(16, 16), sigma)
    _forget_peak()
    ballast = np.ones(
        max(0, _status("VmHWM") - _status("VmRSS")), np.uint8
    )  # up to the peak, if it stays
    before = _peak()
    result = solve(problem, sigma)
    # The output is subtracted, not held before: freeing it would leave the call memory to reuse.
    growth = _peak() - before
    del ballast
    return {
        "sigma": sigma,
        "pixels": target.size,
        "bytes_per_pixel": (growth - result.nbytes) / target.size,
        "bytes_per_pixel_with_output": growth / target.size,
    }


def _forget_peak() -> None:
    """Make the current size the highest so far, where the system can (Linux)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # memory freed but kept would be used again, and not be counted
        trim(0)
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _peak() -> int:
    """Largest resident size so far, in bytes."""
    # ru_maxrss would include the parent's size before exec
    return _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def _status(name: str) -> int:
    """Bytes that Linux tells of this process; 0 elsewhere."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), 0)


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), float(sys.argv[2]))))
