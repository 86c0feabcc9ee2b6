"""Describe the machine, the versions, and the work of other processes during a measurement."""

import ctypes
import multiprocessing
import os
import platform
import resource
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
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


def cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_counts() -> tuple[int, ...]:
    """Numbers of threads to measure with."""
    return (1, 2) if cores() >= 2 else (1,)


def cpu_model() -> str:
    """Name of the CPU from /proc/cpuinfo; elsewhere from Python."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


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
    """CPU seconds of all cores on any work, including time that a hypervisor steals."""
    try:
        user, nice, system, _idle, _iowait, irq, softirq, steal, *_ = (
            int(ticks) for ticks in Path("/proc/stat").read_text().splitlines()[0].split()[1:]
        )
    except (OSError, ValueError):
        return 0.0
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def about(more_versions: Mapping[str, str]) -> dict[str, Any]:
    """The machine and the versions, for JSON."""
    versions = {"python": platform.python_version()}
    for package in ("bilateral", "numpy", "scipy", "scikit-image"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:  # importable, but not installed
            versions[package] = "(version unknown)"
    place = {"cpu": cpu_model(), "cores": cores()}
    return {"machine": place, "versions": versions | dict(more_versions)}


def describe(about: Mapping[str, Any]) -> str:
    """Date, machine and versions in words."""
    place, versions = about["machine"], about["versions"].items()
    load = f", load {about['load_before']:.1f} before" if "load_before" in about else ""
    numbers = ", ".join(f"{name} {number}" for name, number in versions)
    return f"{about['date']}, {place['cpu']}, {place['cores']} cores{load}; {numbers}"
