"""Measure the memory that a block of code takes at its peak."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class Peak:
    """Growth of the process, in bytes."""

    growth = 0


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Measure by how much the resident memory grows at its peak in the block."""
    peak = Peak()
    try:
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    except OSError:
        pytest.skip("this system does not reset the peak of memory")
    before = _status("VmRSS")
    yield peak
    peak.growth = _status("VmHWM") - before


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    raise LookupError(name)
