"""Test the CUDA benchmark: its lower bounds, its stages and its report. No time is asserted."""

import json
import os
import re
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("skimage", reason="the benchmarks read pictures with scikit-image")

from benchmarks.common.cells import Setting
from benchmarks.common.data import Data
from benchmarks.common.photos import Photo, centre, own
from benchmarks.common.tables import as_json
from benchmarks.common.timing import Timing
from benchmarks.cuda import report
from benchmarks.cuda.floors import FLOORS, Sizes, floors
from benchmarks.speed.cases import problem, solve

ROOT = Path(__file__).parents[2]
SIZES = Sizes(
    pixels=4_096_000,
    channels=3,
    tiles=64_000,
    vertices=306_271,
    edges=1_250_000,
    code=4,
    coarse=100_000,
    above=400_000,
    balance_steps=14,
    steps=25,
)


@pytest.mark.parametrize("size", [field.name for field in fields(Sizes)])
def test_floors_grow_with_sizes_and_at_most_in_proportion(size: str) -> None:
    more = floors(replace(SIZES, **{size: 2 * getattr(SIZES, size)}), 4e12)
    less = floors(SIZES, 4e12)
    assert all(less[name] <= more[name] <= 2 * less[name] for name in FLOORS)
    assert any(less[name] < more[name] for name in FLOORS)


def test_floors_of_one_image() -> None:
    assert floors(SIZES, 1.0) == {
        "keys of tiles": 24_411_252,
        "order": 8_575_588,
        "assignment of pixels": 26_057_084,
        "neighbours": 11_381_420,
        "pyramid": 7_250_168,
        "bistochastization": 172_907_056,
        "input statistics and splat": 45_860_336,
        "start": 8_100_336,
        "preconditioner": 16_800_672,
        "first residual": 15_175_588,
        "steps": 861_844_352,
        "slice": 33_993_084,
    }


def test_floors_are_bytes_over_bandwidth() -> None:
    assert floors(SIZES, 2.0)["slice"] == (4 * SIZES.pixels * 2 + 4 * SIZES.vertices) / 2


