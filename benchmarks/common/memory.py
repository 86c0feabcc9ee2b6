"""Measure the peak memory of a function: call it in a fresh process of its own."""

import ctypes
import multiprocessing
import resource
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


def in_fresh_process(function: Callable[..., T], *arguments: Any) -> T:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(function, *arguments).result()


def growth(call: Callable[[], Any]) -> tuple[int, Any]:
    """Return by how many bytes a call raises this process's peak memory, and the call's result."""
    _reset_peak()
    # Fills the process up to its peak where the system cannot reset the peak.
    ballast = np.ones(max(0, _status("VmHWM") - _status("VmRSS")), np.uint8)
    before = _peak()
    result = call()
    raised = _peak() - before
    del ballast
    return raised, result


def _reset_peak() -> None:
    """Make the current size the highest so far, where the system can (Linux)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # reused memory that was freed but not returned would not be counted
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
    """Bytes that Linux reports for this process; 0 elsewhere."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), 0)
