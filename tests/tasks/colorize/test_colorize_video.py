"""Videos in colour: steady in time, forwards and backwards alike, nothing passes a cut."""

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bilateral import color
from bilateral.tasks import colorize_video
from bilateral.tasks.colorize import spool
from bilateral.tasks.colorize.cuts import CutFinder
from bilateral.tasks.colorize.spool import Spool

Array = NDArray[Any]
SHAPE, LARGE = (36, 48), (144, 192)
RED, BLUE = (170, 90, 90), (90, 90, 170)


def rectangles(seed: int, shift: int = 0, shape: tuple[int, int] = SHAPE) -> Array:
    """Return a gray picture of random rectangles, moved to the left."""
    rng = np.random.default_rng(seed)
    height, width = shape
    picture = np.full((height, 2 * width), 128.0)
    for _ in range(120):
        y, x = rng.integers(-4, height), rng.integers(-4, 2 * width)
        h, w = rng.integers(3, height // 3, 2)
        picture[max(y, 0) : y + h, max(x, 0) : x + w] = rng.integers(40, 220)
    picture += rng.normal(0, 1, picture.shape)
    return np.rint(picture[:, shift : shift + width]).astype(np.uint8)


def scene(seed: int, shift: int = 0) -> Array:
    return rectangles(seed, shift)


def strokes(colour: tuple[int, int, int]) -> Array:
    layer = np.zeros((*SHAPE, 4), np.uint8)
    layer[4:9, 5:40] = (*colour, 255)
    layer[20:24, 5:40] = (*colour, 255)
    return layer


def chroma(frames: list[Array]) -> Array:
    return np.stack([color.chroma(frame, 255.0) for frame in frames])


@pytest.mark.parametrize("count", [1, 2, 8, 9, 21])
@pytest.mark.parametrize("painted", [0, -1])
def test_strokes_of_one_frame_colour_a_still_shot(count: int, painted: int) -> None:
    frames = [scene(1)] * count
    coloured = list(colorize_video(frames, {painted % count: strokes(RED)}))
    assert [frame.shape for frame in coloured] == [(*SHAPE, 3)] * count
    values = chroma(coloured)
    assert np.abs(values - values[:1]).max() < 3
    target = color.chroma(np.array([[RED]], np.uint8), 255.0)[0, 0]
    assert np.abs(values.mean(axis=(0, 1, 2)) - target).max() < 6
    for frame in coloured:  # the luma is that of the gray frame
        assert np.abs(color.luma(frame) - scene(1)).max() < 0.6


@given(
    count=st.integers(2, 20),
    step=st.integers(0, 1),
    seed=st.integers(0, 5),
    both=st.booleans(),
)
def test_time_has_no_direction(count: int, step: int, seed: int, both: bool) -> None:
    frames = [scene(seed, step * t) for t in range(count)]
    painted = {0: strokes(RED), count - 1: strokes(BLUE)} if both else {0: strokes(RED)}
    mirrored = {count - 1 - number: layer for number, layer in painted.items()}
    forwards = list(colorize_video(frames, painted))
    backwards = list(colorize_video(frames[::-1], mirrored))[::-1]
    difference = np.abs(chroma(forwards) - chroma(backwards))
    assert difference.max() < 1.5  # 8 bits, and 11 bits of what is stored on disk


def test_colours_pass_over_between_strokes() -> None:
    count = 19
    coloured = chroma(
        list(colorize_video([scene(2)] * count, {0: strokes(RED), count - 1: strokes(BLUE)}))
    )
    blueness = (coloured[..., 0] - coloured[..., 1]).mean(axis=(1, 2))
    assert (np.diff(blueness) > 0).all()
    assert np.diff(blueness).max() < 4 * np.diff(blueness).mean()
    alone = {
        name: chroma(list(colorize_video([scene(2)], {0: strokes(name)})))[0]
        for name in (RED, BLUE)
    }
    assert np.abs(coloured[0] - alone[RED]).mean() < 2
    assert np.abs(coloured[-1] - alone[BLUE]).mean() < 2


def test_strokes_in_the_middle_continue() -> None:
    """A frame with strokes ends one part and starts the next, without a jump."""
    frames = [scene(3, t) for t in range(20)]
    coloured = chroma(list(colorize_video(frames, {9: strokes(RED)})))
    changes = np.abs(np.diff(coloured, axis=0)).mean(axis=(1, 2, 3))
    assert changes[8:10].max() < 3 * np.median(changes) + 0.5


def test_nothing_passes_a_cut() -> None:
    frames = [scene(4)] * 7 + [scene(5)] * 6
    with pytest.warns(UserWarning, match="no frame from 8 to 13") as caught:
        coloured = list(colorize_video(frames, {3: strokes(RED)}))
    assert len(caught) == 1
    assert np.abs(chroma(coloured[:7])).mean() > 10
    for frame in coloured[7:]:
        np.testing.assert_array_equal(frame, np.dstack([scene(5)] * 3))
    both = list(colorize_video(frames, {3: strokes(RED), 12: strokes(BLUE)}))
    np.testing.assert_array_equal(both[:7], coloured[:7])
    alone = list(colorize_video(frames[7:], {5: strokes(BLUE)}))
    np.testing.assert_array_equal(both[7:], alone)


def test_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "_IN_MEMORY", 1)  # on disk
    frames = [scene(6)] * 5
    expected = list(colorize_video(frames, {2: strokes(RED)}))
    wide = list(
        colorize_video([257 * frame.astype(np.uint16) for frame in frames], {2: strokes(RED)})
    )
    assert wide[0].dtype == np.uint16
    assert np.abs(np.stack(wide) / 257.0 - np.stack(expected)).max() <= 1
    floats = list(colorize_video([frame / 255.0 for frame in frames], {2: strokes(RED)}))
    assert floats[0].dtype == np.float64
    assert np.abs(255 * np.stack(floats) - np.stack(expected)).max() <= 1


