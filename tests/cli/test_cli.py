"""The command line: every task on real files, many files, and manners."""

import os
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs typer")
pytest.importorskip("imagecodecs", reason="PNG files need imagecodecs")

import bilateral
from bilateral import io, tasks
from bilateral.cli.files import pairing
from bilateral.cli.main import main
from support import files
from support import scenes_on_disk as disk
from support.scenes_on_disk import records

Main = Callable[..., tuple[int, str, str]]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a photograph, a depth map of it, and what is right."""
    made = disk.scene()
    io.write(tmp_path / "photo.png", made.photo)
    io.write(tmp_path / "depth.png", made.depth)
    io.write(tmp_path / "truth.png", made.truth)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Main:
    """Run the command in this process: exit code, stdout, stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def works(outcome: tuple[int, str, str]) -> None:
    """All went well, and nobody was told so: this is no terminal."""
    assert outcome == (0, "", "")


def fails(outcome: tuple[int, str, str], *texts: str, code: int = 1) -> str:
    """One line on stderr that holds the texts."""
    assert outcome[0] == code, outcome
    line = outcome[2].removesuffix("\n")
    assert "\n" not in line
    assert line.startswith("bilateral: ")
    for text in texts:
        assert text in line
    return line


def test_depth(here: Path, call: Main) -> None:
    works(call("depth", "depth.png", "photo.png", "-o", "out.png", "--invalid", 0))
    made = disk.scene()
    expected = tasks.refine_depth(made.depth, made.photo, invalid=0)
    out = io.read(here / "out.png")
    assert out.dtype == np.uint16
    np.testing.assert_array_equal(out, expected)


def test_depth_with_everything(here: Path, call: Main) -> None:
    made = disk.scene()
    rng = np.random.default_rng(1)
    confidence = rng.integers(1, 255, made.depth.shape, np.uint8)
    mask = np.where(rng.random(made.depth.shape) < 0.9, 255, 0).astype(np.uint8)
    io.write(here / "c.png", confidence)
    io.write(here / "m.png", np.stack([mask] * 3, axis=-1))  # gray, stored as RGB
    works(
        call(
            "depth", "depth.png", "photo.png", "-o", "out.tif", "--confidence", "c.png", "--mask",
            "m.png", "--preset", "sparse", "--sigma-xy", 6, "--sigma-luma", 9, "--sigma-chroma", 10,
            "--scale", 0.2, "--invalid", 0, "--invalid", 9000, "--depth-scale", 0.001,
        )
    )  # fmt: skip
    values = np.where(np.isin(made.depth, (0, 9000)), np.nan, made.depth * np.float32(0.001))
    expected = tasks.refine_depth(
        values.astype(np.float32), made.photo, confidence, mask=mask > 0, preset="sparse",
        sigma_xy=6, sigma_luma=9, sigma_chroma=10, scale=0.2,
    )  # fmt: skip
    out = io.read(here / "out.tif")
    assert out.dtype == np.uint16
    np.testing.assert_array_equal(out, np.rint(expected / 0.001))


def test_units(here: Path, call: Main) -> None:
    common = ("depth", "depth.png", "photo.png", "--invalid", 0, "--depth-scale", 0.001)
    works(call(*common, "-o", "steps.png"))
    works(call(*common, "-o", "metres.pfm"))
    works(call(*common, "-o", "metres.npy", "--dtype", "float64"))
    steps, metres = io.read(here / "steps.png"), io.read(here / "metres.pfm")
    assert (steps.dtype, metres.dtype) == (np.uint16, np.float32)
    assert io.read(here / "metres.npy").dtype == np.float64
    np.testing.assert_allclose(metres, steps * 0.001, atol=0.0006)
    # Floats are in units already.
    works(call("depth", "metres.pfm", "photo.png", "-o", "b.pfm", "--depth-scale", 0.001))
    assert 1 < np.median(io.read(here / "b.pfm")) < 4


