"""Few points to dense depth: exact cases, properties, spoiled points, and errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bilateral.tasks import complete_depth
from bilateral.tasks.completion.blend import weigh
from bilateral.tasks.completion.holdout import areas, held_out
from bilateral.tasks.completion.outliers import seen_through

SHAPE = (96, 128)


def room():
    """Return a photograph of a floor, a wall and a box, and their disparities."""
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]].astype(np.float64)
    wall = y < 40
    box = (abs(x - 80) < 18) & (abs(y - 50) < 20)
    photo = np.where(wall, 180, 100)
    photo[box] = 30
    disparity = 12 + x / 32 + np.where(wall, 0, (y - 40) / 5)
    return photo.astype(np.uint8), np.where(box, 32, disparity)


def sample(values, fraction, seed=0):
    known = np.random.default_rng(seed).random(values.shape) < fraction
    return np.where(known, values, np.nan)


def mean_error(x, truth):
    return float(np.abs(x - truth).mean())


@pytest.mark.parametrize("kind", ["auto", "disparity"])
def test_planes_come_back(kind):
    photo, truth = room()
    x = complete_depth(sample(truth, 0.02), photo, kind=kind)
    assert mean_error(x, truth) < 0.25
    assert np.isfinite(x).all()


@pytest.mark.parametrize("kind", ["auto", "depth"])
def test_planes_of_metric_depth_come_back(kind):
    photo, disparity = room()
    truth = 100 / disparity
    x = complete_depth(sample(truth, 0.02), photo, kind=kind)
    assert mean_error(x, truth) < 0.08


def test_scan_lines():
    photo, truth = room()
    points = np.full(SHAPE, np.nan)
    points[::12] = truth[::12]
    assert mean_error(complete_depth(points, photo), truth) < 0.25


def test_a_photograph_without_edges_does_no_harm():
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    truth = 5 + np.sin(x / 20) + np.cos(y / 15)
    points = sample(truth, 0.05)
    assert mean_error(complete_depth(points, np.zeros(SHAPE, np.uint8)), truth) < 0.05


def test_outliers_are_dropped():
    photo, truth = room()
    rng = np.random.default_rng(1)
    points = sample(truth, 0.05)
    wrong = rng.random(SHAPE) < 0.06
    spoiled = np.where(wrong & np.isfinite(points), rng.uniform(10, 40, SHAPE), points)
    x = complete_depth(spoiled, photo)
    assert mean_error(x, truth) < 2 * mean_error(complete_depth(points, photo), truth) + 0.1


def test_points_seen_through_a_surface_are_dropped():
    photo = np.full(SHAPE, 90, np.uint8)
    points = np.full(SHAPE, np.nan)
    points[::3, ::3] = 5.0
    points[30, 31] = points[60, 70] = 40.0
    points[2, 2] = 5.5
    assert np.argwhere(seen_through(points.astype(np.float32))).tolist() == [[30, 31], [60, 70]]
    assert complete_depth(points, photo, kind="depth").max() < 6


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 3, 5, 20, 90]))
def test_any_points_give_a_finite_map_within_their_range(seed, count):
    rng = np.random.default_rng(seed)
    height, width = rng.integers(1, 40, 2)
    photo = rng.integers(0, 256, (height, width, 3)).astype(np.uint8)
    points = np.zeros(height * width)
    at = rng.permutation(points.size)[:count]
    points[at] = rng.choice([-1, 1, 1, 1]) * rng.uniform(0.1, 1, at.size) * 10 ** rng.uniform(-6, 6)
    x = complete_depth(points.reshape(height, width), photo)
    low, high = points[at].min(), points[at].max()
    margin = 0.06 * max(abs(low), abs(high))
    assert np.isfinite(x).all()
    assert x.min() >= low - margin
    assert x.max() <= high + margin


@pytest.mark.parametrize("place", ["corner", "row", "column", "pixel"])
def test_points_in_one_place(place):
    photo, truth = room()
    part = {"corner": np.s_[:9, :9], "row": np.s_[50], "column": np.s_[:, 3], "pixel": np.s_[4, 5]}
    points = np.full(SHAPE, np.nan)
    points[part[place]] = truth[part[place]]
    x = complete_depth(points, photo)
    assert np.isfinite(x).all()
    assert x.max() <= 1.06 * np.nanmax(points)


def test_equal_points_give_a_constant_map():
    photo, _ = room()
    points = np.zeros(SHAPE, np.uint16)
    points[::7, ::5] = 1234
    assert (complete_depth(points, photo) == 1234).all()


@pytest.mark.parametrize("factor", [1e-6, 1024.0, 1e6])
def test_the_unit_does_not_matter(factor):
    photo, truth = room()
    points = sample(truth, 0.02)
    x, y = complete_depth(points, photo), complete_depth(factor * points, photo)
    np.testing.assert_allclose(y / factor, x, rtol=2e-3)


def test_unknown_values_do_not_matter():
    photo, truth = room()
    points = sample(truth, 0.02)
    expected = complete_depth(points, photo)
    known = np.isfinite(points)
    for unknown in (0, np.inf, -np.inf):
        np.testing.assert_array_equal(
            complete_depth(np.where(known, points, unknown), photo), expected
        )
    spoiled = np.where(known, points, 77.0)
    for options in ({"invalid": 77}, {"mask": known}, {"confidence": 3.0 * known}):
        np.testing.assert_array_equal(complete_depth(spoiled, photo, **options), expected)


def test_confidence_weighs_points():
    photo = np.full(SHAPE, 90, np.uint8)
    points = np.full(SHAPE, np.nan)
    points[::6, ::6] = 10.0
    points[3::6, 3::6] = 11.0
    weights = np.where(points == 10, 1.0, 0.01)
    assert complete_depth(points, photo, weights).mean() < complete_depth(points, photo).mean()


def test_dtypes():
    photo, truth = room()
    points = np.nan_to_num(sample(100 * truth, 0.02)).astype(np.uint16)
    x = complete_depth(points, photo)
    assert x.dtype == np.uint16
    exact = complete_depth(points, photo, dtype=np.float64)
    assert exact.dtype == np.float64
    np.testing.assert_array_equal(x, np.rint(exact))
    assert complete_depth(points.astype(np.float32), photo).dtype == np.float32


def test_results_repeat_and_keep_the_input():
    photo, truth = room()
    points = sample(truth, 0.02)
    copy = points.copy()
    x = complete_depth(points, photo)
    np.testing.assert_array_equal(points, copy)
    np.testing.assert_array_equal(complete_depth(points, photo=photo), x)


def test_returned_confidence_is_high_near_points():
    photo, truth = room()
    points = sample(truth, 0.02)
    points[:, :40] = np.nan
    x, confidence = complete_depth(points, photo, return_confidence=True)
    np.testing.assert_array_equal(x, complete_depth(points, photo))
    assert confidence.dtype == np.float32
    assert confidence.min() >= 0
    assert confidence.max() <= 1
    assert confidence[np.isfinite(points)].mean() > 2 * confidence[:, :20].mean()


def test_better_candidates_weigh_more():
    values = np.linspace(1, 2, 200)
    area = np.ones(200)
    noise = np.random.default_rng(0).normal(size=200)
    weights = weigh(
        [values + 0.1 * noise, values + 0.2 * noise, values + 0.4 * noise], values, area
    )
    np.testing.assert_allclose(weights.sum(), 1)
    assert weights[0] > 20 * weights[1] > 400 * weights[2]
    nothing = np.empty(0)
    np.testing.assert_allclose(weigh([nothing, nothing], nothing, nothing), 0.5)


def test_held_out_points_are_whole_blocks_of_scan_lines():
    known = np.zeros((64, 200), bool)
    known[::16] = True
    y, x = np.indices(known.shape)
    line = np.clip((y + 8) // 16 * 16, 0, 48)
    held = held_out(known, (line * 200 + x).astype(np.uint32))
    assert 0.1 < held.sum() / known.sum() < 0.4
    runs = np.diff(np.flatnonzero(np.diff(np.pad(held[16], 1).astype(int))))[::2]
    assert runs.min() >= 8
    assert areas(held, (line * 200 + x).astype(np.uint32)).sum() > 8 * held.sum()


def test_errors_name_the_argument():
    photo, truth = room()
    with pytest.raises(ValueError, match="points: expected at least one known pixel"):
        complete_depth(np.zeros(SHAPE), photo)
    with pytest.raises(ValueError, match="kind: expected"):
        complete_depth(truth, photo, kind="metres")
    with pytest.raises(ValueError, match="points"):
        complete_depth(truth[:-1], photo)
    with pytest.raises(ValueError, match="look swapped"):
        complete_depth(np.dstack([photo] * 3), truth)
    with pytest.raises(TypeError, match="'confidence'"):
        complete_depth(truth, photo, weights=truth)
