"""Test the baselines of the paper's tables, its losses, and the cache of cells."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("skimage", reason="the benchmarks read pictures with scikit-image")
pytest.importorskip("matplotlib", reason="the paper's figures are drawn with matplotlib")

from scipy import sparse
from scipy.sparse.linalg import spsolve

from benchmarks.common import cache
from benchmarks.common.cache import Cache
from benchmarks.common.cells import Cell, Setting
from benchmarks.common.data import SETS, Data
from benchmarks.common.photos import Photo
from benchmarks.common.timing import Timing
from benchmarks.paper import convergence, interval
from benchmarks.quality import baselines, depth, stereo_page
from benchmarks.quality.depth import motorcycle
from benchmarks.speed import bench as speed
from benchmarks.speed.cases import problem
from bilateral.backends import cpu

RNG = np.random.default_rng(0)
PHOTO = RNG.integers(0, 256, (24, 32, 3), np.uint8)
LOW = RNG.uniform(0, 9, (6, 8)).astype(np.float32)
MAP = RNG.uniform(0, 9, (24, 32)).astype(np.float32)


@pytest.mark.parametrize(
    "enlarge",
    [
        lambda low: baselines.nearest(low, (24, 32)),
        lambda low: baselines.joint_bilateral_upsampling(low, PHOTO, 1.5, 16, 3),
        lambda low: baselines.fast_guided_filter(PHOTO, baselines.nearest(low, (24, 32)), 4, 5, 2),
        lambda low: baselines.weighted_least_squares(PHOTO, baselines.nearest(low, (24, 32)), 50),
    ],
)
def test_baselines_keep_constants(enlarge: Callable[[Any], Any]) -> None:
    np.testing.assert_allclose(enlarge(np.full_like(LOW, 7)), np.full((24, 32), 7), rtol=1e-4)


def test_nearest_takes_the_pixel_below() -> None:
    assert baselines.nearest(np.array([[1, 2]]), (1, 5)).tolist() == [[1, 1, 2, 2, 2]]


def test_joint_bilateral_upsampling_stays_on_its_side_of_an_edge() -> None:
    photo = np.zeros((8, 16, 3), np.uint8)
    photo[:, 8:] = 255
    low = np.repeat(np.float32([[1, 5]]), 2, axis=1).repeat(2, axis=0)
    found = baselines.joint_bilateral_upsampling(low, photo, 1.0, 8, 2)
    np.testing.assert_allclose(found, np.where(photo[..., 0] > 0, 5, 1), atol=1e-4)


def test_weighted_least_squares_solves_its_system() -> None:
    number = np.arange(MAP.size).reshape(MAP.shape)
    pairs = [(number[1:], number[:-1], 0), (number[:, 1:], number[:, :-1], 1)]
    A = sparse.lil_array((MAP.size, MAP.size))
    for after, before, axis in pairs:
        squares = np.square(np.diff(PHOTO.astype(float), axis=axis)).sum(axis=2).ravel()
        for i, j, w in zip(after.ravel(), before.ravel(), 30 / (squares + 1), strict=True):
            A[i, i] += w
            A[j, j] += w
            A[i, j] -= w
            A[j, i] -= w
    exact = spsolve((A + sparse.eye_array(MAP.size)).tocsc(), MAP.ravel().astype(float))
    found = baselines.weighted_least_squares(PHOTO, MAP, 30.0)
    np.testing.assert_allclose(found.ravel(), exact, atol=1e-3)


def test_the_loss_of_intervals_is_that_of_the_pixels() -> None:
    most = 12
    lower = RNG.integers(0, 8, PHOTO.shape[:2]).astype(np.float32)
    upper = lower + RNG.integers(0, 5, lower.shape)
    pair = interval.Pair("made", PHOTO, PHOTO, most, lower)
    grid, data = interval._intervals(pair, cpu.Matches(lower, upper, lower, lower))
    y = RNG.integers(0, most, grid.n_vertices).astype(np.float64)  # exact at whole disparities
    x = grid.slice(y)
    pixels = np.sum(np.maximum(0, np.maximum(lower - x, x - upper)))
    smooth = (
        interval.INTERVAL_SMOOTHNESS
        / 2
        * cpu.smoothness_product(grid._core, y[:, np.newaxis], y[:, np.newaxis])
    )
    value, _ = interval._loss(grid, data, y)
    assert value == pytest.approx(pixels + smooth, rel=1e-6)
    y += 0.3
    value, gradient = interval._loss(grid, data, y)
    direction = RNG.normal(size=len(y))
    more, _ = interval._loss(grid, data, y + 1e-5 * direction)
    assert more - value == pytest.approx(1e-5 * gradient @ direction, rel=1e-3)
    _, before, after = interval._minimize(grid, data)
    assert after < before


def test_the_loss_by_step_falls_to_one_minimum() -> None:
    photo = Photo("made", np.kron(PHOTO, np.ones((4, 4, 1), np.uint8)))
    found = convergence.measure_photograph(photo, _setting(Path("nowhere")))
    for kind in (convergence.DENSE, convergence.SPARSE):
        for name, curve in found[kind]["losses"].items():
            assert 0 <= curve[-1] < 1e-3 * max(curve[0], 1e-3), (kind, name)
            if name != convergence.OURS:
                assert all(after <= before + 1e-9 for before, after in pairwise(curve))


def _setting(root: Path | None, repeats: int = 1) -> Setting:
    return Setting(Data(root), True, repeats, None, {}, (1,))


def test_cells_are_kept_until_something_they_depend_on_changes(tmp_path: Path) -> None:
    file = tmp_path / "input"
    file.write_text("a")
    calls: list[int] = []

    def work() -> int:
        calls.append(1)
        return len(calls)

    def value(repeats: int = 1) -> int:
        store = Cache(tmp_path / "kept", _setting(None, repeats))
        cell = Cell("cell", work, (file,))
        entry = store.get(depth, cell) or store.measure(depth, cell)
        return int(entry["value"])

    assert [value(), value()] == [1, 1]
    assert [value(repeats=2), value()] == [2, 1]
    other = tmp_path / "other" / "input"
    other.parent.mkdir()
    other.write_text("b")
    file = other
    assert [value(), value()] == [3, 3]
    assert (
        sorted(path.suffix for path in (tmp_path / "kept" / "stereo").iterdir()) == [".pickle"] * 3
    )


def test_cells_depend_on_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, cell = Cache(tmp_path, _setting(None)), Cell("cell", lambda: 1)
    store.measure(depth, cell)
    assert store.get(depth, cell) is not None
    monkeypatch.setattr(cache, "_code", lambda: "another hash")
    assert store.get(depth, cell) is None
    assert store.get(speed, cell) is None


def test_missing_data_sets_are_named_with_their_origin(tmp_path: Path) -> None:
    (tmp_path / "hires").mkdir()
    guide = Data(tmp_path).guide()
    assert "hires/" not in guide
    for part in SETS[1:]:
        assert f"{part.folder}/" in guide
        assert part.origin in guide
    for part in SETS:
        (tmp_path / part.folder).mkdir(exist_ok=True)
    assert Data(tmp_path).guide() == ""
    assert Data(None).missing() == list(SETS)


def test_calls_on_tensors_are_timed_where_there_is_a_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("torch", reason="the layer needs PyTorch")
    times = iter([9.0, 9.0, 9.0, 0.002, 0.004])
    monkeypatch.setattr(speed, "stopwatch", lambda call: lambda: call() or next(times))
    row = speed.on_device(problem(Photo("made", PHOTO)), repeats=2, kind="cpu")
    assert row == {"name": "cpu", "ms": pytest.approx(3)}  # after three warm-ups


def test_rbs_of_the_supplement_removes_outliers() -> None:
    case = motorcycle(quick=True)
    spoilt = case._replace(disparity=np.where(case.disparity > 60, 5, case.disparity))
    before = np.nanmean(np.abs(spoilt.disparity - case.truth))
    assert np.nanmean(np.abs(depth.robust(spoilt, 8, 4.0) - case.truth)) < before


def test_the_best_settings_have_the_least_geometric_mean() -> None:
    runs = [
        {"filter": "guided filter", "setting": (2, 2), "mean": 4.0, "rms": 1.0},
        {"filter": "guided filter", "setting": (4, 2), "mean": 1.0, "rms": 3.0},
        {"filter": "guided filter", "setting": (2, 2), "mean": 6.0, "rms": 1.0},
    ]
    assert stereo_page.best_settings(runs, ("mean", "rms")) == {"guided filter": [4, 2]}
    assert stereo_page.best_settings(runs, ("rms",)) == {"guided filter": [2, 2]}


def test_the_parts_of_table_1_add_up_stages() -> None:
    names = [stage for stages in speed.PARTS.values() for stage in stages]
    timings = {name: Timing(i / 1e3, 0, 1, 1) for i, name in enumerate(names)}
    parts = {"construction": 0 + 1 + 2 + 3, "optimization": 4 + 5 + 6, "total": 7}
    assert speed._parts(timings) == pytest.approx(parts)
