"""Confidences match plain loops and have their properties."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bilateral
from bilateral.confidence import (
    edge_aware_variance,
    from_interval,
    left_right_consistency,
    upsampling_support,
)
from support.strategies import Array, references, seeds, shapes, white

nan, inf = np.nan, np.inf


def with_holes(values: Array, rng: np.random.Generator, share: float) -> Array:
    """Replace some values by ones that are not finite."""
    holes = rng.uniform(size=values.shape) < share
    return np.where(holes, rng.choice([nan, inf, -inf], values.shape), values)


shares = st.sampled_from([0, 0.1, 0.5, 1])


# Edge-aware variance


@given(
    reference=references(20),
    channels=st.sampled_from([(), (1,), (3,)]),
    share=shares,
    margin=st.integers(0, 25),
    sigma=st.floats(0.1, 10),
    seed=seeds,
)
def test_variance_is_the_papers_formula(
    reference: Array, channels: Any, share: float, margin: int, sigma: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    shape = reference.shape[:2]
    z = with_holes(rng.normal(10, 3, shape + channels), rng, share)
    scale = {"reference_max": white(reference)}
    c = edge_aware_variance(z, reference, 5, 40, sigma, margin, **scale)
    planes = z.reshape(*shape, -1)
    known = np.isfinite(planes).all(axis=2)
    if not known.any():
        np.testing.assert_array_equal(c, np.zeros(shape))
        return
    planes[~known] = nan
    variance = np.zeros(shape)
    for plane in np.moveaxis(planes, 2, 0):
        square, mean = (
            bilateral.domain_transform(values, reference, 5, 40, **scale)
            for values in (plane**2, plane)
        )
        variance += square - mean**2
    expected = np.exp(-variance / (2 * sigma**2))
    expected[~known] = 0
    expected[:, :margin] = 0
    np.testing.assert_allclose(c, expected, rtol=0, atol=1e-9 / sigma**2)
    assert c.min() >= 0
    assert c.max() <= 1


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
@pytest.mark.parametrize("value", [0, 3, 200])
def test_a_constant_has_full_confidence(value: float, dtype: str) -> None:
    photo = np.random.default_rng(0).integers(0, 256, (9, 14, 3)).astype(np.uint8)
    c = edge_aware_variance(np.full((9, 14), value, dtype), photo)
    np.testing.assert_array_equal(c, np.ones((9, 14)))
    assert c.dtype == ("float64" if dtype == "float64" else "float32")


@given(seed=seeds, offset=st.sampled_from([1e3, -1e6, 1e8]))
def test_an_offset_does_not_matter(seed: int, offset: float) -> None:
    rng = np.random.default_rng(seed)
    z, photo = rng.normal(size=(12, 15)), rng.uniform(size=(12, 15, 3))
    near, far = edge_aware_variance(z, photo), edge_aware_variance(z + offset, photo)
    np.testing.assert_allclose(far, near, rtol=0, atol=1e-14 * abs(offset))


@given(seed=seeds, scale=st.sampled_from([1e-300, 1e-5, 1e5, 1e300]))
def test_target_and_sigma_may_have_any_common_unit(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    z, photo = rng.normal(size=(12, 15)), rng.uniform(size=(12, 15, 3))
    scaled = edge_aware_variance(scale * z, photo, sigma=scale)
    np.testing.assert_allclose(scaled, edge_aware_variance(z, photo, sigma=1), rtol=1e-9)


def test_extreme_variances_stay_within_0_and_1() -> None:
    z = np.tile([-1.7e308, 1.7e308], (4, 4))
    assert edge_aware_variance(z, np.zeros((4, 8)), sigma=1e-300).tolist() == [[0.0] * 8] * 4


@given(seed=seeds)
def test_values_that_are_not_finite_change_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    z, photo = rng.normal(size=(12, 15, 2)), rng.uniform(size=(12, 15, 3))
    z[rng.uniform(size=(12, 15)) < 0.4, 0] = nan
    other = z.copy()
    other[np.isnan(z[..., 0])] = rng.choice([inf, -inf, nan]), 1e200
    c = edge_aware_variance(z, photo)
    np.testing.assert_array_equal(c, edge_aware_variance(other, photo))
    np.testing.assert_array_equal(c > 0, np.isfinite(z[..., 0]))


def test_margins_at_both_sides() -> None:
    c = edge_aware_variance(np.zeros((3, 9)), np.zeros((3, 9)), margin=(2, 3))
    assert c.tolist() == [[0, 0, 1, 1, 1, 1, 0, 0, 0]] * 3
    assert not edge_aware_variance(np.zeros((3, 9)), np.zeros((3, 9)), margin=9).any()
    assert not edge_aware_variance(np.zeros((3, 9)), np.zeros((3, 9)), margin=(0, 99)).any()


# Upsampling


factors = st.integers(1, 9).map(float) | st.floats(0.7, 9)


@given(shape=shapes(15), factor=factors, sigma=st.none() | st.floats(0.2, 9), add=st.booleans())
def test_support_is_a_bump_around_each_centre(
    shape: tuple[int, int], factor: float, sigma: float | None, add: bool
) -> None:
    s = factor / 4 if sigma is None else sigma
    centres = [
        [(i + 0.5) * factor - 0.5 for i in range(math.ceil(n / factor - 1e-6))] for n in shape
    ]
    expected = np.zeros(shape)
    for y, x in np.ndindex(shape):
        bumps = [
            math.exp(-((y - v) ** 2 + (x - u) ** 2) / (2 * s**2))
            for v in centres[0]
            for u in centres[1]
        ]
        expected[y, x] = sum(bumps) if add else max(bumps)
    c = upsampling_support(shape, factor, sigma, overlap="sum" if add else "nearest")
    assert c.dtype == np.float32
    np.testing.assert_allclose(c, expected, rtol=1e-6, atol=1e-30)


@given(low=shapes(9), shape=shapes(40))
def test_factors_may_be_the_ratio_of_two_shapes(
    low: tuple[int, int], shape: tuple[int, int]
) -> None:
    height, width = (max(pair) for pair in zip(low, shape, strict=True))
    c = upsampling_support((height, width), (height / low[0], width / low[1]), overlap="sum")
    np.testing.assert_allclose(c, c[::-1, ::-1], rtol=1e-5)
    alone = upsampling_support((height, 1), (height / low[0], 1))
    np.testing.assert_allclose(alone[:, 0], alone[::-1, 0], rtol=1e-5)


def test_the_sum_of_bumps_has_the_mass_of_gaussians() -> None:
    # As in the authors' super-resolution: times 1 / (2 pi s^2), mass 1 per low-resolution pixel.
    c = upsampling_support((64, 64), 8, overlap="sum")[16:48, 16:48]
    assert c.mean() * 64 == pytest.approx(2 * np.pi * 2**2, rel=1e-6)


def test_the_shape_may_be_that_of_an_array_with_channels() -> None:
    photo = np.zeros((6, 8, 3))
    np.testing.assert_array_equal(upsampling_support(photo.shape, 2), upsampling_support((6, 8), 2))


# Intervals


@given(shape=shapes(9), share=shares, seed=seeds, scale=st.floats(0.1, 10), single=st.booleans())
def test_interval(
    shape: tuple[int, int], share: float, seed: int, scale: float, single: bool
) -> None:
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.normal(size=(2, *shape)), axis=0).astype("float32" if single else "float64")
    lower = with_holes(ends[0], rng, share / 2).astype(ends.dtype)
    upper = with_holes(ends[1], rng, share / 2).astype(ends.dtype)
    lower[lower == inf], upper[upper == -inf] = nan, nan
    target, c = from_interval(lower, upper, scale=scale)
    assert target.dtype == c.dtype == ends.dtype
    for at in np.ndindex(shape):
        low, high = float(lower[at]), float(upper[at])
        if math.isfinite(low) and math.isfinite(high):
            assert target[at] == pytest.approx((low + high) / 2, rel=1e-6, abs=1e-7)
            assert c[at] == pytest.approx(math.exp((low - high) / scale), rel=1e-5)
        else:
            assert math.isnan(target[at])
            assert c[at] == 0


def test_extreme_intervals() -> None:
    target, c = from_interval([[-1.7e308, 1.7e308, 0]], [[1.7e308, 1.7e308, 5e-324]], scale=1e-300)
    assert target.tolist() == [[0, 1.7e308, 0]]
    assert c.tolist() == [[0, 1, 1]]


# Left-right consistency


def obvious_error(own: Array, other: Array, y: int, x: int, sign: int) -> float:
    d = own[y, x]
    if not math.isfinite(d) or not 0 <= x + sign * d <= own.shape[1] - 1:
        return inf
    at = x + sign * d
    before = math.floor(at)
    near = [(other[y, before], 1 - (at - before))]
    if at > before:
        near.append((other[y, before + 1], at - before))
    known = [(value, weight) for value, weight in near if math.isfinite(value)]
    if len(known) == 2 and abs(known[0][0] - known[1][0]) <= 1:
        return float(abs(d - sum(value * weight for value, weight in known)))
    return min((float(abs(d - value)) for value, _ in known), default=inf)


@given(
    shape=shapes(12),
    share=shares,
    seed=seeds,
    threshold=st.floats(0.1, 4),
    whole=st.booleans(),
    view=st.sampled_from(["left", "right"]),
)
def test_consistency_matches_a_plain_loop(
    shape: tuple[int, int], share: float, seed: int, threshold: float, whole: bool, view: str
) -> None:
    rng = np.random.default_rng(seed)
    left, right = rng.uniform(-2, 6, (2, *shape))
    if whole:
        left, right = np.rint(left), np.rint(right)
    left, right = with_holes(left, rng, share / 2), with_holes(right, rng, share / 2)
    own, other, sign = (left, right, -1) if view == "left" else (right, left, 1)
    error = np.array(
        [[obvious_error(own, other, y, x, sign) for x in range(shape[1])] for y in range(shape[0])]
    )
    hard = left_right_consistency(left, right, threshold, view=view)
    soft = left_right_consistency(left, right, threshold, view=view, soft=True)
    clear = ~(np.abs(error - threshold) < 1e-12)
    np.testing.assert_array_equal(hard[clear], (error <= threshold)[clear])
    np.testing.assert_allclose(soft, np.exp(-(error**2) / (2 * threshold**2)), atol=1e-12)


def test_a_slanted_plane_is_consistent_with_itself() -> None:
    # The point at x' = x - d_L(x) in the right view has d_R(x') = d_L(x).
    x = np.arange(60)
    left = np.tile(2 + x / 10, (3, 1))
    right = np.tile(2 + (x + 2) / 9, (3, 1))
    inside = x - left[0] >= 0
    c = left_right_consistency(left, right, 1e-9)
    np.testing.assert_array_equal(c, np.tile(inside, (3, 1)))
    back = left_right_consistency(left, right, 1e-9, view="right")
    np.testing.assert_array_equal(back, np.tile(x + right[0] <= 59, (3, 1)))


def test_a_hidden_background_is_inconsistent() -> None:
    # A square at disparity 5 before a wall at 1: four columns of the wall beside it are hidden.
    left, right = np.ones((1, 40)), np.ones((1, 40))
    left[0, 20:30] = 5
    right[0, 15:25] = 5
    assert np.flatnonzero(left_right_consistency(left, right) == 0).tolist() == [0, 16, 17, 18, 19]
    hidden = np.flatnonzero(left_right_consistency(left, right, view="right") == 0).tolist()
    assert hidden == [25, 26, 27, 28, 39]


def test_mirrored_views_swap_their_roles() -> None:
    left, right = np.random.default_rng(0).uniform(0, 5, (2, 7, 20))
    np.testing.assert_array_equal(
        left_right_consistency(right[:, ::-1], left[:, ::-1])[:, ::-1],
        left_right_consistency(left, right, view="right"),
    )


# Errors


MAP, PHOTO = np.zeros((6, 8)), np.zeros((6, 8, 3), np.uint8)
VARIANCE = (edge_aware_variance, {"target": MAP, "reference": PHOTO})
SUPPORT = (upsampling_support, {"shape": (6, 8), "factor": 2})
INTERVAL = (from_interval, {"lower": MAP, "upper": MAP})
CONSISTENCY = (left_right_consistency, {"left": MAP, "right": MAP})


@pytest.mark.parametrize(
    ("call", "argument", "value", "error", "told"),
    [
        (VARIANCE, "target", MAP[:5], ValueError, "(5, 8)"),
        (VARIANCE, "target", MAP.astype(complex), TypeError, "complex128"),
        (VARIANCE, "target", np.ma.masked_array(MAP), TypeError, "masked"),
        (VARIANCE, "reference", PHOTO[..., :0], ValueError, "(6, 8, 0)"),
        (VARIANCE, "reference", np.full((6, 8), nan), ValueError, "nan"),
        (VARIANCE, "sigma_xy", 0, ValueError, "0"),
        (VARIANCE, "sigma_rgb", -1, ValueError, "-1"),
        (VARIANCE, "sigma", 0, ValueError, "0"),
        (VARIANCE, "sigma", "2", TypeError, "str"),
        (VARIANCE, "margin", -1, ValueError, "-1"),
        (VARIANCE, "margin", 1.5, TypeError, "1.5"),
        (VARIANCE, "margin", (1, 2, 3), ValueError, "(1, 2, 3)"),
        (VARIANCE, "reference_max", 0, ValueError, "0"),
        (SUPPORT, "shape", 6, TypeError, "6"),
        (SUPPORT, "shape", (6,), TypeError, "(6,)"),
        (SUPPORT, "shape", (6, 0), ValueError, "0"),
        (SUPPORT, "shape", (6.5, 8), TypeError, "6.5"),
        (SUPPORT, "factor", 0, ValueError, "0"),
        (SUPPORT, "factor", nan, ValueError, "nan"),
        (SUPPORT, "factor", (2, -2), ValueError, "-2"),
        (SUPPORT, "factor", (2, 2, 2), ValueError, "(2, 2, 2)"),
        (SUPPORT, "factor", None, TypeError, "None"),
        (SUPPORT, "sigma", 0, ValueError, "0"),
        (SUPPORT, "overlap", "max", ValueError, "'max'"),
        (INTERVAL, "lower", MAP[0], ValueError, "(8,)"),
        (INTERVAL, "lower", MAP + 1, ValueError, "1.0 > 0.0 at row 0, column 0"),
        (INTERVAL, "lower", MAP.astype(object), TypeError, "object"),
        (INTERVAL, "upper", MAP[:5], ValueError, "(5, 8)"),
        (INTERVAL, "scale", 0, ValueError, "0"),
        (CONSISTENCY, "left", PHOTO, ValueError, "(6, 8, 3)"),
        (CONSISTENCY, "left", MAP[:0], ValueError, "(0, 8)"),
        (CONSISTENCY, "right", MAP.T, ValueError, "(8, 6)"),
        (CONSISTENCY, "threshold", 0, ValueError, "0"),
        (CONSISTENCY, "view", "up", ValueError, "'up'"),
    ],
)
def test_wrong_input_is_named(
    call: Any, argument: str, value: Any, error: type[Exception], told: str
) -> None:
    function, arguments = call
    with pytest.raises(error, match=f"^{argument}") as raised:
        function(**arguments | {argument: value})
    assert told in str(raised.value)


def test_inputs_are_left_alone() -> None:
    rng = np.random.default_rng(0)
    maps = rng.uniform(0, 3, (2, 6, 8))
    maps[:, 2, 3] = nan
    before = maps.copy()
    edge_aware_variance(maps[0], PHOTO)
    from_interval(maps[0], maps[0] + maps[1])
    left_right_consistency(*maps)
    np.testing.assert_array_equal(maps, before)
