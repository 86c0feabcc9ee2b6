"""Wrong usage, wrong values, warnings and unexpected errors, each in one line."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs typer")
pytest.importorskip("imagecodecs", reason="PNG files need imagecodecs")

from bilateral import io, tasks
from support import scenes_on_disk as disk
from support.command import Main, fails, works
from support.scenes_on_disk import records


def test_wrong_usage(here: Path, call: Main) -> None:
    disk.folders(here, 2)
    wrong = {
        ("depth",): ["DEPTH", "bilateral depth --help"],
        ("depth", "depth.png", "photo.png"): ["--output"],
        ("depth", "a.png", "b.png", "c.png", "-o", "o"): ["quote patterns"],
        ("paint",): ["paint", "bilateral --help"],
        ("depth", "depth.png", "photo.png", "-o", "o.png", "--nonsense"): ["--nonsense"],
        ("depth", "depth.png", "photo.png", "-o", "o.png", "--sigma-xy", -1): ["--sigma-xy", "-1"],
        ("depth", "depth.png", "photo.png", "-o", "o.png", "--sigma-xy", "nan"): ["--sigma-xy"],
        ("depth", "depth.png", "photo.png", "-o", "o.png", "--preset", "x"): ["--preset", "sensor"],
        ("depth", "depth.png", "photo.png", "-o", "o.png", "--jobs", 0): ["--jobs"],
        ("depth", "depth.png", "photo.png", "-o", "o.gif"): ["o.gif", ".png"],
        ("depth", "depth.png", "photo.png", "-o", "o"): ["--output", ".png"],
        ("depth", "depths", "photos", "-o", "-"): ["stdout"],
        ("depth", "depths", "photos", "-o", "o.png"): ["expected a folder", "o.png"],
        ("depth", "depths", "photos", "-o", "o", "--format", "gif"): ["--format", "gif"],
        ("depth", "none/*.png", "photos", "-o", "o"): ["no file matches none/*.png"],
        ("depth", "depth.png", "photo.png", "-o", "-", "--json"): ["--json"],
        ("depth", "depth.png", "photo.png", "-o", "-", "--preview"): ["--preview"],
        ("stereo", "depth.png", "photo.png", "-o", "x.pfm"): ["--max-disparity"],
    }
    (here / "empty").mkdir()
    wrong["depth", "empty", "photo.png", "-o", "o"] = ["no picture", "empty"]
    before = sorted(here.iterdir())
    for arguments, texts in wrong.items():
        fails(call(*arguments), *texts, code=2)
    assert sorted(here.iterdir()) == before


def test_values_that_only_the_task_can_refuse(here: Path, call: Main) -> None:
    common = ("depth", "depth.png", "photo.png", "-o", "o.png")
    fails(call(*common, "--mask", "photo.png"), "photo.png", "one number per pixel")
    io.write(here / "small.png", np.zeros((5, 5), np.uint8))
    fails(call(*common, "--confidence", "small.png"), "confidence: expected", "(5, 5)")
    outcome = call("depth", "depth.png", "photo.png", "-o", "o.jpg", "--preview")
    fails(outcome, "o.jpg: JPEG holds uint8")
    assert not (here / "o.preview.png").exists()
    fails(call(*common, "--dtype", "float7"), "--dtype", code=2)
    works(call(*common, "--dtype", "uint8", "--invalid", 0))


def test_pages_and_keys(here: Path, call: Main) -> None:
    made = disk.scene()
    io.write(here / "stack.tif", np.stack([made.truth, made.depth]), pages=True)
    np.savez(here / "maps.npz", first=made.truth, second=made.depth)
    common = ("photo.png", "-o")
    fails(call("depth", "stack.tif", *common, "a.png"), "--page")
    fails(call("depth", "maps.npz", *common, "a.png"), "--key", "first, second")
    works(call("depth", "stack.tif", *common, "a.png", "--page", 1, "--invalid", 0))
    works(call("depth", "maps.npz", *common, "b.png", "--key", "second", "--invalid", 0))
    assert (io.read(here / "a.png") == io.read(here / "b.png")).all()


def test_debug_shows_where(here: Path, call: Main) -> None:
    code, _, err = call("depth", "none.png", "photo.png", "-o", "o.png", "--debug")
    assert code == 1
    assert "Traceback" in err


def test_an_unexpected_error_is_one_line(
    here: Path, call: Main, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(tasks, "refine_depth", broken)
    outcome = call("depth", "depth.png", "photo.png", "-o", "o.png")
    fails(outcome, "unexpected RuntimeError: two lines", "--debug")


def test_each_warning_is_one_line(here: Path, call: Main) -> None:
    code, out, err = call(
        "solve", "photo.png", "depth.png", "-o", "o.png", "--max-iterations", 1, "--json",
        "--tolerance", 1e-9,
    )  # fmt: skip
    assert code == 0
    [record] = records(out)
    assert len(record["warnings"]) == 1
    assert err.splitlines() == [f"bilateral: depth.png: {record['warnings'][0]}"]


def test_warnings_of_the_inputs_are_shown(here: Path, call: Main) -> None:
    dots = np.random.default_rng(0).integers(0, 256, (40, 300), np.uint8)
    io.write(here / "left.png", dots[:, :160])
    io.write(here / "right.png", dots[:, 20:180])
    views = ("left.png", "right.png", "-o", "d.pfm", "--json", "--max-disparity")
    code, out, err = call("stereo", *views, 10)
    assert code == 0
    [warning] = records(out)[0]["warnings"]
    assert warning.startswith("max_disparity: ")
    assert err.splitlines() == [f"bilateral: left.png: {warning}"]
    code, out, err = call("stereo", *views, 24, "--force")
    assert (code, "warnings" in records(out)[0], err) == (0, False, "")
    code, out, err = call(
        "defocus", "photo.png", "truth.png", "-o", "b.png", "--focus", 1, "--aperture", 1e5,
        "--json",
    )  # fmt: skip
    assert code == 0
    [warning] = records(out)[0]["warnings"]
    assert warning.startswith("focus: 1 is outside the range of depth, 1500 to 3000")
    assert err.splitlines() == [f"bilateral: photo.png: {warning}"]
