"""The median filter matches its oracle and has the properties of a median."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import bilateral
from oracles.median import median_filter
from support.layouts import LAYOUTS
from support.strategies import Array, seeds, shapes

NATIVE = ("uint8", "uint16", "float32", "float64")
OTHERS = ("bool", "int8", "int16", "int32", "uint32", "int64", "uint64", "float16", "longdouble")

sizes = st.sampled_from([3, 5])


def expected(image: Array, size: int) -> Array:
    """Filter each channel with the oracle."""
    planes = np.moveaxis(np.atleast_3d(image), 2, 0).astype(np.float64)
    filtered = [median_filter(plane, size) for plane in planes]
    return np.stack(filtered, axis=2).reshape(image.shape).astype(image.dtype)


@st.composite
def images(draw: st.DrawFn, dtypes: tuple[str, ...] = NATIVE + OTHERS) -> Array:
    """Few or many distinct values, (H, W) or (H, W, K), with holes and infinities if possible."""
    channels: tuple[int, ...] = draw(st.sampled_from([(), (), (1,), (2,), (3,), (40,)]))
    shape = draw(shapes(40 if len(channels) == 0 else 8)) + channels
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    rng = np.random.default_rng(draw(seeds))
    if dtype.kind == "f":
        image = rng.normal(size=shape) * 10 ** rng.uniform(-3, 3)
        if draw(st.booleans()):
            image = np.rint(image)
        special = rng.uniform(size=shape) < draw(st.sampled_from([0, 0.01, 0.3, 0.6, 0.95, 1]))
        kinds = draw(st.sampled_from([[np.nan], [np.inf, -np.inf], [np.nan, np.inf, -np.inf]]))
        image[special] = rng.choice(kinds, int(special.sum()))
        return image.astype(dtype)
    if dtype.kind == "b":
        return rng.uniform(size=shape) < rng.uniform()
    limits = np.iinfo(dtype)
    low, high = max(limits.min, -(2**53)), min(limits.max, 2**53)
    if draw(st.booleans()):
        high = low + 3
    return rng.integers(low, high, shape, dtype=dtype, endpoint=True)


@given(image=images(), size=sizes)
@example(image=np.array([[np.nan]]), size=5)
@example(image=np.array([[-np.inf, np.inf, np.nan, np.nan]]), size=3)
@example(image=np.array([[np.nan, 1.7e308, 1.6e308]]), size=3)
@example(image=np.full((2, 2), 5e-324), size=3)
def test_median_matches_the_oracle(image: Array, size: int) -> None:
    before = image.copy()
    out = bilateral.median(image, size)
    assert out.shape == image.shape
    assert out.dtype == image.dtype
    assert out.flags.c_contiguous
    if image.dtype.kind == "f":
        rounding = np.finfo(image.dtype).eps if np.isnan(image).any() else 0
        np.testing.assert_allclose(out, expected(image, size), rtol=rounding, atol=0)
    else:
        np.testing.assert_array_equal(out, expected(image, size))
    np.testing.assert_array_equal(image, before)


@given(image=images(("float32", "float64")), size=sizes)
def test_nan_is_left_where_all_is_nan_and_nowhere_else(image: Array, size: int) -> None:
    border = [(size // 2, size // 2)] * 2 + [(0, 0)] * (image.ndim - 2)
    padded = np.pad(np.isnan(image), border, mode="symmetric")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), axis=(0, 1))
    nothing = windows.all(axis=(-1, -2))
    np.testing.assert_array_equal(np.isnan(bilateral.median(image, size)), nothing)


@pytest.mark.parametrize("dtype", NATIVE)
@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (33, 70), (64, 513), (65, 129, 3), (3, 2, 300)])
def test_tiles_of_every_kind_fit_together(shape: tuple[int, ...], size: int, dtype: str) -> None:
    rng = np.random.default_rng(1)
    image = rng.integers(0, 200, shape).astype(dtype)
    if dtype.startswith("float"):
        image[rng.uniform(size=shape) < 0.001] = np.nan
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(image, [(size // 2,) * 2] * 2 + [(0, 0)] * (image.ndim - 2), mode="symmetric"),
        (size, size),
        axis=(0, 1),
    )
    middle: Any = np.nanmedian if dtype.startswith("float") else np.median
    np.testing.assert_array_equal(bilateral.median(image, size), middle(windows, axis=(-1, -2)))


@given(image=images(("float64",)), size=sizes, seed=seeds)
def test_a_rising_map_of_the_values_maps_the_median(image: Array, size: int, seed: int) -> None:
    # With an odd number of values; the mean of two is not a rank.
    image = np.nan_to_num(image)
    values, ranks = np.unique(image, return_inverse=True)
    levels = np.sort(np.random.default_rng(seed).normal(size=values.size))
    mapped = bilateral.median(levels[ranks].reshape(image.shape), size)
    medians = bilateral.median(image, size)
    np.testing.assert_array_equal(mapped, levels[np.searchsorted(values, medians)])


@given(image=images(("uint8", "float32")), size=sizes)
def test_transposing_the_image_transposes_the_median(image: Array, size: int) -> None:
    turned = bilateral.median(image.swapaxes(0, 1), size)
    np.testing.assert_array_equal(turned, bilateral.median(image, size).swapaxes(0, 1))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [*NATIVE, "int16", "bool"])
def test_any_layout(layout: str, dtype: str) -> None:
    image = np.random.default_rng(0).integers(0, 100, (11, 14, 3)).astype(dtype)
    np.testing.assert_array_equal(bilateral.median(LAYOUTS[layout](image)), bilateral.median(image))


@pytest.mark.parametrize("dtype", NATIVE)
def test_any_number_of_threads_gives_the_same_bits(dtype: str, keep_num_threads: None) -> None:
    rng = np.random.default_rng(0)
    image = (50 * rng.normal(size=(500, 700)) + 100).astype(dtype)
    if dtype.startswith("float"):
        image[rng.uniform(size=image.shape) < 0.01] = np.nan
        image[::3, ::5] *= 0  # zeros of both signs
    results = []
    for threads in (1, 2, 3, 8):
        bilateral.set_num_threads(threads)
        results += [bilateral.median(image).tobytes() for _ in range(2)]
    assert len(set(results)) == 1


def test_several_python_threads_at_once() -> None:
    image = np.random.default_rng(0).normal(size=(300, 400))
    alone = bilateral.median(image)
    with ThreadPoolExecutor(4) as pool:
        for out in pool.map(bilateral.median, [image] * 8):
            np.testing.assert_array_equal(out, alone)


def test_lists_are_images_too() -> None:
    assert bilateral.median([[1, 2, 300], [4, 5, 6]], 3).tolist() == [[2, 4, 6], [4, 5, 6]]


IMAGE = np.zeros((6, 8))


@pytest.mark.parametrize(
    ("argument", "value", "error", "told"),
    [
        ("image", IMAGE[0], ValueError, "(8,)"),
        ("image", 1.0, ValueError, "()"),
        ("image", IMAGE[:0], ValueError, "(0, 8)"),
        ("image", np.zeros((6, 8, 0)), ValueError, "(6, 8, 0)"),
        ("image", np.zeros((2, 6, 8, 3)), ValueError, "(2, 6, 8, 3)"),
        ("image", IMAGE.astype(complex), TypeError, "complex128"),
        ("image", IMAGE.astype(object), TypeError, "object"),
        ("image", np.ma.masked_array(IMAGE), TypeError, "masked"),
        ("image", None, TypeError, "object"),
        ("image", np.full((2, 2), 2**53 + 2), ValueError, str(2**53 + 2)),
        ("image", np.full((2, 2), -(2**63)), ValueError, str(-(2**63))),
        ("size", 4, ValueError, "4"),
        ("size", 7, ValueError, "7"),
        ("size", 0, ValueError, "0"),
        ("size", -3, ValueError, "-3"),
        ("size", 5.0, TypeError, "5.0"),
        ("size", "5", TypeError, "'5'"),
        ("size", None, TypeError, "None"),
        ("size", (5, 5), TypeError, "(5, 5)"),
    ],
)
def test_wrong_input_is_named(argument: str, value: Any, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=f"^{argument}: ") as raised:
        bilateral.median(**{"image": IMAGE} | {argument: value})
    assert told in str(raised.value)
