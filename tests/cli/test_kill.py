"""Kill the command at random moments: each result is complete or absent, a new run resumes."""

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

FILES = 50


class ForkServer:
    """Client of `support/fork_server.py`."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).parents[1] / "support" / "fork_server.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder,
        )  # fmt: skip

    def run(self, *arguments: str, after: float = 0, number: int | None = None) -> int:
        """Run the command, send it a signal `after` some seconds, return its exit code."""
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
def server(folder: Path) -> Iterator[ForkServer]:
    started = ForkServer(folder)
    yield started
    started.close()


def command(out: str) -> list[str]:
    return ["depth", "depths", "photos", "-o", out, "--skip-existing", "--jobs", "2", "--preview"]


def results(folder: Path) -> dict[str, bytes]:
    """Read all files but the temporary ones."""
    contents = {}
    for path in folder.iterdir() if folder.exists() else ():
        if path.name.startswith(atomic.PREFIX):
            assert path.suffix == atomic.SUFFIX
        else:
            contents[path.name] = path.read_bytes()
    return contents


@pytest.fixture(scope="module")
def whole(folder: Path, server: ForkServer) -> tuple[dict[str, bytes], float]:
    """Results of an undisturbed run, and the seconds it takes."""
    began = time.perf_counter()
    assert server.run(*command("whole")) == 0
    seconds = time.perf_counter() - began
    undisturbed = results(folder / "whole")
    assert len(undisturbed) == 2 * FILES
    return undisturbed, seconds


@pytest.mark.stress
@pytest.mark.parametrize("kills", [pytest.param(6, marks=pytest.mark.smoke), 30])
def test_killing(
    kills: int, folder: Path, server: ForkServer, whole: tuple[dict[str, bytes], float]
) -> None:
    expected, seconds = whole
    rng = random.Random(0)
    killed = halfway = kept = 0
    out = folder / f"killed {kills} 0"
    for number in range(400):
        if killed == kills:
            break
        after = rng.uniform(0, seconds / 2)
        if server.run(*command(out.name), after=after, number=signal.SIGKILL) == 0:
            out = folder / f"killed {kills} {number + 1}"
            seconds *= 0.9  # other work on the machine has ended: this run was faster
            continue
        killed += 1
        complete = results(out)
        assert complete.items() <= expected.items()
        halfway += 0 < len(complete) < 2 * FILES
        kept += len(complete)
    assert killed == kills
    assert halfway > kills // 6
    assert kept > kills * FILES // 30
    for path in folder.glob(f"killed {kills} *"):
        assert server.run(*command(path.name)) == 0
        assert results(path) == expected


@pytest.mark.stress
@pytest.mark.parametrize("interruptions", [pytest.param(1, marks=pytest.mark.smoke), 4])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupting(
    number: int,
    code: int,
    interruptions: int,
    folder: Path,
    server: ForkServer,
    whole: tuple[dict[str, bytes], float],
) -> None:
    expected, seconds = whole
    rng = random.Random(number)
    stopped = 0
    for attempt in range(40):
        if stopped == interruptions:
            break
        out = folder / f"interrupted {number} {interruptions} {attempt}"
        after = rng.uniform(0.3, 0.9) * seconds
        if server.run(*command(out.name), after=after, number=number) == code:
            stopped += 1
        else:
            seconds *= 0.9
        assert results(out).items() <= expected.items()
        assert not list(out.glob(f"{atomic.PREFIX}*"))
    assert stopped == interruptions