def test_errors_name_the_argument() -> None:
    frames = [scene(0)] * 3
    with pytest.raises(ValueError, match=r"scribbles: .* frames from 0 to 2, got 7"):
        list(colorize_video(frames, {0: strokes(RED), 7: strokes(RED)}))
    with pytest.raises(ValueError, match="frames: expected the shape and dtype of the first"):
        list(colorize_video([*frames, scene(0)[:9]], {0: strokes(RED)}))
    with pytest.raises(ValueError, match="preset"):
        colorize_video(frames, {}, preset="worst")
    assert list(colorize_video([], {})) == []


@given(
    seed=st.integers(0, 30),
    shift=st.integers(0, 12),
    gain=st.floats(0.7, 1.3),
    offset=st.floats(-20, 20),
    noise=st.floats(0, 6),
)
def test_motion_exposure_and_noise_are_no_cuts(
    seed: int, shift: int, gain: float, offset: float, noise: float
) -> None:
    rng = np.random.default_rng(seed)
    finder = CutFinder()
    assert not finder.push(rectangles(seed, 0, LARGE).astype(np.float32))
    now = gain * rectangles(seed, shift, LARGE) + offset + rng.normal(0, noise, LARGE)
    assert not finder.push(now.clip(0, 255).astype(np.float32))


@given(seeds=st.lists(st.integers(0, 200), min_size=2, max_size=2, unique=True))
def test_other_scenes_are_cuts(seeds: list[int]) -> None:
    finder = CutFinder()
    frames = [rectangles(seed, 0, LARGE).astype(np.float32) for seed in seeds]
    assert [finder.push(frame) for frame in frames] == [False, True]


def test_cuts_from_and_to_black() -> None:
    finder = CutFinder()
    black = np.zeros(SHAPE, np.float32)
    frames = [black, black, scene(1).astype(np.float32), black, black + 3]
    assert [finder.push(frame) for frame in frames] == [False, False, True, True, False]


@given(arrays=st.lists(st.integers(-5, 5), max_size=20), limit=st.sampled_from([1, 10**6]))
def test_a_spool_returns_what_it_got(arrays: list[int], limit: int) -> None:
    before = spool._IN_MEMORY
    spool._IN_MEMORY = limit
    try:
        with Spool() as stored, warnings.catch_warnings():
            for value in arrays:
                stored.append(np.full((3, 4), value, np.int8))
            assert len(stored) == len(arrays)
            for index in reversed(range(len(arrays))):
                assert (stored[index] == arrays[index]).all()
    finally:
        spool._IN_MEMORY = before
