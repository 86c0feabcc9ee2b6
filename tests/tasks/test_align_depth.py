"""Aligning relative depth with metric values: exactness, equivariance, outliers, few points."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bilateral import tasks
from bilateral.tasks.alignment import candidates

Array = NDArray[Any]

Y, X = np.mgrid[:60, :80]
TRUTH = np.where((X > 25) & (X < 55) & (Y > 20), 1.5 + 0.004 * Y, 4 - 0.02 * Y + 0.01 * X)
FORMS = {
    "inverse depth": (1 / TRUTH, False),
    "depth": (TRUTH, False),
    "1 / inverse depth": (1 / (1 / TRUTH - 0.1), True),
}


def points(count: int, seed: int = 0, noise: float = 0.0, outliers: float = 0.0) -> Array:
    """Return a map of `count` metric values, 0 elsewhere."""
    rng = np.random.default_rng(seed)
    at = rng.choice(TRUTH.size, count, replace=False)
    values = TRUTH.ravel()[at] * (1 + noise * rng.normal(size=count))
    wrong = rng.permutation(count) < round(outliers * count)
    values[wrong] = rng.uniform(0.3, 9, wrong.sum())
    metric = np.zeros(TRUTH.size)
    metric[at] = values
    return metric.reshape(TRUTH.shape)


def rmse(x: Array, truth: Array = TRUTH) -> float:
    return float(np.sqrt(np.mean((x - truth) ** 2)))


def drifting(seed: int = 1) -> Array:
    """Return inverse depth whose scale and shift drift over the image."""
    a, b, c = np.random.default_rng(seed).uniform(-1, 1, 3)
    drift = 0.12 * np.sin(X / 25 + 3 * a) * np.cos(Y / 20 + 3 * b)
    return np.asarray((1 + drift) / TRUTH + 0.04 * c * X / 80)


@settings(max_examples=8)  # a call cross-validates some hundred solves
@given(
    st.sampled_from(sorted(FORMS)),
    st.floats(0.01, 100),
    st.floats(-1, 1),
    st.booleans(),
    st.integers(5, 60),
    st.integers(0, 99),
)
def test_exact_relative_depth_comes_back_exactly(
    form: str, scale: float, shift: float, flip: bool, count: int, seed: int
) -> None:
    relative, reciprocal = FORMS[form]
    if not reciprocal:
        relative = (-1 if flip else 1) * scale * (relative + shift)
    x, info = tasks.align_depth(relative, points(count, seed), return_info=True)
    np.testing.assert_allclose(x, TRUTH, rtol=1e-6)
    assert info.smoothness is None
    assert info.inliers == info.points == count


@settings(max_examples=8)
@given(st.integers(20, 60), st.integers(0, 99))
def test_outliers_do_not_matter_to_an_exact_map(count: int, seed: int) -> None:
    x = tasks.align_depth(0.3 / TRUTH + 2, points(count, seed, outliers=0.25))
    np.testing.assert_allclose(x, TRUTH, rtol=1e-5)


@settings(max_examples=8)
@given(st.floats(1e-4, 1e6), st.integers(0, 9))
def test_scaling_the_metric_scales_the_result(factor: float, seed: int) -> None:
    metric = points(40, seed, noise=0.01, outliers=0.1)
    x, info = tasks.align_depth(drifting(), metric, return_info=True)
    y, scaled = tasks.align_depth(drifting(), factor * metric, return_info=True)
    np.testing.assert_allclose(y, factor * x, rtol=1e-4)
    assert (info.unit, info.inliers) == (scaled.unit, scaled.inliers)
    assert scaled.error == pytest.approx(factor * info.error, rel=1e-3)


@settings(max_examples=8)
@given(st.floats(0.01, 100), st.floats(-50, 50), st.booleans())
def test_affine_changes_of_the_relative_map_change_nothing(
    scale: float, shift: float, flip: bool
) -> None:
    metric, relative = points(40, 3, noise=0.01), -drifting()  # below 0: no reciprocal form
    changed = scale * relative + shift
    changed -= max(0.0, float(changed.max()) + 1)
    x = tasks.align_depth(relative, metric)
    y = tasks.align_depth(changed, metric)
    assert rmse(x, y) < 0.02
    if flip:
        z = tasks.align_depth(-changed - 2 * abs(changed.min()), metric)
        assert rmse(x, z) < 0.02


@settings(max_examples=8)
@given(st.floats(1e-3, 1e3))
def test_confidence_has_no_unit(factor: float) -> None:
    metric = points(40, 2, noise=0.02)
    weights = np.random.default_rng(0).uniform(0.2, 1, TRUTH.shape)
    x = tasks.align_depth(drifting(), metric, confidence=weights)
    y = tasks.align_depth(drifting(), metric, confidence=factor * weights)
    np.testing.assert_allclose(x, y, rtol=1e-6)


def test_drift_is_corrected() -> None:
    relative = drifting()
    line = np.polyfit(relative.ravel(), 1 / TRUTH.ravel(), 1)
    best = rmse(1 / np.polyval(line, relative))
    errors = [rmse(tasks.align_depth(relative, points(50, seed))) for seed in range(5)]
    assert max(errors) < 0.6 * best
    errors = [rmse(tasks.align_depth(relative, points(50, s, 0.01, 0.2))) for s in range(5)]
    assert np.mean(errors) < 0.9 * best
    x = tasks.align_depth(relative, points(2000, 1))
    assert rmse(x) < 0.25 * best


@pytest.mark.parametrize("seed", range(4))
def test_noisy_points_do_not_print_blobs(seed: int) -> None:
    """The error is that of the scale: what remains after the best scale is small."""
    metric = points(30, seed, noise=0.03)
    x = tasks.align_depth(TRUTH, metric)
    assert rmse(x) < 0.03 * TRUTH.mean()
    a = np.polyval(np.polyfit(TRUTH.ravel(), x.ravel(), 1), TRUTH)
    assert rmse(x, a) < 0.012 * TRUTH.mean()


def test_whole_noisy_map() -> None:
    rng = np.random.default_rng(0)
    metric = TRUTH * (1 + 0.05 * rng.normal(size=TRUTH.shape))
    metric[rng.random(TRUTH.shape) < 0.1] = 9.0
    metric[10:40, 30:50] = np.nan
    relative = drifting()
    x, info = tasks.align_depth(relative, metric, return_info=True)
    known = np.isfinite(metric)
    assert info.inliers < 0.93 * known.sum()
    assert rmse(x) < 0.035
    assert np.isfinite(x).all()


def test_a_whole_map_is_as_good_as_without_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """The choices are made on a sample of the points, the result comes from all of them."""
    rng = np.random.default_rng(0)
    metric = TRUTH * (1 + 0.05 * rng.normal(size=TRUTH.shape))
    metric[rng.random(TRUTH.shape) < 0.1] = 9.0
    expected, whole = tasks.align_depth(drifting(), metric, return_info=True)
    monkeypatch.setattr(candidates, "_MOST_POINTS", 600)
    x, info = tasks.align_depth(drifting(), metric, return_info=True)
    assert info.points == whole.points == TRUTH.size
    assert abs(info.inliers - whole.inliers) < 0.02 * TRUTH.size
    assert rmse(x) < 1.2 * rmse(expected)
    few = np.where(rng.random(TRUTH.shape) < 600 / TRUTH.size, metric, 0)
    assert rmse(x) < 0.8 * rmse(tasks.align_depth(drifting(), few))
    assert info.expected_error == pytest.approx(whole.expected_error, rel=0.3)


def test_ten_points_are_no_worse_than_a_global_fit() -> None:
    """Few points say little about the form and its residual: the result must not be far off."""
    ratios = []
    for seed in range(12):
        relative = drifting(seed)
        inverse = np.polyval(np.polyfit(relative.ravel(), 1 / TRUTH.ravel(), 1), relative)
        x = tasks.align_depth(relative, points(10, seed + 50))
        ratios.append(rmse(x) / rmse(1 / inverse))
    assert np.exp(np.mean(np.log(ratios))) < 0.8
    assert max(ratios) < 1.3


def test_consistent_region_is_no_outlier() -> None:
    """A tenth of the points contradicts the network in one place, and agrees with itself."""
    region = (X < 25) & (Y > 30)
    truth = np.where(region, 0.6 * TRUTH, TRUTH)
    metric = np.where(points(1500, 0) > 0, truth, 0)
    x = tasks.align_depth(TRUTH, metric)
    inside = (X < 20) & (Y > 36)
    assert np.median(np.abs(x / truth - 1)[inside]) < 0.05


def test_few_points() -> None:
    x, info = tasks.align_depth(2 * TRUTH, points(1), return_info=True)
    np.testing.assert_allclose(x, TRUTH)
    assert info.shift == 0
    assert np.isnan(info.expected_error)
    x = tasks.align_depth(2 / TRUTH, points(1), kind="inverse depth")
    np.testing.assert_allclose(x, TRUTH)
    metric = np.zeros(TRUTH.shape)
    metric[5, 5], metric[40, 40] = TRUTH[5, 5], TRUTH[40, 40]
    np.testing.assert_allclose(tasks.align_depth(3 * TRUTH + 1, metric), TRUTH)
    np.testing.assert_allclose(tasks.align_depth(3 / TRUTH - 1, metric), TRUTH)


def test_constant_relative_map() -> None:
    x, info = tasks.align_depth(np.ones(TRUTH.shape), points(5), return_info=True)
    assert info.scale == 0
    metric = points(5)
    low, high = metric[metric > 0].min(), metric.max()
    assert (x > 0.5 * low).all()
    assert (x < 2 * high).all()
    photo = np.where(TRUTH < 2, 200, 30).astype(np.uint8)
    x = tasks.align_depth(np.ones(TRUTH.shape), points(200), photo)
    assert rmse(x) < 0.35


@settings(max_examples=8)
@given(st.integers(1, 12), st.integers(0, 99), st.floats(0, 1))
def test_any_input_gives_finite_depths_above_zero(count: int, seed: int, noise: float) -> None:
    rng = np.random.default_rng(seed)
    relative = rng.normal(size=TRUTH.shape).cumsum(axis=1)
    metric = np.zeros(TRUTH.shape)
    at = tuple(rng.integers(0, size, count) for size in TRUTH.shape)
    metric[at] = np.exp(3 * noise * rng.normal(size=count))
    x = tasks.align_depth(relative, metric)
    assert np.isfinite(x).all()
    assert (x > 0).all()
    assert x.max() <= 51 * metric.max()


def test_unknown_pixels() -> None:
    metric = points(40, 1)
    expected = tasks.align_depth(drifting(), metric)
    spoiled = np.where(metric == 0, -1.0, metric)
    spoiled[::2][metric[::2] == 0] = np.nan
    np.testing.assert_array_equal(tasks.align_depth(drifting(), spoiled), expected)
    np.testing.assert_array_equal(
        tasks.align_depth(drifting(), np.where(metric == 0, 7, metric), invalid=7), expected
    )
    filled = np.where(metric == 0, 7, metric)
    np.testing.assert_array_equal(tasks.align_depth(drifting(), filled, mask=metric > 0), expected)
    np.testing.assert_array_equal(
        tasks.align_depth(drifting(), filled, confidence=(metric > 0).astype(float)), expected
    )


def test_dtypes() -> None:
    millimetres = np.rint(1000 * points(60)).astype(np.uint16)
    x = tasks.align_depth((1000 / TRUTH).astype(np.float32), millimetres)
    assert x.dtype == np.uint16
    assert np.abs(x / 1000 - TRUTH).max() < 0.01
    assert tasks.align_depth(TRUTH, points(9).astype(np.float32)).dtype == np.float32
    assert tasks.align_depth(TRUTH, millimetres, dtype=np.float64).dtype == np.float64
    photo = np.zeros((*TRUTH.shape, 3), np.uint8)
    np.testing.assert_allclose(tasks.align_depth(TRUTH, points(9), photo=photo), TRUTH)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((TRUTH, np.zeros(TRUTH.shape)), "metric: expected at least one known pixel"),
        ((TRUTH, points(9)[1:]), "metric: expected one number per pixel"),
        ((np.where(X == 3, np.nan, TRUTH), points(9)), "relative: expected finite"),
        ((np.zeros((60, 80, 3)), points(9)), "relative: expected shape"),
        ((TRUTH, points(9), np.zeros((5, 5), np.uint8)), "reference: expected the shape"),
    ],
)
def test_errors(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tasks.align_depth(*arguments)
    with pytest.raises(ValueError, match="kind: expected one of 'auto'"):
        tasks.align_depth(TRUTH, points(9), kind="disparity")
