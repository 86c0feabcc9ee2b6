"""Outputs are different files, no inputs, and writable: all checked before the work."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs typer")
pytest.importorskip("imagecodecs", reason="PNG files need imagecodecs")

from bilateral import io, tasks
from bilateral.cli.files import output_plan
from bilateral.cli.files.outputs import output_name
from support import scenes_on_disk as disk
from support.command import Main, fails, works

DEPTH = ("depth", "depth.png", "photo.png", "--invalid", 0)


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if a command starts to work."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the command started to work")

    monkeypatch.setattr(tasks, "refine_depth", refuse)


@pytest.mark.parametrize("report", ["out.png", "./out.png", "sub/../out.png", "link.png"])
@pytest.mark.usefixtures("no_work")
def test_the_report_is_not_the_result(report: str, here: Path, call: Main) -> None:
    (here / "out.png").write_bytes(b"mine")
    (here / "sub").mkdir()
    (here / "link.png").symlink_to("out.png")
    outcome = call(*DEPTH, "-o", "out.png", "--report", report, "--force")
    fails(outcome, "written twice", "the result of depth.png", "the report", code=2)
    assert (here / "out.png").read_bytes() == b"mine"


@pytest.mark.usefixtures("no_work")
def test_the_report_is_no_preview_and_no_input(here: Path, call: Main) -> None:
    common = (*DEPTH, "-o", "out.png", "--force")
    outcome = call(*common, "--preview", "--report", "out.preview.png")
    fails(outcome, "the preview of depth.png", "the report", code=2)
    before = (here / "photo.png").read_bytes()
    for name in ("photo.png", "depth.png"):
        fails(call(*common, "--report", name), f"would replace the input {name}", code=2)
    fails(call(*DEPTH, "-o", "photo.png", "--force"), "replace the input photo.png", code=2)
    (here / "link.png").symlink_to("photo.png")
    fails(call(*DEPTH, "-o", "link.png", "--force"), "replace the input photo.png", code=2)
    outcome = call(*DEPTH, "--truth", "truth.png", "-o", "truth.png", "--force")
    fails(outcome, "replace the input truth.png", code=2)
    assert (here / "photo.png").read_bytes() == before


def test_a_result_may_replace_its_own_input(here: Path, call: Main) -> None:
    before = (here / "depth.png").read_bytes()
    fails(call(*DEPTH, "-o", "depth.png"), "exists already")
    assert (here / "depth.png").read_bytes() == before
    works(call(*DEPTH, "-o", "depth.png", "--force"))
    assert (here / "depth.png").read_bytes() != before
    works(call(*DEPTH, "-o", ".", "--force"))


@pytest.mark.usefixtures("no_work")
def test_results_of_a_folder_differ(here: Path, call: Main) -> None:
    (here / "in").mkdir()
    for name in ("a.tif", "a.preview.tif"):
        io.write(here / "in" / name, disk.scene().depth)
    common = ("depth", "in", "photo.png", "-o", "out", "--format", "png")
    fails(call(*common, "--preview"), "out/a.preview.png: would be written twice", code=2)
    assert not (here / "out").exists()
    outcome = call(
        "depth", "in/*.tif", "photo.png", "-o", ".", "--format", "png", "--report", "a.png"
    )
    fails(outcome, "the result of in/a.tif", "the report", code=2)


@pytest.mark.usefixtures("no_work")
def test_case_counts_only_where_the_file_system_says_so(
    here: Path, call: Main, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_plan, "_ignores_case", lambda _: True)
    fails(call(*DEPTH, "-o", "Out.png", "--report", "oUT.png"), "written twice", code=2)
    fails(call(*DEPTH, "-o", "Photo.png", "--force"), "replace the input photo.png", code=2)


@pytest.mark.usefixtures("no_work")
def test_reports_that_cannot_be_written(here: Path, call: Main) -> None:
    (here / "folder").mkdir()
    (here / "file").touch()
    common = (*DEPTH, "-o", "out.png", "--force", "--report")
    fails(call(*common, "folder"), "folder: is a folder")
    fails(call(*common, "file/r.html"), "file/r.html: cannot be written: Not a directory")
    fails(call(*common, "/proc/none/r.html"), "/proc/none/r.html: cannot be written")
    fails(call(*DEPTH, "-o", "/proc/none/x.png"), "/proc/none/x.png: cannot be written")
    fails(call(*common, "x" * 300), "too long")
    (here / "loop").symlink_to("loop")
    fails(call(*common, "loop"), "loop: cannot be written")
    assert not (here / "out.png").exists()


def test_a_new_folder_is_made_only_for_a_result(here: Path, call: Main) -> None:
    fails(call("depth", "none.png", "photo.png", "-o", "new/x.png", "--report", "r/r.html"), "none")
    assert not (here / "new").exists()
    assert not (here / "r").exists()


def test_stdout_may_be_a_file(here: Path) -> None:
    command = [sys.executable, "-m", "bilateral", *map(str, DEPTH), "--force", "--report", "r"]
    for more in (("-o", "-"), ("-o", "o.png", "--json")):
        with open(here / "r", "wb") as file:
            done = subprocess.run(
                [*command, *more], cwd=here, stdout=file, stderr=subprocess.PIPE, text=True
            )
        assert done.returncode == 2
        assert "r: would be written twice, to stdout and as the report" in done.stderr
        assert (here / "r").read_bytes() == b""


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("name", ["out.mp4", "out.gif", "out.MOV", "out.png", "new/out.webm"])
def test_many_results_need_a_folder(name: str, here: Path, call: Main) -> None:
    disk.folders(here, 2)
    before = sorted(here.iterdir())
    outcome = call("superres", "depths", "photos", "-o", name)
    fails(outcome, "--output: expected a folder for many files", name, "slash", code=2)
    fails(call(*DEPTH, "-o", name.replace(".png", ".mkv")), "--output", ".png", code=2)
    assert sorted(here.iterdir()) == before
    fails(call("depth", "depths", "photos", "-o", ""), "--output: expected the name", code=2)


def test_folders_with_a_dot(here: Path, call: Main) -> None:
    disk.folders(here, 1)
    for name in ("run.v2", "sigma_0.5", "out.mp4/"):
        works(call("depth", "depths", "photos", "-o", name, "--invalid", 0))
        assert [path.name for path in (here / name).iterdir()] == ["frame 000.png"]


def test_results_without_a_format(here: Path, call: Main, no_work: None) -> None:
    (here / "depth.png").rename(here / "depth")
    (here / "out").mkdir()
    fails(call("depth", "depth", "photo.png", "-o", "out"), "out/depth: expected", "--format")


def test_names_of_results() -> None:
    input_path = Path("in/depth.png")
    names = {
        "": "depth", "1": "1", "a/1": "a/1", "/1": "1", "1/": "1", "../1": "1", ".v2": "v2",
        "..": "depth", "a/../b": "a/b", "/": "depth",
    }  # fmt: skip
    for key, name in names.items():
        assert output_name(key, input_path) == name
    assert not os.path.isabs(output_name("//x", input_path))


def test_a_pattern_of_one_file(here: Path, call: Main) -> None:
    works(call("depth", "depth*.png", "photo*.png", "-o", "out", "--invalid", 0))
    assert [path.name for path in (here / "out").iterdir()] == ["depth.png"]
    np.testing.assert_array_equal(
        io.read(here / "out" / "depth.png"),
        tasks.refine_depth(disk.scene().depth, disk.scene().photo, invalid=0),
    )


def test_patterns_never_leave_the_output_folder(here: Path, call: Main) -> None:
    (here / "in").mkdir()
    for name in ("_1.png", "d.._2.png"):
        io.write(here / "in" / name, disk.scene().depth)
    works(call("depth", "in/*_*.png", "photo.png", "-o", "out/x", "--invalid", 0))
    written = sorted(str(path.relative_to(here)) for path in here.rglob("*.png"))
    assert {name for name in written if "/" in name and not name.startswith("in/")} == {
        "out/x/1.png",
        "out/x/d../2.png",
    }
