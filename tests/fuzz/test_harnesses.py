"""The harnesses of random calls: each runs without a finding, and a wrong result is one."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("OpenEXR", reason="the files need OpenEXR")
pytest.importorskip("starlette", reason="the messages need the studio")

import fuzz.worker as worker
from fuzz.call import Call, Case, Finding
from fuzz.draw import Draw
from fuzz.harnesses import NAMES, load

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::bilateral.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:.*look swapped")
@pytest.mark.filterwarnings("ignore::bilateral.validation.ZeroDepthWarning")
def test_a_harness_finds_nothing(name: str) -> None:
    harness, draw = load(name), Draw()
    calls = [worker.run_case(harness, seed, draw) for seed in range(4)]
    assert sum(count for count, _ in calls) > 0


def test_a_seed_draws_the_same_case_again() -> None:
    draw, drawn = Draw(), []
    for seed in (5, 6, 5):
        draw.restart(seed)
        drawn.append((draw.random(), draw.numpy.random(3).tolist(), draw.photo((4, 5)).tobytes()))
    assert drawn[0] == drawn[2]
    assert drawn[0] != drawn[1]


def raises(_: Any, message: str) -> None:
    raise ValueError(message)


def case(call: Call) -> Any:
    def harness(_: Draw) -> Case:
        yield call

    return harness


def test_findings() -> None:
    good = Call(raises, 0, "size: expected a number", wrong="size")
    assert worker.run_case(case(good), 0, Draw()) == (1, 0)
    for call, error in (
        (Call(raises, 0, "no name", wrong="size"), Finding),
        (Call(np.zeros, 3, wrong="size"), Finding),
        (Call(raises, 0, "size"), ValueError),
    ):
        with pytest.raises(error):
            worker.run_case(case(call), 0, Draw())


def test_the_command_counts_and_reports(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "fuzz", "messages", "median", "--cases", "30"]
    result = subprocess.run(
        [*command, "--minutes", "1", "--seed", "7", "--report", str(report)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "BILATERAL_NUM_THREADS": "1"},
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "seed 7" in result.stdout
    assert "| median |" in report.with_suffix(".md").read_text()