def test_solve(here: Path, call: Main) -> None:
    made = disk.scene()
    target = made.depth.astype(np.float32)
    io.write(here / "target.npy", target)
    confidence = (made.depth > 0).astype(np.float32)
    io.write(here / "c.tif", confidence)
    works(
        call(
            "solve", "photo.png", "target.npy", "-o", "x.npy", "--confidence", "c.tif",
            "--smoothness", 9, "--smooth", 4, 4, "--blur", "uniform", "--tolerance", 1e-4,
        )
    )  # fmt: skip
    expected = bilateral.solve(
        made.photo, target, confidence, smoothness=9, smooth=(4, 4), blur="uniform", tolerance=1e-4
    )
    np.testing.assert_array_equal(io.read(here / "x.npy"), expected)


def test_solve_colours_and_videos(here: Path, call: Main) -> None:
    works(call("solve", "photo.png", "photo.png", "-o", "soft.png", "--preview"))
    assert io.read(here / "soft.png").shape == (48, 64, 3)
    io.write(here / "flow.npy", np.ones((48, 64, 2), np.float32))
    works(call("solve", "photo.png", "flow.npy", "-o", "f.npy", "--preview", "--report", "f.html"))
    assert io.read(here / "f.preview.png").shape == (48, 64, 3)
    made = [disk.scene(number) for number in range(3)]
    io.write(here / "video.tif", np.stack([m.photo for m in made]), pages=True)
    io.write(here / "maps.tif", np.stack([m.depth for m in made]), pages=True)
    works(call("solve", "video.tif", "maps.tif", "-o", "x.tif", "--sigma-t", 2, "--preview"))
    x = io.read(here / "x.tif")
    assert (x.shape, x.dtype) == ((3, 48, 64), np.uint16)
    assert io.read(here / "x.preview.png").shape == (48, 64, 3)


def test_superres(here: Path, call: Main) -> None:
    made = disk.scene()
    low = made.truth[::4, ::4].copy()
    low[3, 3] = 0
    io.write(here / "low.png", low)
    works(call("superres", "low.png", "photo.png", "-o", "x.png", "--invalid", 0, "--keep-holes"))
    x = io.read(here / "x.png")
    assert (x.shape, x.dtype) == (made.truth.shape, np.uint16)
    assert (x[12:16, 12:16] == 0).all()
    works(call("superres", "low.png", "photo.png", "-o", "y.png", "--invalid", 0, "--factor", 4))
    expected = tasks.superres_depth(low, made.photo, 4, invalid=0)
    np.testing.assert_array_equal(io.read(here / "y.png"), expected)


def test_stereo(here: Path, call: Main) -> None:
    pattern = np.random.default_rng(0).integers(0, 256, (40, 70), np.uint8)
    io.write(here / "left.png", pattern[:, :60])
    io.write(here / "right.png", pattern[:, 5:65])
    works(call("stereo", "left.png", "right.png", "-o", "d.pfm", "--max-disparity", 16))
    expected = tasks.stereo_depth(pattern[:, :60], pattern[:, 5:65], 16)
    np.testing.assert_array_equal(io.read(here / "d.pfm"), expected)
    works(
        call(
            "stereo", "left.png", "right.png", "-o", "d.png", "--max-disparity", 16, "--loss",
            "none", "--dtype", "uint16", "--depth-scale", 1 / 256,
        )
    )  # fmt: skip
    assert np.median(io.read(here / "d.png")) / 256 == pytest.approx(5, abs=0.1)
    works(call("stereo", "left.png", "right.png", "-o", "new/", "--max-disparity", 16))
    assert (here / "new" / "left.pfm").exists()


def test_defocus(here: Path, call: Main) -> None:
    made = disk.scene()
    common = ("--focus", 1.5, "--aperture", 20, "--depth-scale", 0.001)
    works(call("defocus", "photo.png", "truth.png", "-o", "soft.png", *common))
    expected = tasks.defocus(made.photo, made.truth * np.float32(0.001), 1.5, 20)
    np.testing.assert_array_equal(io.read(here / "soft.png"), expected)
    works(call("defocus", "photo.png", "truth.png", "-o", "soft.jpg", *common, "--blades", 5))
    works(call("defocus", "photo.png", "truth.png", "-o", "soft.exr", *common))
    assert io.read(here / "soft.exr").max() <= 1


