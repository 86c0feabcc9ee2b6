"""Allocations of the core that fail: always MemoryError, no leak, the next call works."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(sys.platform != "linux", reason="needs LD_PRELOAD and fork")
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_every_allocation_of_a_filter_fails_once() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "fuzz.faults", "median", "domain transform"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "median: " in result.stdout
    assert "domain transform: " in result.stdout


@pytest.mark.stress
@pytest.mark.skipif(sys.platform != "linux", reason="needs LD_PRELOAD and fork")
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize("call", ["grid", "solve sparse", "robust"])
def test_failing_allocations_of_a_solve_leave_nothing_behind(call: str) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "fuzz.faults", call, "--every", "5"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert "raised MemoryError" in result.stdout, result.stderr
    # Lists among the arguments, of a few bytes, may still end the process: docs/reliability.md.
    for wrong in ("leaked", "spoiled", "another"):
        assert wrong not in result.stdout
