"""Cutting out: scribbles, rough masks, soft edges, and errors."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from bilateral.tasks import Cutter, cut_out
from bilateral.tasks.cutout.windows import block_sums, fill_blocks, sample, window_mean
from support.examples import examples

OBJECT, AROUND = (200, 120, 60), (40, 90, 160)


def scene(shape: tuple[int, int] = (60, 90), noise: float = 4.0) -> tuple[Any, Any]:
    """A photograph of a disc, and the opacity of the disc, with an edge of two pixels."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    distance = np.hypot(y - shape[0] / 2, x - shape[1] / 2)
    alpha = np.clip((shape[0] / 4 - distance) / 2 + 0.5, 0, 1)
    photo = alpha[..., None] * OBJECT + (1 - alpha[..., None]) * AROUND
    photo += np.random.default_rng(0).normal(0, noise, photo.shape)
    return np.clip(np.rint(photo), 0, 255).astype(np.uint8), alpha


def strokes(shape: tuple[int, int] = (60, 90)) -> Any:
    labels = np.zeros(shape, np.int8)
    labels[shape[0] // 2, shape[1] // 2 - 4 : shape[1] // 2 + 4] = 1
    labels[4:6, 5 : shape[1] - 5] = -1
    return labels


def test_the_matte_is_the_opacity_of_the_object() -> None:
    photo, alpha = scene()
    matte = cut_out(photo, strokes())
    assert matte.dtype == np.float32
    assert np.abs(matte - alpha).mean() < 0.01
    soft = (alpha > 0.1) & (alpha < 0.9)
    assert np.abs(matte - alpha)[soft].mean() < 0.15
    assert_array_equal(matte[np.abs(alpha - 0.5) == 0.5].round(), alpha[np.abs(alpha - 0.5) == 0.5])


def test_hair_that_is_thinner_than_a_cell_is_kept() -> None:
    photo, alpha = scene((120, 180))
    for row in range(40, 80, 6):
        photo[row, 118:150], alpha[row, 118:150] = OBJECT, 1
    matte = cut_out(photo, strokes((120, 180)))
    hair = np.s_[40:80:6, 122:148]
    assert matte[hair].mean() > 0.8
    assert matte[43:80:6, 126:148].mean() < 0.1


def test_strokes_are_exactly_kept() -> None:
    photo, _ = scene()
    labels = strokes()
    labels[30, 80:85] = 1  # an error of the user: still what the user says
    matte = cut_out(photo, labels)
    assert_array_equal(matte[labels > 0], 1)
    assert_array_equal(matte[labels < 0], 0)


def test_a_hard_mask_is_the_matte_above_one_half() -> None:
    photo, _ = scene()
    mask = cut_out(photo, strokes(), hard=True)
    assert mask.dtype == np.bool_
    assert_array_equal(mask, cut_out(photo, strokes()) > 0.5)


def test_pictures_of_strokes_are_labels() -> None:
    photo, _ = scene()
    labels = strokes()
    expected = cut_out(photo, labels)
    for this, other in (((0, 255, 0), (255, 0, 0)), ((255, 255, 255), (0, 0, 0))):
        marked = photo.copy()
        marked[labels > 0], marked[labels < 0] = this, other
        assert_array_equal(cut_out(photo, marked), expected)
        layer = np.zeros((*labels.shape, 4), np.uint8)
        layer[labels > 0], layer[labels < 0] = (*this, 255), (*other, 255)
        assert_array_equal(cut_out(photo, layer), expected)
        assert_array_equal(cut_out(photo, layer / np.float32(255)), expected)


def test_a_rough_mask_finds_the_outline() -> None:
    photo, alpha = scene((160, 240), noise=2)
    rough = np.zeros(alpha.shape, bool)
    rough[46:116, 86:156] = True  # a square around the disc, shifted
    mask = cut_out(photo, mask=rough, hard=True)
    truth = alpha > 0.5
    before = (rough & truth).sum() / (rough | truth).sum()
    assert (mask & truth).sum() / (mask | truth).sum() > max(0.97, before)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_tiny_mask_still_counts(size: int) -> None:
    photo = np.full((30, 40), 90, np.uint8)
    photo[10 : 10 + size, 20 : 20 + size] = 230
    rough = photo > 100
    assert_array_equal(cut_out(photo, mask=rough, hard=True), rough)


def test_scribbles_correct_a_mask() -> None:
    photo, alpha = scene()
    wrong = np.ones(alpha.shape, bool)
    wrong[:, :20] = False
    labels = strokes()
    labels[50:54, 30:85] = labels[10:50, 82:86] = -1
    assert np.abs(cut_out(photo, labels, mask=wrong) - alpha).mean() < 0.05


def test_specks_far_away_do_not_belong_to_the_object() -> None:
    photo, _ = scene((120, 180), noise=0)
    photo[100:102, 20:22] = OBJECT
    assert cut_out(photo, strokes((120, 180)))[95:110, 15:30].max() == 0


@pytest.mark.parametrize(
    ("dtype", "white"), [(np.uint8, 255), (np.uint16, 65535), (np.float32, 1), (np.float64, 1)]
)
def test_any_dtype_gives_the_same_matte(dtype: Any, white: float) -> None:
    photo, _ = scene()
    other = (photo / 255 * white).astype(dtype)
    difference = np.abs(cut_out(other, strokes()) - cut_out(photo, strokes()))
    assert difference.mean() < 1e-3


def test_a_cutter_gives_the_same_again_and_again() -> None:
    photo, _ = scene()
    cutter, labels = Cutter(photo), strokes()
    first = cutter.cut_out(labels)
    more = labels.copy()
    more[50:52, 10:70] = -1
    assert_array_equal(cutter.cut_out(more), cut_out(photo, more))
    assert_array_equal(cutter.cut_out(labels), first)


def test_a_callback_can_cancel() -> None:
    class CancelledError(Exception):
        pass

    def cancel(step: int, residual: float) -> bool:
        raise CancelledError

    photo, _ = scene()
    with pytest.raises(CancelledError):
        Cutter(photo).cut_out(strokes(), callback=cancel)


@examples(30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 25), st.integers(2, 25), st.booleans())
def test_any_photo_gives_numbers_from_0_to_1(seed: int, height: int, width: int, gray: bool):
    rng = np.random.default_rng(seed)
    photo = rng.integers(0, 256, (height, width) if gray else (height, width, 3), np.uint8)
    labels = rng.choice(np.int8([-1, 0, 0, 0, 1]), (height, width))
    labels[0, 0], labels[-1, -1] = 1, -1
    matte = cut_out(photo, labels)
    assert matte.shape == (height, width)
    assert ((matte >= 0) & (matte <= 1)).all()


