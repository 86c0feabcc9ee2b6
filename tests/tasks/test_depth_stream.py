"""`DepthStream` and videos in `refine_depth`: steady, without trails, lag or smear."""

import gc
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bilateral
from bilateral.tasks import DepthStream, refine_depth
from support.depth_videos import (
    DepthVideo,
    filmed,
    moving_box,
    noise_at,
    pan,
    room,
    second_difference,
    standing,
)

Array = NDArray[Any]


def streamed(video: DepthVideo, **options: Any) -> Array:
    stream = DepthStream(**options)
    return np.stack([stream.push(z, p) for z, p in zip(video.depths, video.photos, strict=True)])


def single(video: DepthVideo) -> Array:
    """Each frame as the first of a stream."""
    pairs = zip(video.depths, video.photos, strict=True)
    return np.stack([DepthStream().push(z, p) for z, p in pairs])


def wrong(x: Array, truth: Array) -> Array:
    """Pixels off by more than 5 %."""
    return np.abs(x - truth) > 0.05 * truth


def test_a_standing_scene_becomes_steady_and_more_precise() -> None:
    video = standing()
    known = np.isfinite(video.depths).all(axis=0)
    before = second_difference(video.depths, known)
    frames = single(video)
    for x, most in ((streamed(video), 0.3), (refine_depth(video.depths, video.photos), 0.15)):
        assert np.isfinite(x).all()
        assert second_difference(x, known) < most * before
        assert np.abs(x - video.truth)[4:].mean() < 0.8 * np.abs(frames - video.truth)[4:].mean()


@pytest.mark.parametrize("step", [2, 6])
def test_a_moving_box_leaves_no_trail(step: int) -> None:
    video = moving_box(step=step)
    alone = wrong(single(video), video.truth)
    for x in (streamed(video), refine_depth(video.depths, video.photos)):
        now = wrong(x, video.truth)
        for k in range(3, len(x)):
            swept = np.s_[30:66, 10 : 56 + k * step]
            assert now[k][swept].mean() <= alone[k][swept].mean() + 0.005


@pytest.mark.parametrize("step", [1, 4])
def test_a_pan_neither_smears_nor_lags(step: int) -> None:
    video = pan(step=step)
    frames, inner = single(video), np.s_[3:, 4:-4, 4:-4]
    error = np.abs(frames - video.truth)[inner]
    for x in (streamed(video), refine_depth(video.depths, video.photos)):
        assert np.abs(x - video.truth)[inner].mean() < error.mean()
        assert (
            wrong(x, video.truth)[inner].mean() <= wrong(frames, video.truth)[inner].mean() + 1e-3
        )
        assert np.abs((x - video.truth)[inner].mean()) < 0.1 * noise_at(2.5)


@pytest.mark.parametrize("speed", [0.3, 1.0, 3.0])
def test_slowly_changing_depth_does_not_lag(speed: float) -> None:
    """All depths shrink by a part of the noise in each frame, and the photograph stays."""
    video = standing(10)
    shift = speed * noise_at(2.5) * np.arange(10).reshape(-1, 1, 1)
    moving = video._replace(depths=(video.depths - shift).astype(np.float32))
    lag = (streamed(moving) - (video.truth - shift))[4:].mean()
    assert np.abs(lag) < 0.3 * noise_at(2.5)


def test_a_cut_starts_anew() -> None:
    video = standing(6)
    photo, depth = room((96, 128), 9)
    stream = DepthStream()
    for z, p in zip(video.depths, video.photos, strict=True):
        stream.push(z, p)
    other = (255 - photo[::-1]).clip(0, 255).astype(np.uint8)
    far = 2 * depth[::-1]
    noisy = (far + np.random.default_rng(1).normal(size=far.shape) * noise_at(far)).astype(
        np.float32
    )
    new, alone = stream.push(noisy, other), DepthStream().push(noisy, other)
    assert np.abs(new - far).mean() < 1.1 * np.abs(alone - far).mean()
    assert wrong(new, far).mean() <= wrong(alone, far).mean() + 1e-3


