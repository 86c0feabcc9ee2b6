"""Workspaces and pictures for the screen: previews of strokes, colours of depths."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("starlette", reason="the studio needs starlette")

from bilateral.studio.display import depth_colors, depth_palette, eight_bits, relief
from bilateral.studio.examples import EXAMPLES, load_example
from bilateral.studio.limits import Limits, Refused
from bilateral.studio.tools.depth import Scaled
from bilateral.studio.workspace import Workspace


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 7), st.integers(0, 2**32 - 1))
def test_a_block_is_a_stroke_if_any_of_its_pixels_is(
    height: int, width: int, factor: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    layer = rng.integers(0, 256, (height, width, 4), np.uint8)
    layer[..., 3] = np.where(rng.random((height, width)) < 0.1, 255, 0)
    workspace = Workspace(Limits())
    workspace.open_array("a", np.zeros((height, width), np.uint8))
    workspace.paint("cut", 0, 0, width, height, memoryview(layer.tobytes()))
    small = workspace.layer("cut", factor)
    assert small.shape == (-(-height // factor), -(-width // factor), 4)
    for row in range(small.shape[0]):
        for column in range(small.shape[1]):
            block = layer[row * factor :, column * factor :][:factor, :factor].reshape(-1, 4)
            strokes = block[block[:, 3] > 0]
            assert (small[row, column, 3] > 0) == (len(strokes) > 0)
            if len(strokes):
                assert (strokes == small[row, column]).all(axis=1).any()


@given(st.integers(30, 90), st.integers(30, 90), st.integers(0, 2**32 - 1))
def test_patches_make_the_small_layer_of_the_whole(height: int, width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bilateral.studio.workspace._PREVIEW_PIXELS", 100)
        one, other = Workspace(Limits()), Workspace(Limits())
        one.open_array("a", np.zeros((height, width), np.uint8))
    other.open_array("a", np.zeros((height, width), np.uint8))
    assert one.preview is not None
    assert other.preview is None
    for _ in range(4):
        y, x = int(rng.integers(0, height)), int(rng.integers(0, width))
        h, w = int(rng.integers(0, height - y + 1)), int(rng.integers(0, width - x + 1))
        pixels = rng.integers(0, 2, (h, w, 1)) * rng.integers(1, 256, (h, w, 4))
        for workspace in (one, other):
            workspace.paint("cut", x, y, w, h, memoryview(pixels.astype(np.uint8).tobytes()))
    factor = one.preview.factor
    np.testing.assert_array_equal(one.layer("cut", factor), other.layer("cut", factor))


def test_a_layer_belongs_to_its_photo() -> None:
    workspace = Workspace(Limits())
    with pytest.raises(Refused, match="Open a photograph first"):
        workspace.layer("cut")
    workspace.open_array("a", np.zeros((4, 5), np.uint8))
    workspace.paint("cut", 0, 0, 1, 1, memoryview(b"\1\2\3\4"))
    assert workspace.layer("cut").any()
    workspace.open_array("b", np.zeros((4, 5), np.uint8))
    assert not workspace.layer("cut").any()


@pytest.mark.parametrize(
    ("photo", "expected"),
    [
        (np.uint8([[0, 255]]), [0, 255]),
        (np.uint16([[0, 65535]]), [0, 255]),
        (np.float32([[-1, 2]]), [0, 255]),
        (np.float32([[np.nan, np.inf]]), [0, 255]),
    ],
)
def test_any_photo_has_eight_bits_on_screen(photo: np.ndarray, expected: list[int]) -> None:
    assert eight_bits(photo)[0, :, 1].tolist() == expected


def test_colours_of_depths_are_those_of_the_palette() -> None:
    assert len(np.unique(depth_palette(), axis=0)) == 256
    levels = np.linspace(0, 1, 256).reshape(16, 16)
    np.testing.assert_array_equal(depth_colors(levels).reshape(-1, 3), depth_palette())
    assert depth_colors(np.full((1, 1), np.nan)).tolist() == [[[40, 40, 44]]]


def test_a_relief_is_lit_from_the_upper_left() -> None:
    y, x = np.mgrid[-1:1:40j, -1:1:40j]
    ball = np.sqrt(np.maximum(0, 1 - x * x - y * y))
    shade = relief(ball, 20.0)[..., 0].astype(int)
    assert shade[10, 10] > shade[30, 30] + 50


@given(st.floats(0.1, 10), st.floats(1.1, 50), st.booleans(), st.floats(0, 1))
def test_nearness_and_depth_are_inverse(low: float, ratio: float, far: bool, value: float) -> None:
    scale = Scaled(np.zeros((1, 1)), low, low * ratio, far)
    depth = scale.depth_of(np.array(value))
    assert low * 0.999 <= depth <= low * ratio * 1.001
    np.testing.assert_allclose(scale.nearness(depth), value, atol=1e-6)
    nearest = scale.nearness(np.array(low if far else low * ratio))
    np.testing.assert_allclose(nearest, 1)


@pytest.mark.parametrize("name", [example.name for example in EXAMPLES])
def test_examples_have_a_photo_and_a_depth_map(name: str) -> None:
    example = load_example(name)
    assert example.photo.dtype == np.uint8
    assert example.depth is not None
    assert example.depth.shape == example.photo.shape[:2]
    assert 0.8 < (example.depth > 0).mean() < 1
