"""Test that each benchmark command runs and writes its report. No time is asserted."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("skimage", reason="the benchmarks read pictures with scikit-image")

from benchmarks.__main__ import BENCHMARKS
from benchmarks.camera import spoil
from benchmarks.common.cells import Setting
from benchmarks.common.data import Data
from benchmarks.quality import baselines, colorization, planar, superres
from benchmarks.quality.colorization import made as colorization_scenes
from benchmarks.quality.depth import filled
from benchmarks.quality.lowrank import Labelled, compare
from benchmarks.quality.superres import made as superres_scene
from benchmarks.speed.cases import NOISE

ROOT = Path(__file__).parents[2]


def run(name: str, output: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", name, "--output", str(output), *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def results(name: str, folder: Path, *options: str) -> dict[str, Any]:
    """Run a quick benchmark and read the JSON that it writes."""
    done = run(name, folder / "made", "--quick", *options)
    assert done.returncode == 0, done.stderr
    assert (folder / "made" / f"{name}.md").read_text() in done.stdout
    stored: dict[str, Any] = json.loads((folder / "made" / f"{name}.json").read_text())
    if "--opencv-python" in options:
        assert stored["opencv_skipped"] in done.stdout
        assert "apt-get install python3-opencv" in done.stdout
    return stored


def no_opencv(folder: Path) -> tuple[str, str]:
    return "--opencv-python", str(folder / "no-python")


@pytest.mark.benchmark
def test_the_speed_command_skips_a_missing_opencv(tmp_path: Path) -> None:
    stored = results("speed", tmp_path, *no_opencv(tmp_path))
    assert stored["results"]["ratio"] is None
    assert {"date", "machine", "versions", "settings"} <= stored.keys()
    values = stored["values"]
    assert values.keys() == {"astronaut", "growth", "import"}
    assert values["import"]["seconds"]["median"] > 0
    photo = values["astronaut"]
    cases = list(photo["sigmas"].values())
    assert [case["sigma"] for case in cases] == [8, 16]
    stages = {"grid", "pyramid", "bistochastize", "splat", "start", "PCG", "slice", "whole"}
    for case in cases:
        assert case["opencv"] is case["ratio"] is None
        assert case["error"] < NOISE
        assert list(case["ours"]) == [str(n) for n in stored["settings"]["threads"]]
        assert all(timings.keys() == stages for timings in case["ours"].values())
    fine, coarse = (case["vertices"] for case in cases)
    assert 2 * coarse < fine
    assert all(case["largest_difference"] < 1e-3 for case in photo["oracle"])
    assert photo["memory"][0]["bytes_per_pixel_with_output"] >= 4
    quarter, whole, tiled = values["growth"]["sizes"]
    assert 4 * quarter["megapixels"] == whole["megapixels"] == tiled["megapixels"] / 4
    assert tiled["vertices"] == pytest.approx(4 * whole["vertices"], rel=0.05)
    # a sparse problem needs many steps of the paper's method, and few of multigrid
    assert photo["convergence"][0]["steps"]["default"] < photo["convergence"][0]["steps"]["paper"]


def test_a_folder_without_photographs_is_named(tmp_path: Path) -> None:
    done = run("speed", tmp_path / "made", "--quick", "--data", str(tmp_path))
    assert done.returncode != 0
    assert f"--data: expected a folder with *.jpg or *.png files, got {tmp_path}" in done.stderr
    assert not (tmp_path / "made").exists()


def test_wrong_options_are_refused(tmp_path: Path) -> None:
    done = run("speed", tmp_path / "made", "--repeats", "0")
    assert done.returncode != 0
    assert "--repeats: expected at least 1, got 0" in done.stderr
    done = run("supplement", tmp_path / "made", "--data", str(tmp_path / "none"))
    assert done.returncode != 0
    assert f"--data: expected a folder, got {tmp_path / 'none'}" in done.stderr
    done = run("no-such-benchmark", tmp_path)
    assert done.returncode != 0
    assert all(name in done.stderr for name in BENCHMARKS)


def test_every_target_of_the_makefile_is_a_benchmark() -> None:
    targets = (ROOT / "Makefile").read_text()
    for name in BENCHMARKS:
        target = {"speed": "bench", "paper": "paper"}.get(name, f"bench-{name}")
        assert f"\n{target}:" in targets


@pytest.mark.benchmark
def test_the_filters_command_leaves_out_missing_data(tmp_path: Path) -> None:
    stored = results("filters", tmp_path, *no_opencv(tmp_path), "--data", str(tmp_path))
    assert stored["authors"] is None
    assert [row["dtype"] for row in stored["speed"]] == ["uint8", "float32"]
    for row in stored["speed"]:
        assert row["opencv"] is row["ratio"] is None
        assert list(row["ours"]) == [str(n) for n in stored["settings"]["threads"]]
    assert [row["size"] for row in stored["median"]] == [3, 5] * 5
    for row in stored["median"]:
        assert row["opencv"] is None
        assert (row["scipy"] is None) == ("NaN" in row["image"])


@pytest.mark.benchmark
def test_the_supplements_command_makes_a_scene_without_data(tmp_path: Path) -> None:
    stored = results("supplement", tmp_path)
    for case in stored["results"]["cost"]:
        ratio = case["rounds"]["median"] / case["solve"]["median"]
        assert case["rounds_in_solves"] == pytest.approx(ratio)
    assert len(stored["results"]["gain"]) == 2
    for case in stored["results"]["gain"]:
        assert case["robust"]["bad_1"] < case["least_squares"]["bad_1"]
        assert case["exact_rounds"]["mean"] == pytest.approx(case["robust"]["mean"], rel=0.02)


@pytest.mark.benchmark
def test_the_superres_command_makes_a_scene_without_data(tmp_path: Path) -> None:
    stored = results("superres", tmp_path, *no_opencv(tmp_path))
    photographs = "Motorcycle, photographs"
    assert list(stored["values"]) == ["motorcycle x4", "motorcycle x8", photographs]
    ratios = stored["values"][photographs]["ratios"]
    assert ratios["none; right; x4"] < 0.9
    assert max(ratios.values()) < 1.05
    methods = stored["results"]["methods"]
    assert methods[superres.PAPERS]["mean"] < methods["bicubic"]["mean"]


@pytest.mark.benchmark
@pytest.mark.parametrize("factor", [2, 4, 8, 16])
def test_the_best_preset_is_best(factor: int) -> None:
    setting = Setting(Data(None), False, 1, None, {}, (1,))
    rows = superres.compare(superres_scene(), factor, setting)["methods"]
    fast = rows['bilateral, preset="fast"']["window"]
    assert rows[superres.BEST]["window"] < min(rows["bicubic"]["window"], fast)


@pytest.mark.benchmark
def test_the_colorization_command_compares_with_levin(tmp_path: Path) -> None:
    stored = results("colorization", tmp_path)
    assert stored["results"]["cases"][0]["scene"] == "coffee"
    assert stored["results"]["mean"]["best"] > stored["results"]["mean"]["levin"]


@pytest.mark.benchmark
def test_our_colours_are_nearer_than_levins_in_the_mean() -> None:
    rows = [colorization.quality(scene) for scene in colorization_scenes()]
    assert [row["scene"] for row in rows] == ["coffee", "chelsea", "astronaut"]
    best, mapped = (np.mean([row[key] for row in rows]) for key in ("best", "levin_mapped"))
    assert best > mapped > 30


@pytest.mark.benchmark
def test_the_papers_command_runs_on_scikit_images_pictures_and_resumes(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the paper's figures are drawn with matplotlib")
    output = tmp_path / "made"
    options = ("--quick", *no_opencv(tmp_path), "--cache", str(tmp_path / "cache"))
    names = ("convergence", "speed", "interval", "stereo", "superres", "colorization")
    names += ("segmentation", "lowrank")
    done = run("paper", output, *options, "--only", *names)
    assert done.returncode == 0, done.stderr
    assert "https://vision.middlebury.edu/stereo" in done.stdout
    assert f"OpenCV skipped: {tmp_path / 'no-python'}" in done.stdout
    for name in names:
        assert (output / f"{name}.md").read_text() in done.stdout
        stored = json.loads((output / f"{name}.json").read_text())
        assert stored["about"]["quick"]
        assert stored["about"]["stood_in"]
        assert f"({name}.md)" in (output / "README.md").read_text()
    assert (output / "convergence.svg").stat().st_size > 10_000
    stereo = json.loads((output / "stereo.json").read_text())["results"]["inputs"]
    methods = stereo["block matching"]["methods"]
    assert methods["refine_depth"]["mean"] < methods["input"]["mean"]

    again = run("paper", output, *options, "--only", "convergence", "lowrank")
    assert again.returncode == 0, again.stderr
    assert again.stderr.count(": cached\n") == 2
    assert "(stereo.md)" in (output / "README.md").read_text()


def test_levin_takes_weighted_means_of_neighbours() -> None:
    rng = np.random.default_rng(0)
    luma, chroma = rng.random((7, 9)), rng.random((7, 9, 2))
    painted = rng.random((7, 9)) < 0.2
    x = baselines.levin(luma, chroma, painted)
    np.testing.assert_allclose(x[painted], chroma[painted])
    for y, column in np.argwhere(~painted):
        near = [
            (i, j)
            for i in range(max(y - 1, 0), min(y + 2, 7))
            for j in range(max(column - 1, 0), min(column + 2, 9))
            if (i, j) != (y, column)
        ]
        values = np.array([luma[p] for p in near])
        squares = (values - luma[y, column]) ** 2
        scale = 0.6 * np.var([*values, luma[y, column]])
        scale = max(scale, squares.min() / -np.log(0.01), 2e-6)
        weights = np.exp(-squares / scale)
        mean = np.average([x[p] for p in near], axis=0, weights=weights)
        np.testing.assert_allclose(x[y, column], mean)


@pytest.mark.benchmark
def test_the_segmentation_command_makes_scores_without_data(tmp_path: Path) -> None:
    stored = results("segmentation", tmp_path)
    assert len(stored["values"]) == 2
    for case in stored["values"].values():
        assert case["iou"]["ours"] > case["iou"]["network"]
        assert ("CRF 67 / 3" in case["iou"]) == (stored["results"]["crf_skipped"] is None)


@pytest.mark.benchmark
def test_the_torch_command_measures_gradients_memory_and_overhead(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the layer needs PyTorch")
    stored = results("torch", tmp_path)
    rows = stored["values"]["astronaut"]
    assert [row["data"] for row in rows] == ["dense", "dense", "sparse", "sparse"]
    for row in rows:
        ratio = row["tc"]["median"] / row["forward_tc"]["median"]
        assert row["ratio_tc"] == pytest.approx(ratio)
        assert max(row["error"].values()) < 5
    few, many = (row["bytes"] for row in stored["values"]["memory"])
    assert many < 1.2 * few  # so small a picture's peak is mostly noise
    assert stored["values"]["overhead"].keys() == {"arrays", "tensors", "tensors_with_grad"}


@pytest.mark.benchmark
def test_the_depth_command_makes_scenes_and_leaves_out_opencv(tmp_path: Path) -> None:
    stored = results("depth", tmp_path, *no_opencv(tmp_path))
    maps = [value for value in stored["values"].values() if "source" in value]
    assert {row["scene"] for row in maps} == {"Motorcycle", "thin", "small", "boxes"}
    for row in maps:
        assert row["peers"] == []
        for preset in ("refine_depth", 'refine_depth, "sensor", invalid=0'):
            assert row["ours"][preset]["mean"] < row["ours"]["input"]["mean"]


def test_holes_take_the_farther_value_beside_them() -> None:
    holes = np.array([[0, 5, 0, 0, 3, 0], [0, 0, 0, 0, 0, 0]], np.float32)
    assert filled(holes).tolist() == [[5, 5, 3, 3, 3, 3], [0] * 6]


def test_low_rank_of_a_made_picture() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 0.1, (40, 60, 21)) - 5
    logits[:, :30, 2] += 9
    logits[:, 30:, 7] += 9
    powers = np.exp(logits).astype(np.float32)
    reference = np.repeat(np.uint8([60, 180]), 30)[np.newaxis].repeat(40, axis=0)
    image = Labelled("made", reference, powers / powers.sum(axis=2, keepdims=True))
    row = compare(image, repeats=1)
    assert row["rank"] == 1
    assert row["same_class"] == 100
    assert row["ratio"] == row["all"].median / row["few"].median
    assert row["system_ratio"] == row["all_system"].median / row["few_system"].median


@pytest.mark.benchmark
def test_the_cli_command_compares_with_a_loop(tmp_path: Path) -> None:
    pytest.importorskip("typer", reason="the command line needs typer")
    pytest.importorskip("imagecodecs", reason="PNG files need imagecodecs")
    stored = results("cli", tmp_path)
    for row in stored["batches"]:
        loop = 100 * row["rates"]["command"] / row["rates"]["files"]
        assert row["percent_of_loop"] == pytest.approx(loop)  # of one repeat
        assert row["rates"].keys() == {"command", "files", "memory"}


@pytest.mark.benchmark
def test_the_cluster_command_finds_every_file_done_once(tmp_path: Path) -> None:
    pytest.importorskip("typer", reason="the command line needs typer")
    pytest.importorskip("imagecodecs", reason="PNG files need imagecodecs")
    pytest.importorskip("distributed", reason="clusters need distributed")
    stored = results("cluster", tmp_path)
    assert [row["way"] for row in stored["runs"]] == ["jobs", "workers", "killed"]
    assert all((row["code"], row["lines"], row["done"]) == (0, 24, 24) for row in stored["runs"])


@pytest.mark.benchmark
def test_the_sparse_command_finds_that_few_pixels_need_low_smoothness(tmp_path: Path) -> None:
    stored = results("sparse", tmp_path)
    assert stored["scenes"] == ["Motorcycle"]
    for row in stored["rows"]:
        errors = row["errors"]
        if row["noise"] == 0:
            assert errors["smoothness 0.03"] < errors["smoothness 4"]
        assert errors["smoothness auto"] < 1.2 * min(
            e for key, e in errors.items() if key != "linear"
        )


@pytest.mark.benchmark
def test_the_alignment_command_compares_with_a_global_fit(tmp_path: Path) -> None:
    stored = results("alignment", tmp_path)
    assert stored["scenes"] == ["Motorcycle"]
    assert stored["network"] == []
    for row in stored["spoiled"]:
        assert row["mean"] < (0.05 if row["kind"].startswith("exact") else 1.6)


@pytest.mark.benchmark
def test_the_completion_command_compares_with_interpolation(tmp_path: Path) -> None:
    stored = results("completion", tmp_path)
    assert [row["points"] for row in stored["rows"]] == ["1 %", "every 16th line"]
    for row in stored["rows"]:
        assert row["ratios"]["linear"] == [1, 1]
        assert max(row["ratios"]["complete_depth"]) < 1
        assert row["ratios"]["natural neighbour"][1] < row["ratios"]["nearest"][1]
    assert all(row["seconds"] > 0 for row in stored["times"])


@pytest.mark.benchmark
def test_the_planar_command_compares_planes_with_constants(tmp_path: Path) -> None:
    stored = results("planar", tmp_path)
    assert [row["input"] for row in stored["errors"]] == [*planar.AIMS, planar.HOLED]
    for row in stored["errors"]:
        assert row["ratios"]["planar"] == row["errors"]["planar"] / row["constant"] < 1
        assert row["errors"]["median"] < row["errors"]["planar"]
    assert all(count < planar.MOST_STEPS for r in stored["steps"] for count in r["steps"].values())
    for row in stored["cost"]:
        assert row["ratio"] == row["times"]["planar"]["median"] / row["times"]["constant"]["median"]
        assert row["bytes"]["planar"] > 0
    for row in stored["penalties"]["rows"]:
        assert row["ratios"]["constant"] == 1


@pytest.mark.benchmark
def test_the_camera_command_makes_scenes_and_leaves_out_opencv(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the pictures are drawn with matplotlib")
    stored = results("camera", tmp_path, *no_opencv(tmp_path))
    photos = set(spoil.PHOTOS)
    for row in stored["harm"]:
        assert row["ours"].keys() == photos
        assert row["peers"]["input, nearest-filled"] == 0
        assert not any("OpenCV" in name for name in row["peers"])
    assert len(stored["errors"]) == 8  # made maps, spoiled, scattered and ragged
    for case in stored["errors"]:
        assert case["photos"].keys() == photos
        assert case["methods"]["input, nearest-filled"]["ratio"] == {"mean": 1, "rms": 1}
        assert case["methods"]["refine_depth"]["ratio"]["mean"] < 1
    for part in ("cuts", "harm"):
        assert {row["preset"] for row in stored["stereo"][part]} == {"sensor", "stereo"}
    assert {row["call"] for row in stored["speed"]} >= {"DepthStream"}
    for video in (*stored["time"]["flicker"], *stored["time"]["moving"]):
        ours = {"frame by frame", "DepthStream", "refine_depth of the video"}
        assert ours <= video["methods"].keys()
    for name in stored["pictures"]:
        assert (tmp_path / "made" / name).stat().st_size > 1000


@pytest.mark.benchmark
def test_the_camera_command_measures_the_parts_asked_for(tmp_path: Path) -> None:
    stored = results("camera", tmp_path, *no_opencv(tmp_path), "--only", "speed")
    assert "speed" in stored
    assert not {"harm", "errors", "stereo", "time"} & stored.keys()
    assert stored["pictures"] == []


@pytest.mark.benchmark
def test_the_scale_command_compares_rows_with_memory(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    stored = results("scale", tmp_path)
    assert [row["megapixels"] for row in stored["sizes"]] == [0.12, 0.48]
    for row in stored["sizes"]:
        assert row["same_bits"] is True
        assert row["vertices"] > 0
        assert row["memory_mb"] > 10


@pytest.mark.benchmark
@pytest.mark.browser
def test_the_studio_command(tmp_path: Path) -> None:
    pytest.importorskip("playwright", reason="browser tests need playwright")
    if shutil.which("chromium") is None:
        pytest.skip("browser tests need Chromium: apt-get install chromium")
    stored = results("studio", tmp_path)
    assert stored["start"][0] > 0
    for part in ("1 MP", "12 MP"):
        assert len(stored[part]["first"]) == len(stored[part]["full"]) == 2
    assert stored["12 MP"]["frames"]["mean"] > 0
    assert stored["memory"]["errors"] == 0