def test_reset_forgets_the_past() -> None:
    video = standing(3)
    stream = DepthStream()
    first = [stream.push(z, p) for z, p in zip(video.depths, video.photos, strict=True)]
    stream.reset()
    again = [stream.push(z, p) for z, p in zip(video.depths, video.photos, strict=True)]
    np.testing.assert_array_equal(first, again)
    stream.reset()
    assert stream.push(np.ones((5, 7)), np.zeros((5, 7), np.uint8)).shape == (5, 7)


def test_a_change_of_exposure_is_no_motion() -> None:
    video = standing(10)
    gain = np.where(np.arange(10) % 4 < 2, 1.0, 0.7).reshape(-1, 1, 1, 1)
    exposed = (video.photos * gain).astype(np.uint8)
    known = np.isfinite(video.depths).all(axis=0)
    changed = streamed(video._replace(photos=exposed))[3:]
    alone = single(video._replace(photos=exposed))[3:]
    steady = second_difference(streamed(video)[3:], known)
    assert second_difference(changed, known) < 1.5 * steady
    assert second_difference(changed, known) < 0.5 * second_difference(alone, known)


def test_data_that_come_and_go_do_not_flicker() -> None:
    """A region without data in every second frame keeps its depth."""
    video = standing(8)
    video.depths[1::2, 30:60, 70:90] = np.nan
    x = streamed(video)[2:, 30:60, 70:90]
    assert np.abs(np.diff(x, axis=0)).max() < 6 * noise_at(2.5)


def test_a_frame_without_data_repeats_the_one_before() -> None:
    video = standing(4)
    stream = DepthStream()
    for z, p in zip(video.depths, video.photos, strict=True):
        last = stream.push(z, p)
    repeated = stream.push(np.full_like(video.depths[0], np.nan), video.photos[-1])
    assert np.abs(repeated - last).max() < 3 * noise_at(3.2)
    video.depths[0] = video.depths[2] = np.nan
    whole = refine_depth(video.depths, video.photos)
    assert np.abs(whole - video.truth).mean() < noise_at(2.5)
    with pytest.raises(ValueError, match="depth: expected at least one known pixel"):
        DepthStream().push(np.full_like(video.depths[0], np.nan), video.photos[0])


def test_the_same_bits_from_any_number_of_threads(keep_num_threads: None) -> None:
    video = pan(4, shape=(200, 260))
    results = []
    for threads in (1, 2, 5):
        bilateral.set_num_threads(threads)
        results.append((streamed(video), refine_depth(video.depths, video.photos)))
    for others in results[1:]:
        np.testing.assert_array_equal(results[0][0], others[0])
        np.testing.assert_array_equal(results[0][1], others[1])


def arrays_of(thing: Any) -> int:
    """Bytes of all arrays that an object refers to."""
    seen: set[int] = set()
    todo, total = [thing], 0
    while todo:
        item = todo.pop()
        if id(item) in seen or isinstance(item, type):
            continue
        seen.add(id(item))
        total += item.nbytes if isinstance(item, np.ndarray) else 0
        if isinstance(item, DepthStream | tuple | list | dict) or hasattr(item, "__dict__"):
            todo += [r for r in gc.get_referents(item) if not isinstance(r, type)]
    return total


def test_memory_does_not_grow() -> None:
    video = standing(12, (60, 80))
    stream, sizes = DepthStream(), []
    for z, p in zip(video.depths, video.photos, strict=True):
        stream.push(z, p)
        sizes.append(arrays_of(stream))
    assert sizes[3] == sizes[-1]
    assert 0 < sizes[-1] < 64 * 60 * 80


def test_results_belong_to_the_caller() -> None:
    video = standing(5)
    expected = streamed(video)
    stream = DepthStream()
    for z, p, other in zip(video.depths, video.photos, expected, strict=True):
        depth, photo = z.copy(), p.copy()
        found = stream.push(depth, photo)
        np.testing.assert_array_equal(found, other)
        for array in (found, depth, photo):
            array[:] = 7


