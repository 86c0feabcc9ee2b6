"""The benchmark command runs, and says so where a peer is missing. No time is asserted."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("skimage", reason="the benchmarks read pictures with scikit-image")

from benchmarks.depth.peers import filled
from benchmarks.paper import levin
from benchmarks.supplement.lowrank import Labelled, compare

ROOT = Path(__file__).parents[2]


def run(output: Path, *options: str, what: str = "speed") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"benchmarks.{what}", "--output", str(output), *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_the_command_writes_tables_and_json_and_skips_a_missing_opencv(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "no-python")
    done = run(tmp_path / "made", "--quick", "--opencv-python", nowhere)
    assert done.returncode == 0, done.stderr
    assert f"OpenCV skipped: {nowhere}" in done.stdout
    assert "apt-get install python3-opencv" in done.stdout
    assert (tmp_path / "made" / "speed.md").read_text() in done.stdout

    results = json.loads((tmp_path / "made" / "speed.json").read_text())
    assert results["opencv_skipped"] in done.stderr
    assert results["summary"] is None
    assert results["targets"]["ratio_geometric_mean_at_least"] == 10
    assert {"date", "machine", "versions", "settings", "import"} <= results.keys()
    assert [case["sigma"] for case in results["cases"]] == [8, 16]
    for case in results["cases"]:
        assert case["vertices"] > 1000
        assert case["opencv"] is case["ratio"] is None
        assert case["error"] < results["settings"]["noise"]
        assert list(case["ours"]) == [str(n) for n in results["settings"]["threads"]]
        for stages in case["ours"].values():
            assert {"grid", "pyramid", "bistochastize", "splat", "start", "PCG", "slice"} < set(
                stages
            )
            assert all(
                0 < time["low"] <= time["median"] <= time["high"] for time in stages.values()
            )
    assert all(case["largest_difference"] < 1e-3 for case in results["oracle"])
    assert all(row["bytes_per_pixel_with_output"] >= 4 for row in results["memory"])
    quarter, whole, tiled = results["growth"]["sizes"]
    assert 4 * quarter["megapixels"] == whole["megapixels"] == tiled["megapixels"] / 4


def test_a_folder_without_photographs_is_named(tmp_path: Path) -> None:
    done = run(tmp_path / "made", "--quick", "--data", str(tmp_path))
    assert done.returncode != 0
    assert f"--data: expected a folder with *.jpg or *.png files, got {tmp_path}" in done.stderr
    assert not (tmp_path / "made").exists()


def test_fewer_repeats_than_one_are_refused(tmp_path: Path) -> None:
    done = run(tmp_path / "made", "--repeats", "0")
    assert done.returncode != 0
    assert "--repeats: expected at least 1, got 0" in done.stderr


def test_the_filters_command_leaves_out_what_is_missing(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "no-python")
    options = ("--quick", "--opencv-python", nowhere, "--data", str(tmp_path))
    done = run(tmp_path / "made", *options, what="filters")
    assert done.returncode == 0, done.stderr
    assert f"OpenCV skipped: {nowhere}" in done.stdout
    assert (tmp_path / "made" / "filters.md").read_text() in done.stdout

    results = json.loads((tmp_path / "made" / "filters.json").read_text())
    assert results["authors"] is results["superres"] is None
    assert [row["dtype"] for row in results["speed"]] == ["uint8", "float32"]
    for row in results["speed"]:
        assert row["opencv"] is row["ratio"] is None
        assert list(row["ours"]) == [str(n) for n in results["settings"]["threads"]]
        assert all(0 < time["low"] <= time["high"] for time in row["ours"].values())
    assert [row["size"] for row in results["median"]] == [3, 5] * 5
    for row in results["median"]:
        assert row["opencv"] is None
        assert (row["scipy"] is None) == ("NaN" in row["image"])


def test_the_supplements_command_makes_a_scene_where_there_is_no_data(tmp_path: Path) -> None:
    done = run(tmp_path / "made", "--quick", what="supplement")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "made" / "supplement.md").read_text() in done.stdout
    results = json.loads((tmp_path / "made" / "supplement.json").read_text())
    assert results["lowrank"] == []
    for case in results["cost"]:
        assert case["rounds_in_solves"] > 0
    for case in results["gain"]:
        assert case["robust"]["bad_1"] < case["least_squares"]["bad_1"]


def test_the_superres_command_makes_a_scene_where_there_is_no_data(tmp_path: Path) -> None:
    done = run(tmp_path / "made", "--quick", what="superres")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "made" / "superres.md").read_text() in done.stdout
    results = json.loads((tmp_path / "made" / "superres.json").read_text())
    assert [case["factor"] for case in results["cases"]] == [2, 4, 8, 16]
    for case in results["cases"]:
        assert case["best"] < min(case["bicubic"], case["fast"])


def test_the_colorization_command_compares_with_levin(tmp_path: Path) -> None:
    done = run(tmp_path / "made", "--quick", what="colorization")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "made" / "colorization.md").read_text() in done.stdout
    results = json.loads((tmp_path / "made" / "colorization.json").read_text())
    assert [case["scene"] for case in results["cases"]] == ["coffee", "chelsea", "astronaut"]
    mean = {
        key: np.mean([case[key] for case in results["cases"]]) for key in ("levin_mapped", "best")
    }
    assert mean["best"] > mean["levin_mapped"] > 30


def test_the_papers_command_runs_on_scikit_images_pictures_and_goes_on_where_it_stopped(
    tmp_path: Path,
) -> None:
    pytest.importorskip("matplotlib", reason="the paper's figures are drawn with matplotlib")
    nowhere, output = str(tmp_path / "no-python"), tmp_path / "made"
    cache = ("--quick", "--opencv-python", nowhere, "--cache", str(tmp_path / "kept"))
    names = ("convergence", "speed", "interval", "stereo", "superres", "colorization")
    names += ("segmentation", "lowrank")
    done = run(output, *cache, "--only", *names, what="paper")
    assert done.returncode == 0, done.stderr
    assert "https://vision.middlebury.edu/stereo" in done.stdout
    assert f"OpenCV skipped: {nowhere}" in done.stdout
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

    again = run(output, *cache, "--only", "convergence", "lowrank", what="paper")
    assert again.returncode == 0, again.stderr
    assert again.stderr.count(": kept\n") == 2
    assert "(stereo.md)" in (output / "README.md").read_text()


def test_levin_takes_weighted_means_of_neighbours() -> None:
    rng = np.random.default_rng(0)
    luma, chroma = rng.random((7, 9)), rng.random((7, 9, 2))
    painted = rng.random((7, 9)) < 0.2
    x = levin.propagate(luma, chroma, painted)
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


def test_the_segmentation_command_makes_scores_where_there_is_no_data(tmp_path: Path) -> None:
    done = run(tmp_path / "made", "--quick", what="segmentation")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "made" / "segmentation.md").read_text() in done.stdout
    results = json.loads((tmp_path / "made" / "segmentation.json").read_text())
    assert results["cases"]
    for case in results["cases"]:
        assert case["iou"]["ours"] > case["iou"]["network"]
        assert ("CRF 67 / 3" in case["iou"]) == (results["crf_skipped"] is None)
    for row in results["speed"]:
        assert 0 < row["ours"]["low"] <= row["ours"]["high"]


def test_the_layers_command_measures_all_that_it_promises(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the layer needs PyTorch")
    done = run(tmp_path / "made", "--quick", what="torch_layer")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "made" / "torch_layer.md").read_text() in done.stdout
    results = json.loads((tmp_path / "made" / "torch_layer.json").read_text())
    for row in results["rows"]:
        assert row["ratio_t"] > 0
        assert max(row["error"].values()) < 5
    few, many = (row["bytes"] for row in results["memory"])
    assert many < 1.2 * few  # so small a picture's peak is mostly noise
    assert results["overhead"].keys() == {"arrays", "tensors", "tensors_with_grad"}


def test_the_depth_command_makes_scenes_and_leaves_out_opencv(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "no-python")
    done = run(tmp_path / "made", "--quick", "--opencv-python", nowhere, what="depth")
    assert done.returncode == 0, done.stderr
    assert f"OpenCV skipped: {nowhere}" in done.stdout
    assert (tmp_path / "made" / "depth.md").read_text() in done.stdout
    results = json.loads((tmp_path / "made" / "depth.json").read_text())
    assert {row["scene"] for row in results["maps"]} == {"thin", "small", "boxes"}
    for row in results["maps"]:
        assert row["peers"] == []
        for preset in ("stereo", "sensor"):
            assert row[preset]["mean"] < row["before"]["mean"]


def test_holes_take_the_farther_value_beside_them() -> None:
    holes = np.array([[0, 5, 0, 0, 3, 0], [0, 0, 0, 0, 0, 0]], np.float32)
    assert filled(holes).tolist() == [[5, 5, 3, 3, 3, 3], [0] * 6]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    done = run(tmp_path / "made", "--data", str(tmp_path / "none"), what="supplement")
    assert done.returncode != 0
    assert f"--data: expected a folder, got {tmp_path / 'none'}" in done.stderr


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
    assert row["ratio"] > 0
    assert row["system_ratio"] > 0


def test_the_commands_benchmark_compares_with_a_loop(tmp_path: Path) -> None:
    pytest.importorskip("typer", reason="the command line needs typer")
    pytest.importorskip("imagecodecs", reason="PNG files need imagecodecs")
    done = run(tmp_path / "made", "--quick", what="cli")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "made" / "cli.md").read_text() in done.stdout
    results = json.loads((tmp_path / "made" / "cli.json").read_text())
    for row in results["batches"]:
        assert row["percent_of_loop"] > 0
        assert row["rates"].keys() == {"command", "files", "memory"}
