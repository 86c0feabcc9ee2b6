"""Killed at random moments: every result that exists is complete, and a new run does the rest."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("typer", reason="the command line needs typer")
pytest.importorskip("imagecodecs", reason="PNG files need imagecodecs")
if not hasattr(os, "fork"):
    pytest.skip("processes are started by forking", allow_module_level=True)

from bilateral.io import atomic
from support import scenes_on_disk as disk

FILES, KILLS, INTERRUPTIONS = 50, 30, 4


class Nursery:
    """See `nursery.py`."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).parents[1] / "support" / "nursery.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder,
        )  # fmt: skip

    def run(self, *arguments: str, after: float = 0, number: int | None = None) -> int:
        """The exit code; a signal is sent `after` some seconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([arguments, after, number]), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("killed")
    disk.folders(path, FILES, (72, 96))
    return path


@pytest.fixture(scope="module")
def nursery(folder: Path) -> Iterator[Nursery]:
    made = Nursery(folder)
    yield made
    made.close()


def command(out: str) -> list[str]:
    return ["depth", "depths", "photos", "-o", out, "--skip-existing", "--jobs", "2", "--preview"]


def results(folder: Path) -> dict[str, bytes]:
    """All files that are no temporary ones."""
    found = {}
    for path in folder.iterdir() if folder.exists() else ():
        if path.name.startswith(atomic.PREFIX):
            assert path.suffix == atomic.SUFFIX
        else:
            found[path.name] = path.read_bytes()
    return found


@pytest.fixture(scope="module")
def whole(folder: Path, nursery: Nursery) -> tuple[dict[str, bytes], float]:
    """What a run gives that nobody disturbs, and how long it takes."""
    began = time.perf_counter()
    assert nursery.run(*command("whole")) == 0
    seconds = time.perf_counter() - began
    found = results(folder / "whole")
    assert len(found) == 2 * FILES
    return found, seconds


def test_killing(folder: Path, nursery: Nursery, whole: tuple[dict[str, bytes], float]) -> None:
    expected, seconds = whole
    rng = random.Random(0)
    killed = halfway = kept = 0
    out = folder / "killed 0"
    for number in range(400):
        if killed == KILLS:
            break
        after = rng.uniform(0, seconds / 2)
        if nursery.run(*command(out.name), after=after, number=signal.SIGKILL) == 0:
            out = folder / f"killed {number + 1}"
            seconds *= 0.9  # of the other work on the machine, some has ended
            continue
        killed += 1
        found = results(out)
        assert found.items() <= expected.items()
        halfway += 0 < len(found) < 2 * FILES
        kept += len(found)
    assert killed == KILLS
    assert halfway > 5
    assert kept > FILES
    for path in folder.glob("killed *"):
        assert nursery.run(*command(path.name)) == 0
        assert results(path) == expected


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupting(
    number: int,
    code: int,
    folder: Path,
    nursery: Nursery,
    whole: tuple[dict[str, bytes], float],
) -> None:
    expected, seconds = whole
    rng = random.Random(number)
    stopped = 0
    for attempt in range(40):
        if stopped == INTERRUPTIONS:
            break
        out = folder / f"interrupted {number} {attempt}"
        after = rng.uniform(0.3, 0.9) * seconds
        if nursery.run(*command(out.name), after=after, number=number) == code:
            stopped += 1
        else:
            seconds *= 0.9
        assert results(out).items() <= expected.items()
        assert not list(out.glob(f"{atomic.PREFIX}*"))
    assert stopped == INTERRUPTIONS