def test_colorize(here: Path, call: Main) -> None:
    photo = disk.scene().photo
    gray = photo.mean(axis=2).astype(np.uint8)
    marked = np.stack([gray] * 3, axis=-1)
    marked[4:6, 4:20] = photo[4:6, 4:20]
    marked[40:42, 24:40] = photo[40:42, 24:40]
    io.write(here / "gray.png", gray)
    io.write(here / "marked.png", marked)
    works(call("colorize", "gray.png", "marked.png", "-o", "colour.png"))
    np.testing.assert_array_equal(io.read(here / "colour.png"), tasks.colorize(gray, marked))
    alpha = np.where((marked != gray[..., None]).any(axis=2), 255, 0).astype(np.uint8)
    io.write(here / "layer.png", np.dstack([marked, alpha]))
    io.write(here / "strokes.png", alpha)
    code, out, err = call(
        "colorize", "gray.png", "layer.png", "-o", "b.jpg", "--mask", "strokes.png", "--json",
        "--truth", "photo.png", "--sigma-xy", 8, "--preset", "paper", "--report", "r.html",
    )  # fmt: skip
    assert (code, err) == (0, "")
    [record] = records(out)
    assert record["figures"]["after"]["psnr"] > record["figures"]["before"]["psnr"] > 5
    fails(call("colorize", "gray.png", "gray.png", "-o", "c.png"), "scribbles: expected")


def soft_classes() -> files.Array:
    """Probabilities of three classes at a quarter of the size."""
    near = disk.scene().truth[2::4, 2::4] == 1500
    p = np.stack([np.where(near, 0.2, 0.7), np.where(near, 0.75, 0.2), np.full(near.shape, 0.1)])
    return np.moveaxis(p / p.sum(axis=0), 0, -1).astype(np.float32)


def test_segment(here: Path, call: Main) -> None:
    scores, photo = soft_classes(), disk.scene().photo
    io.write(here / "scores.npy", scores)
    io.write(here / "pages.tif", np.moveaxis(scores, -1, 0), pages=True)
    io.write(here / "channels.tif", scores)
    p = tasks.refine_segmentation(scores, photo)
    labels = np.argmax(p, axis=2)
    for name in ("scores.npy", "pages.tif", "channels.tif"):
        works(call("segment", name, "photo.png", "-o", "labels.png", "--preview", "--force"))
        stored = io.read(here / "labels.png")
        assert stored.dtype == np.uint8
        np.testing.assert_array_equal(stored, labels)
    assert len(np.unique(io.read(here / "labels.preview.png").reshape(-1, 3), axis=0)) == 2
    works(call("segment", "scores.npy", "photo.png", "-o", "p.tif"))
    np.testing.assert_array_equal(io.read(here / "p.tif"), p)
    works(call("segment", "scores.npy", "photo.png", "-o", "l.npy", "--labels"))
    np.testing.assert_array_equal(io.read(here / "l.npy"), labels)


