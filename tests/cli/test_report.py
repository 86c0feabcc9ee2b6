"""Previews, reports, errors against a truth, and JSON records."""

import re
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs typer")
pytest.importorskip("imagecodecs", reason="PNG files need imagecodecs")

from bilateral import io
from support import scenes_on_disk as disk
from support.command import Main, fails, works
from support.scenes_on_disk import records


def test_preview_and_range(here: Path, call: Main) -> None:
    common = ("depth", "depth.png", "photo.png", "--preview", "--invalid", 0)
    works(call(*common, "-o", "a.png"))
    works(call(*common, "-o", "b.tif", "--range", 0, 3000))
    first, second = (io.read(here / f"{name}.preview.png") for name in "ab")
    assert first.shape == second.shape == (48, 64, 3)
    assert first.dtype == np.uint8
    far, near = second[0, 0].astype(int), second[40, 32].astype(int)
    assert far[0] > far[2]  # red: the end of the range
    assert near[1] == second[40, 32].max()  # green: its middle
    assert (first != second).any()
    fails(call(*common, "-o", "c.png", "--range", 3, 1), "--range", code=2)


def test_report(here: Path, call: Main) -> None:
    io.write(here / "c.png", np.full((48, 64), 200, np.uint8))
    works(
        call(
            "depth", "depth.png", "photo.png", "-o", "out.png", "--truth", "truth.png",
            "--confidence", "c.png", "--report", "new/sheet.html", "--invalid", 0,
        )
    )  # fmt: skip
    page = (here / "new" / "sheet.html").read_text()
    captions = re.findall(r"<figcaption>(.+?)</figcaption>", page)
    pictures = ["Reference", "Input", "Confidence", "Output", "Truth", "Error before", "Error"]
    assert captions == pictures
    assert page.count("data:image/") == 7
    assert "http" not in page
    assert "<td>before</td>" in page


def test_reports_escape_names(here: Path, call: Main) -> None:
    name = "<script>alert(1)<"
    (here / "depth.png").rename(here / f"{name}.png")
    works(
        call(
            "depth", f"{name}.png", "photo.png", "-o", "o.png", "--report", "r.html", "--invalid", 0
        )
    )
    assert "<script>" not in (here / "r.html").read_text()


def test_truth_and_json(here: Path, call: Main) -> None:
    began = time.perf_counter()
    code, out, err = call(
        "depth", "depth.png", "photo.png", "-o", "out.png", "--truth", "truth.png", "--json",
        "--invalid", 0, "--depth-scale", 0.001,
    )  # fmt: skip
    assert (code, err) == (0, "")
    elapsed = time.perf_counter() - began
    [record] = records(out)
    assert record["status"] == "done"
    assert (record["input"], record["output"]) == ("depth.png", "out.png")
    assert (record["shape"], record["dtype"]) == ([48, 64], "uint16")
    assert 0 < record["seconds"] < elapsed
    before, after = record["figures"]["before"], record["figures"]["after"]
    made = disk.scene()
    known = made.depth > 0
    wrong = np.abs(made.depth.astype(float) - made.truth)[known]
    assert before["mae"] == pytest.approx(wrong.mean() / 1000, rel=1e-4)
    assert after["rmse"] < 0.2 * before["rmse"]


def test_truth_of_another_size(here: Path, call: Main) -> None:
    io.write(here / "small.png", np.zeros((5, 5), np.uint16))
    outcome = call("depth", "depth.png", "photo.png", "-o", "o.png", "--truth", "small.png")
    fails(outcome, "truth: expected 48 x 64", "got 5 x 5")
    assert not (here / "o.png").exists()
