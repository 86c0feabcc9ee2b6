"""Few points to dense depth: exact cases, properties, spoiled points, and errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bilateral import ConvergenceWarning
from bilateral.filters.interpolation import interpolate_points
from bilateral.tasks import complete_depth
from bilateral.tasks.completion import candidates
from bilateral.tasks.completion.blend import weigh
from bilateral.tasks.completion.features import edge_rank
from bilateral.tasks.completion.holdout import distances, held_out, pixel_distances, shares
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


def test_depths_below_zero_are_unknown():
    photo, truth = room()
    points = sample(truth, 0.02)
    spoiled = np.where(sample(np.full(SHAPE, 1.0), 0.01, seed=7) > 0, -3.0, points)
    expected = complete_depth(np.where(spoiled > 0, spoiled, 0), photo, kind="depth")
    np.testing.assert_array_equal(complete_depth(spoiled, photo, kind="depth"), expected)
    with pytest.raises(ValueError, match="not above 0"):
        complete_depth(np.full(SHAPE, -1.0), photo, kind="depth")
    assert complete_depth(-points, photo).max() < 0


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
    share = np.ones(200)
    noise = np.random.default_rng(0).normal(size=200)
    weights = weigh([values + size * noise for size in (0.1, 0.12, 0.15, 0.4)], values, share)
    np.testing.assert_allclose(weights.sum(), 1)
    assert weights[0] > 2 * weights[1] > 4 * weights[2] > 0
    assert weights[3] == 0  # not worth a solve
    alike = [values + 0.1 * noise] * 2
    np.testing.assert_allclose(weigh(alike, values, share), 0.5)
    assert weigh(alike, values, share, last_factor=0.9)[1] > 0.6
    nothing = np.empty(0)
    np.testing.assert_allclose(weigh([nothing, nothing], nothing, nothing), 0.5)


def test_held_out_points_are_blocks_of_scan_lines_and_single_points():
    known = np.zeros((64, 200), bool)
    known[::16] = True
    nearest = interpolate_points(np.where(known, np.float32(1), np.float32(np.nan)))[1]
    held = held_out(known, nearest)
    assert 0.1 < held.sum() / known.sum() < 0.4
    runs = np.diff(np.flatnonzero(np.diff(np.pad(held[16], 1).astype(int))))[::2]
    assert runs.max() >= 8
    assert runs.min() == 1


@given(st.integers(0, 2**32 - 1))
def test_distances_to_the_nearest_points(seed):
    rng = np.random.default_rng(seed)
    known = rng.random(rng.integers(2, 30, 2)) < 0.2
    known[0, 0] = known[-1, -1] = True
    held = known & (rng.random(known.shape) < 0.3)
    held[0, 0] = False
    rest = known & ~held
    nearest = interpolate_points(np.where(rest, np.float32(1), np.float32(np.nan)))[1]

    def exact(at):
        steps = np.argwhere(at)[:, np.newaxis] - np.argwhere(rest)
        return np.sqrt((steps**2).sum(axis=2).min(axis=1))

    np.testing.assert_allclose(distances(held, nearest), exact(held))
    box = np.zeros(known.shape, bool)
    box[: np.flatnonzero(rest.any(axis=1))[-1] + 1, : np.flatnonzero(rest.any(axis=0))[-1] + 1] = 1
    np.testing.assert_allclose(pixel_distances(rest, nearest), exact(box))


def test_held_out_points_stand_for_pixels_as_far_from_points():
    pixels = np.repeat([1.0, 2.0, 8.0], [100, 50, 50])
    share = shares(np.array([1.0, 1.0, 1.0, 2.0]), pixels)
    assert share[0] == share[1] == share[2]
    np.testing.assert_allclose(share[:3].sum() / share.sum(), 0.5)  # 2 stands for 8, too


def test_feature_points_have_a_high_rank():
    rng = np.random.default_rng(0)
    photo = np.kron(rng.integers(0, 256, (10, 10, 3)), np.ones((20, 20, 1)))
    known = rng.random(photo.shape[:2]) < 0.02
    assert 0.4 < edge_rank(photo, known) < 0.6
    known[:] = False
    known[19::20, 19::20] = True
    assert edge_rank(photo, known) > 0.8
    assert edge_rank(np.zeros((5, 7, 1)), np.ones((5, 7), bool)) == 0.5


def test_solves_that_do_not_converge_are_mended(monkeypatch, recwarn):
    photo, truth = room()
    points = sample(truth, 0.02)
    expected = complete_depth(points, photo)
    monkeypatch.setattr(candidates, "_MOST_STEPS", 1)
    mended = complete_depth(points, photo)
    assert mean_error(mended, truth) < 2 * mean_error(expected, truth)
    assert not [w for w in recwarn if issubclass(w.category, ConvergenceWarning)]


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