def test_units_dtypes_and_unknown_values() -> None:
    video = standing(4)
    metres = streamed(video)
    counts = np.nan_to_num(1000 * video.depths).astype(np.uint16)
    millimetres = streamed(video._replace(depths=counts), invalid=0)
    assert millimetres.dtype == np.uint16
    assert np.mean(np.abs(millimetres / 1000 - metres) > 0.01) < 0.002  # rounding decides a few
    assert streamed(video._replace(depths=counts), invalid=0, dtype=np.float64).dtype == np.float64
    masked = DepthStream().push(counts[0], video.photos[0], mask=counts[0] > 0)
    np.testing.assert_array_equal(masked, millimetres[0])
    trusted = DepthStream().push(counts[0], video.photos[0], 5.0 * (counts[0] > 0))
    np.testing.assert_allclose(trusted, masked, atol=20)
    gray, bits = video.photos.mean(axis=3).astype(np.uint8), video.photos.astype(np.uint16) * 257
    same = streamed(video._replace(photos=bits))
    assert np.mean(np.abs(same - metres) > 0.02) < 1e-4  # rounding decides a pixel
    assert np.isfinite(streamed(video._replace(photos=gray))).all()
    floats = streamed(video._replace(photos=video.photos / np.float32(255)))
    np.testing.assert_allclose(floats, metres, atol=0.02)
    white = streamed(video._replace(photos=video.photos.astype(np.float32)), reference_max=255)
    np.testing.assert_allclose(white, metres, atol=0.02)


@pytest.mark.parametrize("frames", [1, 2, 3])
@pytest.mark.parametrize("gray", [False, True])
def test_short_videos(frames: int, gray: bool) -> None:
    video = standing(frames)
    photos = video.photos[..., 1] if gray else video.photos
    x = refine_depth(video.depths, photos)
    assert (x.shape, x.dtype) == (video.depths.shape, np.float32)
    assert np.abs(x - video.truth).mean() < noise_at(2.5)
    counts = np.nan_to_num(1000 * video.depths).astype(np.uint16)
    millimetres = refine_depth(counts, photos, invalid=0)
    assert millimetres.dtype == np.uint16
    assert np.mean(np.abs(millimetres / 1000 - x) > 0.01) < 0.002  # rounding decides a few


@pytest.mark.parametrize("shape", [(1, 1), (1, 30), (30, 1), (2, 3), (24, 24), (47, 31)])
def test_any_size(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    photos = rng.integers(0, 255, (4, *shape, 3)).astype(np.uint8)
    depths = rng.uniform(1, 2, (4, *shape))
    video = DepthVideo(depths, photos, depths)
    assert np.isfinite(streamed(video)).all()
    assert np.isfinite(refine_depth(depths, photos)).all()


def test_values_that_are_no_depths() -> None:
    """Constant maps, zeros and negative values neither fail nor change."""
    photos = standing(4).photos
    for value in (0.0, -3.0, 1e-12, 1e9):
        depths = np.full(photos.shape[:3], value)
        np.testing.assert_allclose(refine_depth(depths, photos), depths, rtol=1e-5)


def test_messages() -> None:
    video = standing(2)
    stream = DepthStream()
    stream.push(video.depths[0], video.photos[0])
    with pytest.raises(ValueError, match=r"size of the frames before, \(96, 128\).*reset\(\)"):
        stream.push(video.depths[0, :50], video.photos[0, :50])
    with pytest.raises(ValueError, match=r"depth: expected one number per pixel"):
        stream.push(video.depths[0, :50], video.photos[0])
    with pytest.raises(ValueError, match="look swapped"):
        stream.push(video.photos[0], video.depths[0])
    with pytest.raises(TypeError, match="invalid"):
        DepthStream(invalid="none")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="reference_max"):
        DepthStream(reference_max=-1)
    with pytest.raises(TypeError, match="dtype"):
        DepthStream(dtype="datetime64")
    with pytest.raises(ValueError, match=r"preset: expected 'sensor' for a video"):
        refine_depth(video.depths, video.photos, preset="stereo")
    with pytest.raises(ValueError, match=r"depth: expected shape \(T, H, W\) with T = 2"):
        refine_depth(video.depths[:1], video.photos)
    with pytest.raises(ValueError, match=r"confidence: expected shape \(T, H, W\) with T = 2"):
        refine_depth(video.depths, video.photos, np.ones((96, 128)))
    with pytest.raises(ValueError, match=r"depth: expected one number per pixel"):
        refine_depth(video.depths[:, :5], video.photos)
    # The stream goes on after an error.
    assert stream.push(video.depths[1], video.photos[1]).shape == (96, 128)


