"""Describe the machine, the versions, and the work of other processes during a measurement."""

import ctypes
import multiprocessing
import os
import platform
import re
import resource
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


def in_fresh_process(function: Callable[..., T], *arguments: Any) -> T:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(function, *arguments).result()


def growth(call: Callable[[], Any]) -> tuple[int, Any]:
    """Return by how many bytes a call raises this process's peak memory, and the call's result."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # reused memory that was freed but not returned would not be counted
        trim(0)
    with suppress(OSError):  # makes the current size the highest so far
        Path("/proc/self/clear_refs").write_text("5")
    # Fills the process up to its peak where the system cannot reset the peak.
    ballast = np.ones(max(0, _status("VmHWM") - _status("VmRSS")), np.uint8)
    before = _peak()
    result = call()
    raised = _peak() - before
    del ballast
    return raised, result


def _peak() -> int:
    # ru_maxrss would include the parent's size before exec
    unit = 1 if sys.platform == "darwin" else 1024
    return _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _status(name: str) -> int:
    """Bytes that Linux reports for this process; 0 elsewhere."""
    return sum(1024 * int(n) for n in re.findall(rf"{name}:\s*(\d+)", _proc("self/status")))


def _proc(name: str) -> str:
    file = Path("/proc") / name
    return file.read_text() if file.exists() else ""


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_counts() -> tuple[int, ...]:
    return (1, 2) if cores() >= 2 else (1,)


def cpu_model() -> str:
    names = re.findall(r"model name\s*: (.*)", _proc("cpuinfo"))
    return names[0].strip() if names else platform.processor() or platform.machine()


class Others:
    """Count the cores that other processes keep busy: distrust times measured meanwhile.

    `ours` gives the CPU seconds so far of the processes that belong to the measurement.
    """

    def __init__(self, ours: Callable[[], float] = time.process_time) -> None:
        self._ours = ours
        self._before = time.perf_counter(), ours(), _busy()

    def cores(self) -> float | None:
        """Mean number of busy cores since the start; None if the system does not tell."""
        now = time.perf_counter(), self._ours(), _busy()
        elapsed, ours, busy = (b - a for a, b in zip(self._before, now, strict=True))
        return max(0.0, (busy - ours) / elapsed) if busy > 0 else None


def _busy() -> float:
    fields = [int(ticks) for ticks in _proc("stat").partition("\n")[0].split()[1:9]]
    idle = sum(fields[3:5])  # with waiting for files
    return (sum(fields) - idle) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def about(more_versions: Mapping[str, str]) -> dict[str, Any]:
    versions = {"python": platform.python_version()}
    for package in ("bilateral", "numpy", "scipy", "scikit-image"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:  # importable, but not installed
            versions[package] = "(version unknown)"
    place = {"cpu": cpu_model(), "cores": cores()}
    return {"machine": place, "versions": versions | dict(more_versions)}


def describe(about: Mapping[str, Any]) -> str:
    place, versions = about["machine"], about["versions"].items()
    load = f", load {about['load_before']:.1f} before" if "load_before" in about else ""
    numbers = ", ".join(f"{name} {number}" for name, number in versions)
    return f"{about['date']}, {place['cpu']}, {place['cores']} cores{load}; {numbers}"
