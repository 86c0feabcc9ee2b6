"""Errors that many files share are one line; long runs print lines of progress."""

from pathlib import Path

import pytest

pytest.importorskip("typer", reason="the command line needs typer")
pytest.importorskip("imagecodecs", reason="PNG files need imagecodecs")

from bilateral.cli.display.progress import BatchProgress
from bilateral.cli.record import Record
from support import scenes_on_disk as disk
from support.command import Main, fails
from support.scenes_on_disk import records


def test_equal_errors_are_one_line(here: Path, call: Main) -> None:
    names = disk.folders(here, 9)
    for name in names:
        (here / "depths" / f"{name}.png").write_bytes(b"")
    common = ("depth", "depths", "photos", "-o", "out")
    fails(call(*common), "depths/frame 000.png: the file is empty. (9 files; --verbose lists them)")
    code, out, err = call(*common, "--json")
    assert (code, len(err.splitlines())) == (1, 1)
    errors = {record["error"] for record in records(out)}
    assert errors == {f"depths/{name}.png: the file is empty." for name in names}
    code, _, err = call(*common, "--verbose")
    assert [line for line in err.splitlines() if "is empty" in line] == err.splitlines()
    assert len(err.splitlines()) == 9


def test_errors_of_a_shared_file_are_one_line(here: Path, call: Main) -> None:
    disk.folders(here, 3)
    (here / "photo.png").write_bytes(b"")
    fails(call("depth", "depths", "photo.png", "-o", "out"), "photo.png: the file is", "(3 files;")


def test_missing_partners_are_one_line(here: Path, call: Main) -> None:
    names = disk.folders(here, 5)
    for name in names[1:]:
        (here / "photos" / f"{name}.jpg").unlink()
    outcome = call("depth", "depths", "photos", "-o", "out", "--invalid", 0)
    fails(outcome, "no file for frame 001 in photos. (4 files; --verbose lists them)")


def test_errors_that_differ_are_lines_of_their_own(here: Path, call: Main) -> None:
    names = disk.folders(here, 4)
    for name, data in zip(names, (b"", b"", b"text", b"\x89PNG\r\n\x1a\n"), strict=True):
        (here / "depths" / f"{name}.png").write_bytes(data)
    code, _, err = call("depth", "depths", "photos", "-o", "out")
    assert code == 1
    lines = err.splitlines()
    assert len(lines) == 3
    assert ["(2 files;" in line for line in lines] == [True, False, False]


def progress_lines(capsys: pytest.CaptureFixture[str], step: float, **options: bool) -> list[str]:
    """Return the lines of a batch of 40 files that take `step` seconds each."""
    seconds = 0.0
    settings = {"many": True, "interactive": False, "quiet": False, **options}
    with BatchProgress(40, clock=lambda: seconds, **settings) as progress:
        for number in range(40):
            seconds += step
            progress.advance(Record(str(number)))
    return capsys.readouterr().err.splitlines()


def test_long_runs_print_lines(capsys: pytest.CaptureFixture[str]) -> None:
    lines = progress_lines(capsys, 1)
    assert lines == [
        "bilateral: 10 of 40 files, 1/s, 30 s left",
        "bilateral: 20 of 40 files, 1/s, 20 s left",
        "bilateral: 30 of 40 files, 1/s, 10 s left",
        "bilateral: 40 of 40 files, 1/s",
    ]
    slow = progress_lines(capsys, 300)
    assert slow[0] == "bilateral: 1 of 40 files, 0.00333/s, 3 h 15 min left"
    assert progress_lines(capsys, 0.2) == []
    assert progress_lines(capsys, 1, quiet=True) == []
    assert progress_lines(capsys, 1, many=False) == []