@pytest.mark.interpreter
def test_stages_are_those_of_a_solve() -> None:
    torch = pytest.importorskip("torch", reason="bilateral.torch needs PyTorch")
    if not torch.cuda.is_available() and os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip("no GPU that PyTorch can use, and no interpreter")  # see conftest.py
    pytest.importorskip("triton", reason="the kernels need Triton")
    from benchmarks.cuda.stages import SIGMA, Solve
    from support.edge_tables import table

    photo = own("coffee")
    task = problem(Photo(photo.name, centre(photo.pixels, 10, 17)))
    taken_apart = Solve(task, torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    runs = taken_apart.stages
    assert [*runs] == [*FLOORS]
    made = {name: run() for name, run in runs.items() if name != "steps"}
    grid = taken_apart._grid
    assert int(grid.total) <= grid.room
    there = int(grid.total)
    assert torch.equal(made["keys of tiles"].keys[:there], grid.tile_keys.keys[:there])
    assert torch.equal(made["order"].vertex_of_key, grid.order.vertex_of_key)
    assert torch.equal(made["assignment of pixels"], grid.parent)
    assert torch.equal(table(made["neighbours"]), table(grid.edges))
    assert made["pyramid"].rooms == grid.pyramid.rooms
    assert torch.equal(made["pyramid"].push, grid.pyramid.push)

    for _ in range(2):  # as often as one likes
        taken_apart.begin_again()
        taken_apart.step()
        found = taken_apart.slice().cpu().numpy().reshape(task.shape)
        np.testing.assert_allclose(found, solve(task, SIGMA), atol=1e-4)
    sizes = taken_apart.sizes
    assert sizes.pixels == task.n_pixels
    assert sizes.tiles <= sizes.vertices < sizes.pixels
    assert 0 < sizes.coarse < sizes.vertices
    assert sizes.edges == (table(grid.edges) >= 0).sum()


def made_up(quick: bool) -> dict[str, Any]:
    timing = Timing(1.5e-3, 1.4e-3, 1.6e-3, 30)
    size = (1080, 1920)
    row = {
        "photo": "made",
        "sizes": SIZES,
        "stages": dict.fromkeys(FLOORS, timing),
        "floors": floors(SIZES, 4e12),
        "whole": {"size": (1600, 2560), "seconds": timing},
        "middle": {"size": size, "everywhere": timing, "few": timing},
        "batch": {"size": (480, 640), "seconds": timing, "images_per_second": 3999.0},
        "training": {"size": size, "forward": timing, "backward": timing, "ratio": 1.0},
        "segmentation": {
            "size": (375, 500),
            "classes": 21,
            "seconds": timing,
            "cpu_seconds": timing,
            "labels_differ": 7,
        },
        "camera": {
            "size": size,
            **dict.fromkeys(("seconds", "first_seconds", "cpu_seconds"), timing),
            "difference": 2e-7,
            "largest": 3e-3,
            "unknown": 0.01,
        },
        "agreement": {
            "size": (512, 512),
            "cells": (8, 40),
            "differences": [1e-7, 2e-6],
            "difference": 2e-6,
            "repeats": 5,
            "identical": 5,
        },
        "planes": {
            "1 % known": {
                "size": size,
                "first_seconds": 2.0,
                **dict.fromkeys(("seconds", "forward", "backward", "cpu_seconds"), timing),
                "differences": [2e-3, 1e-5],
                "gradients": [1e-3, 2e-3, 3e-3],
                "identical": True,
            },
        },
    }
    device = {"name": "a device", "bytes": 2**37, "cache_bytes": 6e7}
    return {
        "date": "today",
        "machine": {"cpu": "a CPU", "cores": 2, "load_before": 0.0},
        "versions": {"numpy": "2"},
        "device": {**device, "torch": "2.11", "cuda": "13", "triton": "3.6"},
        "settings": {
            "repeats": 30,
            "replays": 20,
            "warm_ups": 5,
            "quick": quick,
            "photographs": "made up",
            "smoothness": 4.0,
            "steps": 25,
        },
        "targets": report.TARGETS,
        "bandwidth": 4e12,
        "photographs": [row, {**row, "photo": "another"}],
        "many_sizes": {
            "images": 64,
            "sizes": 64,
            "largest": (480, 640),
            "smallest": (291, 325),
            "first_seconds": 2.0,
            "seconds": 1.0,
            "bytes_reserved": 2**30,
        },
        "large": None
        if quick
        else {
            "size": (8192, 8192),
            "first_seconds": 2.0,
            "seconds": 0.1,
            "bytes_beyond_inputs": 2**33,
            "finite": True,
        },
        "out_of_memory": None
        if quick
        else {
            "size": size,
            "images": 16,
            "raised": ["OutOfMemoryError", None],
            "as_expected": False,
            "next_works": True,
        },
    }


def verdicts(text: str) -> list[list[str]]:
    """Target and verdict of each row of the table of calls that has a target."""
    lines = text[text.index("## Whole calls") : text.index("## Once")].splitlines()[6:]
    cells = [[cell.strip() for cell in line.split("|")[3:5]] for line in lines if line]
    return [pair for pair in cells if pair != ["", ""]]


def test_the_report_renders() -> None:
    text = report.as_text(made_up(quick=False))
    assert all(f"| {name}" in text for name in FLOORS)
    call = r"\| 2560 x 1600, 25 steps, reference to output, ms +\| +1.50 \(1.40 .. 1.60\), 1.50 \("
    assert re.search(call, text)
    assert "8192 x 8192: 100.0 ms, the first call, with compilations, 2000.0, 8.0 GiB" in text
    assert "finite: met" in text
    for row in (
        r"500 x 375, refine_segmentation, 21 classes, ms +\| +1.50 \(1.40 .. 1.60\), 1.50 ",
        r"pixels whose labels differ +\| +7, 7 ",
        r"1920 x 1080, refine_depth, a camera's map, ms +\| +1.50 .*met",
        r"RMS difference from the CPU's map, of its range +\| +2e-07, 2e-07 .*met",
        r"16 images of 640 x 480, images/s +\| +3,999, 3,999 ",
        r"the same with cells of 40 +\| +2.0e-06, 2.0e-06 ",
        r"repeats that are the same bit by bit +\| +5 of 5, 5 of 5 ",
        r"1 % known: 1920 x 1080, backward, ms +\| +1.50 \(1.40 .. 1.60\), 1.50 ",
        r"1 % known: from the CPU's solution, tolerance 0.001 +\| +2.0e-03, 2.0e-03 .*MISSED",
        r"1 % known: from the CPU's solution, tolerance 1e-05 +\| +1.0e-05, 1.0e-05 .*met",
    ):
        assert re.search(row, text), row
    assert "raised OutOfMemoryError, nothing (MISSED); the next small call works" in text
    assert verdicts(text) == [
        ["2.00", "met"],
        ["2.00", "met"],
        ["2.00", "met"],
        ["4,000", "MISSED"],
        ["1.20", "met"],
        ["8.00", "met"],
        ["1e-03", "met"],
        ["1e-04", "met"],
        ["all", "met"],
    ]
    stored = json.loads(as_json(made_up(quick=False)))
    assert stored["photographs"][0]["stages"]["order"]["median"] == 1.5e-3
    assert stored["photographs"][0]["sizes"]["vertices"] == SIZES.vertices


def test_a_quick_report_judges_no_times() -> None:
    text = report.as_text(made_up(quick=True))
    assert "A quick run" in text
    assert "8192" not in text
    judged = [verdict for _, verdict in verdicts(text)]
    assert judged == ["-", "-", "-", "-", "-", "-", "met", "met", "met"]


def test_the_benchmark_measures_all_that_its_report_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="bilateral.torch needs PyTorch")
    pytest.importorskip("triton", reason="the kernels need Triton")
    from benchmarks.cuda import bench, calls, camera, events, planes, stages

    expected = made_up(quick=False)
    row = expected["photographs"][0]
    given: dict[str, Any] = {}

    def fake(name: str, result: Any) -> Any:
        def call(*arguments: Any) -> Any:
            given[name] = arguments[1:]
            return result

        return call

    for name in ("whole", "middle", "batch", "training", "segmentation", "agreement"):
        monkeypatch.setattr(calls, name, fake(name, row[name]))
    for name in ("many_sizes", "large", "out_of_memory"):
        monkeypatch.setattr(calls, name, fake(name, expected[name]))
    monkeypatch.setattr(planes, "planes", fake("planes", row["planes"]))
    monkeypatch.setattr(camera, "camera", fake("camera", row["camera"]))
    monkeypatch.setattr(calls.Task, "of", lambda problem: problem)
    monkeypatch.setattr(events, "copy_bandwidth", lambda _: expected["bandwidth"])
    monkeypatch.setattr(stages, "stages", fake("stages", (row["stages"], SIZES)))
    monkeypatch.setattr(bench, "device", lambda: expected["device"])
    photo = Photo("made", np.zeros((8, 8, 3), np.uint8))
    monkeypatch.setattr(bench.photos, "photographs", lambda _: iter([photo, photo]))
    results = bench.measure(Setting(Data(None), False, 30, None, {}, (1,)))
    assert results["photographs"] == [row, row]
    assert {key: results[key] for key in ("many_sizes", "large", "out_of_memory")} == {
        key: expected[key] for key in ("many_sizes", "large", "out_of_memory")
    }
    assert given["middle"] == ((1080, 1920), 30)
    assert given["batch"] == ((480, 640), 30)
    assert given["segmentation"] == ((375, 500), 30)
    assert given["stages"] == (20,)
    assert given["camera"] == ((1080, 1920), 30)
    assert given["planes"] == ((1080, 1920), 30)
    text = report.as_text(results)
    assert "## Whole calls: made, made" in text


def test_the_map_of_a_camera_has_what_such_maps_have() -> None:
    pytest.importorskip("torch", reason="bilateral.torch needs PyTorch")
    from benchmarks.cuda.camera import depth_map

    grey = np.random.default_rng(0).uniform(0, 255, (90, 160)).astype(np.float32)
    z, far = depth_map(grey)
    assert (z.shape, z.dtype) == ((90, 160), np.float32)
    known = np.isfinite(z)
    assert 0.8 < known.mean() < 1
    assert np.median(z[known & far]) > 2 * np.median(z[known & ~far])


def test_without_a_device_the_command_says_so(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="bilateral.torch needs PyTorch")
    output = tmp_path / "made"
    command = [sys.executable, "-m", "benchmarks", "cuda", "--quick", "--output", str(output)]
    hidden = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, cwd=ROOT, env=hidden, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "CUDA skipped: PyTorch finds no device here. All else works without one."
    ]
    assert not output.exists()
