"""Colorization: strokes of every kind, the kept luma, and errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from bilateral import color
from bilateral.tasks import Colorizer, colorize
from bilateral.tasks.colorize.texture import texture
from support.examples import examples

LUMA = color.RGB_TO_YUV[0]
RED, BLUE = (180, 60, 50), (90, 120, 190)


def chroma(rgb, highest=255.0):
    return color.chroma(np.asarray(rgb), highest)


@pytest.fixture
def two():
    """A dark and a bright half with some grain, a red stroke on one and a blue one on the other."""
    rng = np.random.default_rng(0)
    gray = np.where(np.arange(60) < 30, 90, 170) + rng.integers(-3, 4, (40, 60))
    gray = gray.astype(np.uint8)
    marked = np.stack([gray] * 3, axis=2)
    marked[10:13, 5:20], marked[25:28, 40:55] = RED, BLUE
    return gray, marked


def layer_of(gray, marked):
    painted = (marked != gray[..., np.newaxis]).any(axis=2)
    return np.dstack([marked, np.uint8(255) * painted]), painted


def hue(rgb):
    u, v = np.moveaxis(chroma(rgb).astype(float), -1, 0)
    return np.arctan2(v, u)


def test_colours_fill_their_regions_and_do_not_cross_the_edge(two):
    gray, marked = two
    x = colorize(gray, marked)
    assert x.shape == (40, 60, 3)
    assert x.dtype == np.uint8
    # 8-bit rounding of red and blue leaves about a level in U and V.
    assert_allclose(chroma(x)[:, :30], np.broadcast_to(chroma(RED), (40, 30, 2)), atol=1.5)
    assert_allclose(chroma(x)[:, 30:], np.broadcast_to(chroma(BLUE), (40, 30, 2)), atol=1.5)


def test_the_paper_preset_is_close_to_the_best_one(two):
    gray, marked = two
    assert_allclose(
        chroma(colorize(gray, marked, preset="paper")), chroma(colorize(gray, marked)), atol=3
    )


@pytest.mark.parametrize(
    ("dtype", "white", "given"),
    [(np.uint8, 255, None), (np.uint16, 65535, None), (np.float32, 1, None), (np.float64, 2, 2)],
)
def test_any_dtype_gives_the_same_picture(two, dtype, white, given):
    gray, marked = (a / 255 for a in two)
    x = colorize((gray * white).astype(dtype), (marked * white).astype(dtype), reference_max=given)
    assert x.dtype == dtype
    tolerance = 1.01 / 255 if dtype == np.uint8 else 1e-4
    assert_allclose(x / white, colorize(gray, marked), atol=tolerance)


def test_half_precision_and_foreign_byte_order(two):
    gray, marked = (a.astype(np.float32) / 255 for a in two)
    x = colorize(gray, marked)
    assert colorize(gray.astype(np.float16), marked).dtype == np.float16
    swapped = colorize(gray.astype(">f4"), marked.astype(">f4"))
    assert swapped.dtype == np.float32
    assert_array_equal(swapped, x)


@examples(60)
@given(
    st.integers(0, 2**32 - 1),
    st.tuples(st.integers(1, 12), st.integers(1, 12)),
    st.sampled_from([np.uint8, np.uint16, np.float32, np.float64]),
)
def test_luma_stays_and_colours_are_in_range(seed, shape, dtype):
    rng = np.random.default_rng(seed)
    integer = np.issubdtype(dtype, np.integer)
    white = np.iinfo(dtype).max if integer else 1
    gray = (rng.random(shape) * white).astype(dtype)
    paint = (rng.random((*shape, 3)) * white).astype(dtype)  # often too strong for the luma
    mask = rng.random(shape) < 0.5
    mask.flat[0] = True
    x = colorize(gray, paint, mask)
    assert x.min() >= 0
    assert x.max() <= white * (1 + 1e-6)
    luma = x.astype(np.float64) @ LUMA
    if integer:
        assert_array_equal(np.rint(luma), gray)
    else:
        assert_allclose(luma, gray, atol=3e-7 if dtype == np.float32 else 1e-14)


def test_too_strong_colours_keep_their_hue():
    gray = np.linspace(0.01, 0.99, 99)[np.newaxis].repeat(8, axis=0)
    paint = np.broadcast_to((0.9, 0.1, 0.0), (8, 99, 3))
    x = colorize(gray, paint, np.ones((8, 99), bool))
    assert_allclose(hue(x * 255), hue(np.array([0.9, 0.1, 0.0]) * 255), atol=1e-4)
    strength = np.linalg.norm(chroma(x, 1.0), axis=2)[0]
    assert strength[0] < strength[30]
    assert strength[-1] < strength[30]
    assert x.min() >= -1e-12
    assert x.max() <= 1 + 1e-12


def test_a_marked_picture_a_layer_and_a_mask_give_the_same(two):
    gray, marked = two
    layer, painted = layer_of(gray, marked)
    expected = colorize(gray, marked)
    assert_array_equal(colorize(gray, layer), expected)
    assert_array_equal(colorize(gray, marked, painted), expected)
    assert_array_equal(colorize(gray, layer, painted.astype(int)), expected)
    assert_array_equal(colorize(np.stack([gray] * 3, axis=2), marked), expected)
    nowhere = np.where(painted[..., np.newaxis], marked, 77)
    assert_array_equal(colorize(gray, np.dstack([nowhere, layer[..., 3]])), expected)


def test_an_alpha_that_is_the_same_everywhere_is_ignored(two):
    gray, marked = two
    for alpha in (0, 255):
        full = np.dstack([marked, np.full(gray.shape, alpha, np.uint8)])
        assert_array_equal(colorize(gray, full), colorize(gray, marked))


def test_faint_strokes_count_less():
    gray = np.full((30, 30), 120, np.uint8)
    layer = np.zeros((30, 30, 4), np.uint8)
    layer[5:10, 5:10], layer[20:25, 20:25] = (*RED, 255), (*BLUE, 255)
    equal = chroma(colorize(gray, layer, smoothness=100))[15, 15]
    layer[20:25, 20:25, 3] = 10
    fainter = chroma(colorize(gray, layer, smoothness=100))[15, 15]
    assert np.linalg.norm(fainter - chroma(RED)) < 0.5 * np.linalg.norm(equal - chroma(RED))


def test_gray_strokes_by_a_mask_keep_a_region_gray(two):
    gray, marked = two
    mask = np.zeros(gray.shape, bool)
    mask[10:13, 5:20] = mask[2:6, 35:55] = True  # the second region has no paint
    x = colorize(gray, marked, mask)
    assert np.abs(chroma(x)[:, 32:]).max() < 2
    assert np.abs(chroma(x)[:, :28]).max() > 20


def test_colours_that_are_not_finite_are_no_strokes(two):
    gray, marked = (a.astype(np.float32) / 255 for a in two)
    expected = colorize(gray, marked)
    spoiled = marked.copy()
    spoiled[0, 0], spoiled[30, 5, 1] = np.nan, np.inf
    assert_array_equal(colorize(gray, spoiled), expected)
    layer = np.dstack([marked, layer_of(gray, marked)[1].astype(np.float32)])
    layer[0, 0, 3] = np.nan
    assert_array_equal(colorize(gray, layer), expected)


def test_a_coloured_photograph_is_reduced_to_its_luma(two):
    gray, marked = two
    tinted = np.stack([gray, gray - 2, gray - 9], axis=2)  # an old print
    painted = layer_of(gray, marked)[1]
    x = colorize(tinted, np.where(painted[..., np.newaxis], marked, tinted))
    assert_array_equal(np.rint(x @ LUMA), np.rint(tinted @ LUMA))
    assert_allclose(chroma(x)[:, :28], np.broadcast_to(chroma(RED), (40, 28, 2)), atol=2)


def test_texture_separates_surfaces_of_equal_brightness():
    rng = np.random.default_rng(1)
    y, x = np.mgrid[:60, :60]
    rough = 120 + 40 * np.sign(np.sin(x * 2.1) * np.sin(y * 2.1)) + rng.normal(0, 6, (60, 60))
    gray = np.where(x < 30, rough, 120 + rng.normal(0, 2, (60, 60))).clip(0, 255).astype(np.uint8)
    layer = np.zeros((60, 60, 4), np.uint8)
    layer[5:55:10, 3:10], layer[5:55:10, 50:57] = (*RED, 255), (*BLUE, 255)
    truth = np.where((x < 30)[..., np.newaxis], chroma(RED), chroma(BLUE))
    best, paper = (
        np.abs(chroma(colorize(gray, layer, preset=preset)) - truth).mean()
        for preset in ("best", "paper")
    )
    assert best < 0.8 * paper


def test_texture_is_the_least_deviation_over_five_by_five_pixels():
    image = np.random.default_rng(0).uniform(0, 255, (9, 7))
    padded = np.pad(image, 2, mode="edge")
    deviation = [[padded[i : i + 5, j : j + 5].std() for j in range(7)] for i in range(9)]
    padded = np.pad(deviation, 2, mode="edge")
    expected = [[padded[i : i + 5, j : j + 5].min() for j in range(7)] for i in range(9)]
    assert_allclose(texture(image), expected, rtol=1e-9)


def test_an_edge_is_no_texture():
    image = np.repeat(np.float32([20, 250]), 8)[np.newaxis].repeat(9, axis=0)
    assert_allclose(texture(image), 0, atol=0.1)


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (2, 3)])
def test_tiny_pictures(shape):
    gray = np.full(shape, 100, np.uint8)
    paint = np.broadcast_to(np.uint8(RED), (*shape, 3))
    mask = np.zeros(shape, bool)
    mask[0, 0] = True
    x = colorize(gray, paint, mask)
    assert_allclose(chroma(x), np.broadcast_to(chroma(RED), (*shape, 2)), atol=1.5)


def test_pixels_brighter_than_white_stay_gray():
    gray = np.full((6, 8), 0.5)
    gray[:, 4:] = 1.5
    x = colorize(gray, np.broadcast_to((0.9, 0.3, 0.3), (6, 8, 3)), np.ones((6, 8), bool))
    assert_array_equal(x[:, 4:], 1.5)
    assert (x[:, :4, 0] > 0.6).all()


def test_inputs_stay_as_they_are_and_may_be_read_only(two):
    gray, marked = two
    before = gray.copy(), marked.copy()
    gray.flags.writeable = marked.flags.writeable = False
    colorize(gray, marked)
    strided = colorize(gray[::-1], marked[::-1])[::-1]
    assert strided.shape == marked.shape
    assert_array_equal(gray, before[0])
    assert_array_equal(marked, before[1])


def test_one_more_stroke_starts_from_the_last_solution(two):
    gray, marked = two
    painter = Colorizer(gray)
    first = painter.colorize(marked)
    assert_array_equal(first, colorize(gray, marked))
    more = marked.copy()
    more[32:35, 3:15] = (60, 160, 60)
    again = painter.colorize(more)
    assert_allclose(again.astype(int), colorize(gray, more), atol=1)
    assert np.abs(again.astype(int) - first).max() > 20


def test_a_refused_stroke_leaves_the_painter_usable(two):
    gray, marked = two
    painter = Colorizer(gray)
    with pytest.raises(ValueError, match="scribbles"):
        painter.colorize(np.stack([gray] * 3, axis=2))
    assert_array_equal(painter.colorize(marked), colorize(gray, marked))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scribbles": np.full((40, 60, 3), 100, np.uint8)}, "got none: it is the same as gray"),
        ({"mask": np.zeros((40, 60), bool)}, "got none: mask is 0 everywhere"),
        ({"scribbles": np.zeros((40, 61, 3), np.uint8)}, r"expected the size of gray, \(40, 60\)"),
        ({"scribbles": np.zeros((40, 60), np.uint8)}, r"RGB picture \(H, W, 3\) or an RGBA layer"),
        ({"scribbles": np.zeros((40, 60, 2), np.uint8)}, r"got shape \(40, 60, 2\)"),
        ({"mask": np.ones((3, 3), bool)}, r"mask: expected one number per pixel"),
        ({"gray": np.zeros((0, 4), np.uint8)}, "gray: expected at least one pixel"),
        ({"gray": np.full((40, 60), np.nan)}, "gray: expected finite values"),
        ({"preset": "worst"}, "preset: expected one of 'best', 'paper', got 'worst'"),
        ({"sigma_xy": 0}, "sigma_xy: expected a number above 0"),
        ({"sigma_luma": -1}, "sigma_luma: expected a number above 0"),
        ({"smoothness": 0}, "smoothness: expected a number above 0"),
    ],
)
def test_errors_name_the_argument(change, message):
    arguments = {
        "gray": np.full((40, 60), 100, np.uint8),
        "scribbles": np.full((40, 60, 3), (200, 50, 50), np.uint8),
        "mask": None,
        **change,
    }
    if arguments["mask"] is None and "scribbles" not in change:
        arguments["mask"] = np.ones((40, 60), bool)
    with pytest.raises(ValueError, match=message):
        colorize(**arguments)


def test_swapped_pictures_are_noticed(two):
    gray, marked = two
    with pytest.raises(ValueError, match="are they swapped"):
        colorize(marked, np.stack([gray] * 3, axis=2))


def test_wrong_types_are_refused(two):
    gray, marked = two
    with pytest.raises(TypeError, match="gray: expected uint8, uint16 or floating point"):
        colorize(gray.astype(int), marked)
    with pytest.raises(TypeError, match="scribbles: expected uint8, uint16 or floating point"):
        colorize(gray, marked.astype(int))
    with pytest.raises(TypeError, match="mask: expected bool or integers"):
        colorize(gray, marked, np.ones(gray.shape))


def test_a_picture_that_differs_everywhere_gives_a_warning(two):
    gray, marked = two
    with pytest.warns(UserWarning, match="100 % of the pixels differ from gray"):
        colorize(gray, marked ^ 3)