def test_segment_a_mask(here: Path, call: Main) -> None:
    made = disk.scene()
    mask = np.where(made.truth == 1500, 255, 0).astype(np.uint8)
    io.write(here / "mask.png", mask)
    io.write(here / "coarse.png", mask[2::4, 2::4])
    io.write(here / "ignore.png", np.zeros_like(mask))
    code, out, err = call(
        "segment", "coarse.png", "photo.png", "-o", "out.png", "--truth", "mask.png", "--json",
        "--confidence", "uniform", "--ignore", "ignore.png", "--report", "r.html",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert records(out)[0]["figures"]["after"]["accuracy"] > 0.98
    assert set(np.unique(io.read(here / "out.png"))) == {0, 255}
    io.write(here / "trust.png", np.full_like(mask, 9))
    works(call("segment", "coarse.png", "photo.png", "-o", "t.png", "--confidence", "trust.png"))


def test_transparency_and_sixteen_bits_of_photographs(here: Path, call: Main) -> None:
    made = disk.scene()
    wide = np.dstack([made.photo, made.photo[..., 0]]).astype(np.uint16) * 257
    io.write(here / "wide.png", wide)
    works(call("depth", "depth.png", "wide.png", "-o", "out.png"))
    expected = tasks.refine_depth(made.depth, wide[..., :3])
    np.testing.assert_array_equal(io.read(here / "out.png"), expected)


def test_info(call: Main) -> None:
    code, out, err = call("info")
    assert (code, err) == (0, "")
    assert f"bilateral {bilateral.__version__}" in out
    assert ".exr" in out
    code, out, err = call("info", "--json")
    assert (code, err) == (0, "")
    import json

    found = json.loads(out)
    assert found["threads"] == bilateral.get_num_threads()
    assert found["formats"]["PNG"] is True


COMMANDS = (
    "solve",
    "depth",
    "superres",
    "stereo",
    "defocus",
    "colorize",
    "segment",
    "demo",
    "info",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(command: str, call: Main) -> None:
    code, out, err = call(command, "--help")
    assert (code, err) == (0, "")
    assert f"bilateral {command}" in " ".join(out.split("Usage:")[1].split("\n", 1)[1].split())


def test_help_names_commands_and_exit_codes(call: Main) -> None:
    code, out, _ = call("--help")
    assert code == 0
    for command in COMMANDS:
        assert re.search(rf"^  {command} ", out, re.MULTILINE)
    assert "130 interrupted" in out
    code, out, err = call()
    assert code == 2
    assert "Usage" in out + err


def test_version(call: Main) -> None:
    assert call("--version") == (0, f"bilateral {bilateral.__version__}\n", "")


def test_starting_imports_no_codec() -> None:
    code = (
        "import sys; from bilateral.cli.main import main; main(['depth', '--help']);"
        "late = {'rich', 'PIL', 'imagecodecs', 'tifffile', 'OpenEXR', 'skimage', 'torch'};"
        "sys.exit(' '.join(late & sys.modules.keys()) or 0)"
    )
    import subprocess

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_completion() -> None:
    environment = {
        **os.environ,
        "_BILATERAL_COMPLETE": "complete_bash",
        "COMP_WORDS": "bilateral su",
        "COMP_CWORD": "1",
    }
    done = disk.run(env=environment, text=True)
    assert "superres" in done.stdout.split()


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
    works(call("depth", f"{name}.png", "photo.png", "-o", "o.png", "--report", "r.html"))
    assert "<script>" not in (here / "r.html").read_text()


def test_truth_and_json(here: Path, call: Main) -> None:
    code, out, err = call(
        "depth", "depth.png", "photo.png", "-o", "out.png", "--truth", "truth.png", "--json",
        "--invalid", 0, "--depth-scale", 0.001,
    )  # fmt: skip
    assert (code, err) == (0, "")
    [record] = records(out)
    assert record["status"] == "done"
    assert (record["input"], record["output"]) == ("depth.png", "out.png")
    assert (record["shape"], record["dtype"]) == ([48, 64], "uint16")
    assert record["seconds"] > 0
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


def test_folders(here: Path, call: Main) -> None:
    names = disk.folders(here, 5)
    (here / "photos" / f"{names[0]}.preview.png").write_bytes(b"no input")
    (here / "depths" / "notes.txt").write_text("no picture")
    (here / "depths" / ".bilateral-0.tmp").write_text("left behind")
    code, out, err = call(
        "depth", "depths", "photos", "-o", "out", "--json", "--invalid", 0, "--truth", "truths",
        "--report", "all.html", "--preview", "--jobs", 2,
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert sorted(Path(record["input"]).stem for record in records(out)) == names
    assert all(record["figures"]["after"]["mae"] < 100 for record in records(out))
    expected = [f"{name}{suffix}" for name in names for suffix in (".png", ".preview.png")]
    assert sorted(path.name for path in (here / "out").iterdir()) == sorted(expected)
    assert (here / "all.html").read_text().count("<h2>") == 5
    for number, name in enumerate(names):
        made = disk.scene(number)
        photo = io.read(here / "photos" / f"{name}.jpg")
        expected_depth = tasks.refine_depth(made.depth, photo, invalid=0)
        np.testing.assert_array_equal(io.read(here / "out" / f"{name}.png"), expected_depth)


def test_patterns_and_one_photograph_for_all(here: Path, call: Main) -> None:
    disk.folders(here, 3)
    works(call("depth", "depths/frame *.png", "photo.png", "-o", "out", "--format", "tif"))
    assert sorted(path.name for path in (here / "out").iterdir()) == [
        "000.tif",
        "001.tif",
        "002.tif",
    ]
    for scene in ("a", "b"):
        (here / "scenes" / scene).mkdir(parents=True)
        io.write(here / "scenes" / scene / "depth.png", disk.scene().depth)
        io.write(here / "scenes" / scene / "im0.png", disk.scene().photo)
    works(call("depth", "scenes/*/depth.png", "scenes/*/im0.png", "-o", "each"))
    assert sorted(path.name for path in (here / "each").iterdir()) == ["a.png", "b.png"]


def test_failures_do_not_stop_the_rest(here: Path, call: Main) -> None:
    names = disk.folders(here, 5)
    (here / "depths" / f"{names[1]}.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    (here / "photos" / f"{names[2]}.jpg").unlink()
    io.write(here / "photos" / f"{names[3]}.jpg", np.zeros((9, 9), np.uint8))
    code, out, err = call("depth", "depths", "photos", "-o", "out", "--json")
    assert code == 1
    lines = err.splitlines()
    assert len(lines) == 3
    assert f"depths/{names[1]}.png: " in lines[0]
    assert f"no file for {names[2]} in photos" in lines[1]
    assert f"depths/{names[3]}.png: depth: expected" in lines[2]
    status = {Path(record["input"]).stem: record["status"] for record in records(out)}
    assert [status[name] for name in names] == ["done", "failed", "failed", "failed", "done"]
    assert sorted(path.stem for path in (here / "out").iterdir()) == [names[0], names[4]]
    failed = [record for record in records(out) if record["status"] == "failed"]
    assert all(record["error"] for record in failed)


def test_two_files_of_one_name(here: Path, call: Main) -> None:
    [name] = disk.folders(here, 1)
    io.write(here / "photos" / f"{name}.png", disk.scene().photo)
    fails(call("depth", "depths", "photos", "-o", "out"), f"several files for {name} in photos")


def test_existing_files(here: Path, call: Main) -> None:
    common = ("depth", "depth.png", "photo.png", "-o", "out.png")
    (here / "out.png").write_bytes(b"mine")
    fails(call(*common), "out.png: exists already", "--force")
    assert (here / "out.png").read_bytes() == b"mine"
    code, out, _ = call(*common, "--skip-existing", "--json")
    assert (code, records(out)[0]["status"]) == (0, "skipped")
    assert (here / "out.png").read_bytes() == b"mine"
    works(call(*common, "--force"))
    assert io.read(here / "out.png").shape == (48, 64)
    fails(call(*common, "--force", "--skip-existing"), "exclude each other", code=2)
    (here / "r.html").touch()
    outcome = call("depth", "depth.png", "photo.png", "-o", "n.png", "--report", "r.html")
    fails(outcome, "r.html: exists already")
    assert not (here / "n.png").exists()


def test_resuming(here: Path, call: Main) -> None:
    names = disk.folders(here, 4)
    works(call("depth", "depths", "photos", "-o", "out"))
    kept = (here / "out" / f"{names[0]}.png").stat().st_mtime_ns
    (here / "out" / f"{names[2]}.png").unlink()
    code, out, _ = call("depth", "depths", "photos", "-o", "out", "--skip-existing", "--json")
    assert code == 0
    status = {Path(record["input"]).stem: record["status"] for record in records(out)}
    assert [status[name] for name in names] == ["skipped", "skipped", "done", "skipped"]
    assert (here / "out" / f"{names[0]}.png").stat().st_mtime_ns == kept


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


def test_wrong_values_that_only_the_task_knows(here: Path, call: Main) -> None:
    common = ("depth", "depth.png", "photo.png", "-o", "o.png")
    fails(call(*common, "--mask", "photo.png"), "photo.png", "one number per pixel")
    io.write(here / "small.png", np.zeros((5, 5), np.uint8))
    fails(call(*common, "--confidence", "small.png"), "confidence: expected", "(5, 5)")
    outcome = call("depth", "depth.png", "photo.png", "-o", "o.jpg", "--preview")
    fails(outcome, "o.jpg: JPEG holds uint8")
    assert not (here / "o.preview.png").exists()
    fails(call(*common, "--dtype", "float7"), "--dtype", code=2)
    works(call(*common, "--dtype", "uint8"))


ODD = (
    "a b.png",
    "line\nbreak.png",
    "-dash.png",
    "ünï©ode 深.png",
    "*.png",
    "[x].png",
    "a'b\"c.png",
)


@pytest.mark.parametrize("name", ODD)
def test_odd_names(name: str, here: Path, call: Main) -> None:
    (here / "depth.png").rename(here / name)
    works(call("depth", "-o", f"out {name}.tif", "--", name, "photo.png"))
    assert io.read(here / f"out {name}.tif").shape == (48, 64)
    works(call("depth", f"./{name}", "photo.png", "-o", "new/"))
    missing = call("depth", "-o", "x.png", "--", name.replace(".png", ".jpg"), "photo.png")
    fails(missing, code=2 if set(name) & set("*[") else 1)


def test_names_that_are_no_unicode(here: Path) -> None:
    odd = b"\xff\xfe.png"
    os.rename(b"depth.png", odd)
    done = disk.run("depth", os.fsdecode(odd), "photo.png", "-o", "o.png", "--json", cwd=here)
    assert (done.returncode, done.stderr) == (0, b"")
    done = disk.run("depth", os.fsdecode(odd), "none.png", "-o", "p.png", cwd=here)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1


def test_hostile_paths(here: Path, call: Main) -> None:
    (here / "loop").symlink_to("loop")
    (here / "loop.png").symlink_to("loop.png")
    (here / "tree").mkdir()
    (here / "tree" / "up").symlink_to("..")
    io.write(here / "tree" / "depth.png", disk.scene().depth)
    (here / "file").touch()
    common = ("photo.png", "-o", "o.png")
    fails(call("depth", "loop.png", *common), "loop.png")
    fails(call("depth", "depth.png", "photo.png", "-o", "loop.png"), "loop.png")
    fails(call("depth", "depth.png", "photo.png", "-o", "loop/o.png"), "loop")
    fails(call("depth", "depth.png", "photo.png", "-o", "file/o.png"), "file")
    fails(call("depth", "/dev/zero", *common), "no regular file")
    fails(call("depth", "depth.png", "photo.png", "-o", "x" * 300 + ".png"), "too long")
    fails(call("depth", "tree", "photo.png", "-o", "file"), "file")
    assert [path.name for path in here.iterdir() if "o.png" in path.name] == ["photo.png"]
    works(call("depth", "tree/**/*.png", "photo.png", "-o", "out"))
    assert [path.name for path in (here / "out").iterdir()] == ["depth.png"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_forbidden_paths(here: Path, call: Main) -> None:
    (here / "depth.png").chmod(0)
    fails(call("depth", "depth.png", "photo.png", "-o", "o.png"), "Permission denied")
    (here / "locked").mkdir(mode=0o500)
    outcome = call("depth", "truth.png", "photo.png", "-o", "locked/o.png")
    fails(outcome, "locked/o.png: cannot be written: Permission denied")


def test_hostile_content(here: Path, call: Main) -> None:
    whole = (here / "depth.png").read_bytes()
    bad = {
        "empty.png": b"",
        "cut.png": whole[: len(whole) // 2],
        "text.png": b"<html>not found</html>",
        "renamed.tif": whole,
        "bomb.png": files.bomb(100_000, 100_000),
        "pickle.npy": b"\x80\x04\x95",
    }
    for name, data in bad.items():
        (here / name).write_bytes(data)
        fails(call("depth", name, "photo.png", "-o", "o.png"), name)
        fails(call("depth", "depth.png", name, "-o", "o.png"), name)
        assert not (here / "o.png").exists()
    outcome = call("depth", "bomb.png", "photo.png", "-o", "o.png", "--limit", 1)
    fails(outcome, "--limit", "more than the 1 MB allowed")


def test_pages_and_keys(here: Path, call: Main) -> None:
    made = disk.scene()
    io.write(here / "stack.tif", np.stack([made.truth, made.depth]), pages=True)
    np.savez(here / "maps.npz", first=made.truth, second=made.depth)
    common = ("photo.png", "-o")
    fails(call("depth", "stack.tif", *common, "a.png"), "--page")
    fails(call("depth", "maps.npz", *common, "a.png"), "--key", "first, second")
    works(call("depth", "stack.tif", *common, "a.png", "--page", 1))
    works(call("depth", "maps.npz", *common, "b.png", "--key", "second"))
    assert (io.read(here / "a.png") == io.read(here / "b.png")).all()


def test_debug_shows_where(here: Path, call: Main) -> None:
    code, _, err = call("depth", "none.png", "photo.png", "-o", "o.png", "--debug")
    assert code == 1
    assert "Traceback" in err


def test_an_error_of_ours_is_one_line(
    here: Path, call: Main, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(tasks, "refine_depth", broken)
    outcome = call("depth", "depth.png", "photo.png", "-o", "o.png")
    fails(outcome, "unexpected RuntimeError: two lines", "--debug")


def test_warnings_are_told_in_a_line(here: Path, call: Main) -> None:
    code, out, err = call(
        "solve", "photo.png", "depth.png", "-o", "o.png", "--max-iterations", 1, "--json",
        "--tolerance", 1e-9,
    )  # fmt: skip
    assert code == 0
    [record] = records(out)
    assert len(record["warnings"]) == 1
    assert err.splitlines() == [f"bilateral: depth.png: {record['warnings'][0]}"]


def test_threads_are_shared_among_jobs(
    here: Path, call: Main, monkeypatch: pytest.MonkeyPatch, keep_num_threads: None
) -> None:
    disk.folders(here, 3)
    seen = []
    real = tasks.refine_depth

    def spy(*given: Any, **options: Any) -> Any:
        seen.append(bilateral.get_num_threads())
        return real(*given, **options)

    monkeypatch.setattr(tasks, "refine_depth", spy)
    bilateral.set_num_threads(6)
    works(call("depth", "depths", "photos", "-o", "a", "--jobs", 3))
    works(call("depth", "depths", "photos", "-o", "b", "--jobs", 1))
    assert seen == [2, 2, 2, 6, 6, 6]
    assert bilateral.get_num_threads() == 6


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
    """What the command shows on a terminal."""
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
    assert terminal(here, "depth", "depth.png", "photo.png", "-o", "q.png", "-q") == ""


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


def test_keys_of_patterns(tmp_path: Path) -> None:
    for name in ("a_1.png", "a_2.png", "b_1.jpg", ".hidden_3.png", "sub/deep/c_4.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    def keys(pattern: str) -> list[str]:
        return list(pairing.expand(str(tmp_path / pattern)).many)

    assert keys("*.png") == ["a_1", "a_2"]
    assert keys("*") == ["a_1", "a_2", "b_1"]
    assert keys("?_[12].png") == ["a/1", "a/2"]
    assert keys("?_[!2].*") == ["a/1", "b/1"]
    assert keys("**/*_*.png") == ["a/1", "a/2", "sub/deep/c/4"]
    assert pairing.expand(str(tmp_path / "none.png")).single is not None