def test_depths_that_were_measured_fill_later_holes() -> None:
    """A hole that opens keeps the depth measured before, as long as the photograph stays."""
    video = standing(14)
    video.depths[4:, 30:60, 20:90] = np.nan  # across the edges of a box
    error = np.abs(streamed(video) - video.truth)[:, 30:60, 20:90]
    inner = error[:, 2:-2, 2:-2]
    assert np.mean(inner[-1] > 0.05) <= np.mean(inner[3] > 0.05) + 1e-3
    assert inner[-1].mean() < 1.5 * noise_at(2.5)


def test_a_thing_in_a_hole_is_not_filled_with_the_background() -> None:
    """What is remembered behind a thing that has no depth is dropped: its photograph changed."""
    video = standing(8)
    thing = np.s_[4:, 34:64, 20:50]
    video.depths[thing] -= video.truth[thing] - 1
    video.photos[thing], video.truth[thing] = (20, 220, 20), 1.0
    video.depths[4:, 44:54, 30:40] = np.nan
    x = streamed(video)[4:, 44:54, 30:40]
    assert np.mean(np.abs(x - 1) > 0.05) < 0.02


def test_a_filling_that_errs_once_does_not_flicker() -> None:
    """Fillings vote: a single frame whose filling takes the other side changes nothing."""
    video = standing(9)
    edge = np.s_[:, 30:60, 40:56]  # a hole over the edge of a box
    video.depths[edge] = np.nan
    odd = video.photos.copy()
    odd[6, 30:60, 40:56] = odd[6, 30:60, 60:61]  # one photograph without the edge
    x = streamed(video._replace(photos=odd))
    assert np.abs(x[7] - x[5])[30:60, 40:56].mean() < 0.1


def test_a_video_returns_to_measurements_that_agree_in_time() -> None:
    """A pixel that one frame doubts keeps its depth if the frames around agree with it."""
    video = standing(7)
    spot = np.s_[40:43, 100:103]
    video.depths[3, 36:47, 96:107] = np.nan
    video.depths[3][spot] = video.truth[3][spot]  # alone in a hole: doubtful
    x = refine_depth(video.depths, video.photos)
    assert np.abs(x[3] - video.truth[3])[spot].max() < 4 * noise_at(3.0)


@pytest.mark.parametrize("size", [(14, 18), (40, 50)])
@pytest.mark.parametrize("step", [1, 9])
def test_boxes_of_other_sizes_and_speeds(size: tuple[int, int], step: int) -> None:
    photo, depth = room((96, 160))
    texture = room(size, 7)[0][..., ::-1]
    photos, truth = np.stack([photo] * 8), np.stack([depth] * 8)
    for k in range(8):
        # No strip of two pixels of the box behind stays visible: it would look like mixed depths.
        box = np.s_[k, 32 : 32 + size[0], 12 + k * step : 12 + size[1] + k * step]
        photos[box], truth[box] = texture, 1.2
    video = filmed(photos, truth)
    frames = single(video)
    swept = np.s_[3:, 28 : 36 + size[0], 8 : 16 + size[1] + 7 * step]
    most = np.abs(frames - truth)[swept].mean()
    for x in (streamed(video), refine_depth(video.depths, video.photos)):
        assert np.abs(x - truth)[swept].mean() <= 1.05 * most
        assert wrong(x, truth)[swept].mean() <= wrong(frames, truth)[swept].mean() + 0.005
