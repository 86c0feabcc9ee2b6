"""Stereo: the matcher matches its oracle; scenes with known disparities."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bilateral
from bilateral.backends import cpu
from bilateral.tasks import match_blocks, stereo_depth
from oracles import stereo as oracle
from support.examples import examples
from support.strategies import Array, as_dtype, seeds, shapes


def shifted(disparity: Array, rng: np.random.Generator, channels: int = 3) -> tuple[Array, Array]:
    """Return two views of random dots on surfaces of whole disparities, in 0..1."""
    height, width = disparity.shape
    right = rng.uniform(size=(height, width, channels))
    left = rng.uniform(size=(height, width, channels))  # pixels that the right view does not see
    y, x = np.mgrid[:height, :width]
    at = x - disparity
    nearest = np.full((height, width), -1)
    seen = at >= 0
    np.maximum.at(nearest, (y[seen], at[seen]), disparity[seen])
    visible = seen & (nearest[y, np.maximum(at, 0)] == disparity)
    left[visible] = right[y[visible], at[visible]]
    return left, right


def square(height: int = 80, width: int = 120, near: int = 14, far: int = 4) -> Array:
    """A square before a background, each parallel to the image."""
    disparity = np.full((height, width), far)
    disparity[20:60, 45:95] = near
    return disparity


def painted(disparity: Array, dots: Array) -> Array:
    """Dots of low contrast on surfaces of different colours: the guide then has the edges."""
    return 0.3 * dots + np.where(disparity > 8, 0.6, 0.1)[..., np.newaxis]


@examples(60)
@given(
    shape=shapes(30),
    most=st.integers(0, 12),
    window=st.sampled_from([1, 3, 7, 21]),
    margin=st.sampled_from([0.0, 0.05, 0.5]),
    levels=st.sampled_from([1, 3, 256]),
    seed=seeds,
)
def test_intervals_match_the_oracle(
    shape: tuple[int, int], most: int, window: int, margin: float, levels: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, levels, (2, *shape)).astype(np.float32)
    most = min(most, shape[1] - 1)
    found = cpu.match_blocks(left, right, most, window, margin)
    lower, upper, other = oracle.intervals(left, right, most, window, margin)
    np.testing.assert_allclose(found.lower, lower, atol=1e-4)
    np.testing.assert_allclose(found.upper, upper, atol=1e-4)
    np.testing.assert_array_equal(found.right, other)
    assert ((found.lower <= found.left) & (found.left <= found.upper)).all()


def test_bands_of_rows_leave_no_trace() -> None:
    rng = np.random.default_rng(3)
    left, right = rng.integers(0, 9, (2, 130, 20)).astype(np.float32)
    found = cpu.match_blocks(left, right, 6, 5, 0.1)
    lower, upper, other = oracle.intervals(left, right, 6, 5, 0.1)
    np.testing.assert_allclose(found.lower, lower, atol=1e-4)
    np.testing.assert_allclose(found.upper, upper, atol=1e-4)
    np.testing.assert_array_equal(found.right, other)


def test_the_largest_costs_fit() -> None:
    left = np.random.default_rng(0).permutation(900).reshape(30, 30).astype(np.float32)
    found = cpu.match_blocks(left, -left, 3, 21, 0.05)  # all bits differ where d is 0
    lower, upper, other = oracle.intervals(left, -left, 3, 21, 0.05)
    np.testing.assert_allclose(found.lower, lower, atol=1e-4)
    np.testing.assert_allclose(found.upper, upper, atol=1e-4)
    np.testing.assert_array_equal(found.right, other)


@pytest.mark.usefixtures("keep_num_threads")
def test_any_number_of_threads_gives_the_same_bits() -> None:
    left, right = shifted(square(200, 160), np.random.default_rng(0))
    results = []
    for threads in (1, 2, 5):
        bilateral.set_num_threads(threads)
        results.append(stereo_depth(left, right, 32))
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


def test_a_shift_is_found() -> None:
    left, right = shifted(np.full((40, 80), 9), np.random.default_rng(0))
    target, c = match_blocks(left, right, 20)
    inside = np.s_[:, 20:-4]
    assert np.abs(target[inside] - 9).max() < 0.15
    assert (c[inside] > 0.5).mean() > 0.95


def test_a_fraction_of_a_pixel_is_found() -> None:
    x, y = np.meshgrid(np.arange(160.0), np.arange(40.0))
    rng = np.random.default_rng(1)
    waves = rng.uniform(0.1, 0.7, (24, 2)), rng.uniform(0, 6.3, 24)

    def scene(x: Array) -> Array:
        phases = [a * x + b * y + c for (a, b), c in zip(waves[0], waves[1], strict=True)]
        return 0.5 + np.sin(phases).sum(axis=0) / 30

    d = stereo_depth(scene(x), scene(x + 6.4), 16)  # left(x) = right(x - 6.4)
    middle = d[5:-5, 30:-20]
    assert abs(float(middle.mean()) - 6.4) < 0.15
    assert abs(float(np.abs(middle - 6.4).mean())) < 0.3


@pytest.mark.parametrize("loss", [bilateral.GemanMcClure(1.0), None])
def test_a_square_before_a_background(loss: Any) -> None:
    disparity = square()
    left, right = shifted(disparity, np.random.default_rng(0))
    guide = painted(disparity, left)
    smoothness = 0.5 if loss is not None else 4.0
    d = stereo_depth(guide, right, 24, loss=loss, smoothness=smoothness)
    error = np.abs(d - disparity)
    assert error.mean() < (0.3 if loss is not None else 1.0)
    assert np.abs(d[30:50, 55:85] - 14).max() < 1
    assert np.abs(d[:, 105:] - 4).max() < 1


def test_occluded_pixels_are_not_confirmed() -> None:
    disparity = square()
    left, right = shifted(disparity, np.random.default_rng(5))
    target, c = match_blocks(left, right, 24)
    hidden = np.s_[24:56, 37:43]  # left of the square, of the background
    assert np.isnan(target[hidden]).mean() > 0.7
    assert (c[np.isnan(target)] == 0).all()
    assert np.isfinite(match_blocks(left, right, 24, consistency=None)[0]).all()


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
@pytest.mark.parametrize("channels", [0, 1, 3])
def test_dtypes_agree(dtype: str, channels: int) -> None:
    disparity = square(40, 100)[:, 10:]
    left, right = shifted(disparity, np.random.default_rng(2), max(channels, 1))
    left, right = (np.rint(view * 255) / 255 for view in (left, right))  # all dtypes hold these
    if channels == 0:
        left, right = left[..., 0], right[..., 0]
    d = stereo_depth(as_dtype(left, dtype), as_dtype(right, dtype), 20)
    assert d.dtype == np.float32
    assert d.shape == disparity.shape
    expected = stereo_depth(as_dtype(left, "uint8"), as_dtype(right, "uint8"), 20)
    assert np.median(np.abs(d - expected)) < 0.01


def test_gain_and_offset_of_one_view_do_not_matter() -> None:
    left, right = shifted(square(), np.random.default_rng(4))
    once = match_blocks(left, right, 20)
    again = match_blocks(left, 0.5 * right + 0.2, 20)
    assert np.isclose(once[0], again[0], equal_nan=True).mean() > 0.999


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (1, 50, 3), (2, 2, 3)])
def test_small_images(shape: tuple[int, ...]) -> None:
    view = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    d = stereo_depth(view, view, 5)
    assert d.shape == shape[:2]
    assert np.isfinite(d).all()
    assert (d >= 0).all()


def test_a_large_search_range_is_cut_to_the_width() -> None:
    left, right = shifted(np.full((20, 40), 3), np.random.default_rng(0))
    d = stereo_depth(left, right, 10**9)
    assert abs(float(np.median(d)) - 3) < 0.1


VIEW = np.random.default_rng(0).integers(0, 256, (6, 8), dtype=np.uint8)
HOLED = np.where(np.arange(48).reshape(6, 8) == 19, np.nan, 0.5)

WRONG: list[tuple[str, Any, type[Exception], str]] = [
    ("left", VIEW[0], ValueError, "(8,)"),
    ("left", HOLED, ValueError, "nan at row 2, column 3"),
    ("right", VIEW[:, 1:], ValueError, "(6, 7)"),
    ("right", np.stack([VIEW] * 3, axis=2), ValueError, "(6, 8, 3)"),
    ("right", HOLED, ValueError, "nan at row 2, column 3"),
    ("right", VIEW.astype(int), TypeError, "int64"),
    ("max_disparity", 0, ValueError, "0"),
    ("max_disparity", 2.5, TypeError, "2.5"),
    ("window", 4, ValueError, "4"),
    ("window", 23, ValueError, "23"),
    ("margin", -0.1, ValueError, "-0.1"),
    ("consistency", 0, ValueError, "0"),
    ("smoothness", 0, ValueError, "0"),
    ("sigma_xy", -1, ValueError, "-1"),
    ("loss", "huber", TypeError, "huber"),
    ("iterations", 0, ValueError, "0"),
    ("smooth", 4, TypeError, "4"),
    ("reference_max", 0, ValueError, "0"),
]


@pytest.mark.parametrize(("argument", "value", "error", "told"), WRONG)
def test_wrong_input(argument: str, value: Any, error: type[Exception], told: str) -> None:
    arguments: dict[str, Any] = {"left": VIEW, "right": VIEW, "max_disparity": 3}
    with pytest.raises(error) as caught:
        stereo_depth(**arguments | {argument: value})
    assert str(caught.value).startswith(argument)
    assert told in str(caught.value)


@examples(20)
@given(shape=shapes(20), seed=seeds)
def test_views_of_two_scenes_give_finite_disparities(shape: tuple[int, int], seed: int) -> None:
    left, right = np.random.default_rng(seed).integers(0, 256, (2, *shape), dtype=np.uint8)
    _, c = match_blocks(left, right, 8)
    assert (c > 0).any(axis=1).all()  # the best pair of each row confirms itself
    d = stereo_depth(left, right, 8)
    assert np.isfinite(d).all()
    assert (d <= 8).all()


def test_a_loss_without_weight_for_most_pixels_keeps_disparities_in_range() -> None:
    left, right = shifted(square(), np.random.default_rng(0))
    d = stereo_depth(left, right, 20, loss=bilateral.Welsch(1e-6))
    assert ((d >= 0) & (d <= 20)).all()
    assert abs(float(np.median(d)) - 4) < 0.1


@pytest.mark.parametrize("value", [0, 255])
def test_views_without_texture(value: int) -> None:
    flat = np.full((20, 200), value, np.uint8)
    d = stereo_depth(flat, flat, 150)
    assert ((d >= 0) & (d <= 150)).all()
