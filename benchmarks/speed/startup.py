"""How long ``import bilateral`` takes once NumPy is there."""

import subprocess
import sys

from benchmarks.timing import Timing

SCRIPT = """
import time, numpy
began = time.perf_counter()
import bilateral
print(time.perf_counter() - began)
"""


def import_time(repeats: int) -> Timing:
    """In fresh processes, after one that warms the file cache."""
    seconds = [_once() for _ in range(1 + repeats)]
    return Timing.of(seconds[1:])


def _once() -> float:
    command = [sys.executable, "-c", SCRIPT]
    return float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
