"""The command in its own process: stdout, terminal, signals, missing packages."""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs typer")
pytest.importorskip("imagecodecs", reason="PNG files need imagecodecs")

from bilateral import io, tasks
from support import scenes_on_disk as disk


def test_stdout(here: Path) -> None:
    done = disk.run("depth", "depth.png", "photo.png", "-o", "-", "--invalid", 0, cwd=here)
    assert (done.returncode, done.stderr) == (0, b"")
    expected = tasks.refine_depth(disk.scene().depth, disk.scene().photo, invalid=0)
    (here / "piped").write_bytes(done.stdout)
    np.testing.assert_array_equal(io.read(here / "piped"), expected)
    assert not (here / "-").exists()
    assert not (here / "depth").exists()
    done = disk.run(
        "depth", "depth.png", "photo.png", "-o", "-", "--format", "pfm", "--invalid", 0, cwd=here
    )
    assert done.stdout.startswith(b"Pf\n64 48\n")


def to_device(device: str, here: Path, *arguments: object) -> tuple[int, str]:
    """Run the command with stdout to a device; return its exit code and stderr."""
    import subprocess

    with open(device, "wb") as stdout:
        done = subprocess.run(
            [*disk.COMMAND, *map(str, arguments)], cwd=here, stdout=stdout, text=True,
            stderr=subprocess.PIPE, timeout=60,
        )  # fmt: skip
    return done.returncode, done.stderr


FILES = ("depth", "depth.png", "photo.png", "-o")
FULL = "bilateral: stdout: cannot be written: No space left on device.\n"


@pytest.mark.parametrize("arguments", [(*FILES, "o.png", "--json"), (*FILES, "-"), ("info",)])
def test_a_full_disk_below_stdout(arguments: tuple[str, ...], here: Path) -> None:
    assert to_device("/dev/full", here, *arguments) == (1, FULL)


@pytest.mark.stress
@pytest.mark.parametrize(
    "arguments", [("--help",), ("--version",), ("demo", "--list"), ("info", "--json")]
)
def test_texts_for_a_full_disk(arguments: tuple[str, ...], here: Path) -> None:
    assert to_device("/dev/full", here, *arguments) == (1, FULL)


@pytest.mark.parametrize("arguments", [(*FILES, "o.png", "--json"), (*FILES, "-"), ("info",)])
def test_a_pipe_that_nobody_reads(arguments: tuple[str, ...], here: Path) -> None:
    import subprocess

    process = subprocess.Popen(
        [*disk.COMMAND, *arguments], cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert (process.stderr.read(), process.wait(60)) == (b"", 1)
    process.stderr.close()


@pytest.mark.stress
def test_closed_streams(here: Path) -> None:
    import subprocess

    for shell, code, err in (
        ("-o o.png --json >&-", 1, "bilateral: stdout: cannot be written: Bad file descriptor.\n"),
        ("-o - >&-", 1, "bilateral: stdout: cannot be written: Bad file descriptor.\n"),
        ("-o o.png >&-", 0, ""),
    ):
        (here / "o.png").unlink(missing_ok=True)
        command = f"{sys.executable} -m bilateral depth depth.png photo.png --invalid 0 {shell}"
        done = subprocess.run(command, shell=True, cwd=here, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (code, err)
    command = f"{sys.executable} -m bilateral depth none.png photo.png -o - 2>&-"
    done = subprocess.run(command, shell=True, cwd=here, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")


@pytest.mark.parametrize("package", ["typer", "PIL", "imagecodecs", "tifffile", "OpenEXR"])
def test_missing_packages_are_named(package: str, here: Path) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None; from bilateral.cli.main import main;"
        "sys.exit(main())"
    )
    import subprocess

    target = {"OpenEXR": "x.exr", "tifffile": "x.tif", "PIL": "x.jpg"}.get(package, "x.png")
    more = ["--dtype", "uint8"] if package == "PIL" else []
    command = [sys.executable, "-c", code, "depth", "depth.png", "photo.png", "-o", target, *more]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=60)
    extra = "exr" if package == "OpenEXR" else "cli"
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert f'pip install "bilateral[{extra}]"' in done.stderr
    assert package in done.stderr


def terminal(here: Path, *arguments: object) -> str:
    """Run the command on a pseudo-terminal and return its output."""
    import pty
    import subprocess

    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(
        [*disk.COMMAND, *map(str, arguments)], cwd=here, stdin=slave, stdout=slave, stderr=slave,
        env=environment,
    )  # fmt: skip
    os.close(slave)
    shown = b""
    while True:
        try:
            more = os.read(master, 4096)
        except OSError:
            break
        if not more:
            break
        shown += more
    os.close(master)
    assert process.wait(60) == 0
    return shown.decode()


def test_a_terminal_sees_progress_and_a_summary(here: Path) -> None:
    disk.folders(here, 4)
    shown = terminal(here, "depth", "depths", "photos", "-o", "out", "--truth", "truths")
    assert "4/4" in shown
    assert "done" in shown
    assert "mae" in shown
    assert "out.png  48 x 64 uint16" in terminal(
        here, "depth", "depth.png", "photo.png", "-o", "out.png"
    )
    assert (
        terminal(here, "depth", "depth.png", "photo.png", "-o", "q.png", "-q", "--invalid", 0) == ""
    )


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupting(number: int, code: int, tmp_path: Path) -> None:
    import subprocess

    disk.folders(tmp_path, 30, (240, 320))
    command = [*disk.COMMAND, "depth", "depths", "photos", "-o", "out", "--jobs", "2"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    out = tmp_path / "out"
    while not (out.is_dir() and len(os.listdir(out)) > 2):
        assert process.poll() is None
        time.sleep(0.01)
    began = time.monotonic()
    process.send_signal(number)
    _, err = process.communicate(timeout=20)
    assert time.monotonic() - began < 10
    assert process.returncode == code
    assert len(err.splitlines()) == 1
    names = os.listdir(out)
    assert 0 < len(names) < 30
    for name in names:
        assert io.read(out / name).shape == (240, 320)