def test_exchanged_strokes_give_the_rest_of_the_picture() -> None:
    photo, _ = scene()
    assert np.abs(cut_out(photo, strokes()) + cut_out(photo, -strokes()) - 1).max() < 0.02


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"scribbles": np.ones((60, 90), np.int8)}, ValueError, "got none for not this"),
        ({"scribbles": None}, ValueError, "got none for this"),
        ({"scribbles": np.zeros((60, 90), np.uint8)}, TypeError, "Give a rough mask as mask="),
        ({"scribbles": np.zeros((6, 9), np.int8)}, ValueError, r"expected labels of the shape"),
        ({"scribbles": np.zeros((60, 90, 2))}, ValueError, r"got shape \(60, 90, 2\)"),
        ({"mask": np.zeros((6, 9), bool)}, ValueError, "^mask: expected"),
        ({"photo": np.zeros((60, 90, 2), np.uint8)}, ValueError, "^photo: expected"),
        ({"hard": np.zeros(2)}, (TypeError, ValueError), "^hard: "),
    ],
)
def test_errors_name_the_argument(change: Any, error: type[Exception], message: str) -> None:
    arguments = {"photo": scene()[0], "scribbles": strokes()} | change
    with pytest.raises(error, match=message):
        cut_out(**arguments)


def test_blue_strokes_are_refused() -> None:
    photo, _ = scene()
    layer = np.zeros((60, 90, 4), np.uint8)
    layer[5, 5:60] = (0, 0, 255, 255)
    with pytest.raises(ValueError, match="got blue ones"):
        cut_out(photo, layer)


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 12), st.integers(1, 4))
def test_window_means_are_means_over_windows(seed: int, height: int, width: int, radius: int):
    mask = np.random.default_rng(seed).random((height, width)) < 0.5
    padded = np.pad(mask, radius, mode="edge")
    size = 2 * radius + 1
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size))
    np.testing.assert_allclose(window_mean(mask, radius), windows.mean(axis=(2, 3)), atol=1e-6)


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 12), st.integers(1, 4))
def test_blocks(seed: int, height: int, width: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.random((height, width))
    sums = block_sums(values, size)
    assert sums.shape == (-(-height // size), -(-width // size))
    np.testing.assert_allclose(sums.sum(), values.sum())
    np.testing.assert_allclose(sums[0, 0], values[:size, :size].sum())
    weights = (rng.random((height, width)) < 0.3).astype(np.float32)
    weights[0, 0] = 1
    filled = fill_blocks((values * weights)[..., None], weights)[..., 0]
    np.testing.assert_allclose(filled[weights > 0], values[weights > 0], rtol=1e-6)
    known = values[weights > 0]
    assert (filled >= known.min() - 1e-6).all()
    assert (filled <= known.max() + 1e-6).all()


def test_samples_lie_on_the_line_between_pixels() -> None:
    values = np.arange(12.0).reshape(3, 4, 1)
    y, x = np.array([0.0, 1.5, -3, 9]), np.array([0.25, 3, -1, 9])
    np.testing.assert_allclose(sample(values, y, x)[:, 0], [0.25, 9, 0, 11])
