"""`DepthStream` on ray-cast rooms: no worse than single frames, whatever moves."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bilateral.tasks import DepthStream, refine_depth
from support.depth_videos import DepthVideo
from support.ray_cast import Camera, passing_boxes, ray_cast

Array = NDArray[Any]

SHAPE, FRAMES = (180, 240), 6
CAMERAS = {
    "standing": [Camera()] * FRAMES,
    "slow pan": [Camera(yaw=0.003 * t) for t in range(FRAMES)],
    "slow shift": [Camera((0.008 * t, 0.0, 0.0)) for t in range(FRAMES)],
    "forward": [Camera((0.0, 0.0, 0.03 * t), yaw=0.003 * t) for t in range(FRAMES)],
    "fast pan": [Camera(yaw=0.04 * t - 0.1, pitch=0.01 * t) for t in range(FRAMES)],
}


def streamed(video: DepthVideo) -> Array:
    stream = DepthStream()
    return np.stack([stream.push(z, p) for z, p in zip(video.depths, video.photos, strict=True)])


def frame_by_frame(video: DepthVideo) -> Array:
    pairs = zip(video.depths, video.photos, strict=True)
    return np.stack([refine_depth(z, p) for z, p in pairs])


def mean_error(x: Array, truth: Array) -> float:
    """Mean error from the third frame on, when there is a past."""
    return float(np.abs(x - truth)[2:].mean())


@pytest.mark.parametrize("seed", [201, 202])
@pytest.mark.parametrize("motion", CAMERAS)
def test_no_worse_than_single_frames(motion: str, seed: int) -> None:
    video = ray_cast(seed, CAMERAS[motion], SHAPE)
    most = 1.02 * mean_error(frame_by_frame(video), video.truth)
    assert mean_error(streamed(video), video.truth) <= most
    assert mean_error(refine_depth(video.depths, video.photos), video.truth) <= most


@pytest.mark.parametrize("seed", [201, 202])
@pytest.mark.parametrize("pixels", [1.0, 3.0, 8.0])
def test_no_worse_where_boxes_pass(pixels: float, seed: int) -> None:
    video = ray_cast(seed, CAMERAS["standing"], SHAPE, passing_boxes(seed, pixels, SHAPE))
    most = 1.02 * mean_error(frame_by_frame(video), video.truth)
    assert mean_error(streamed(video), video.truth) <= most
    assert mean_error(refine_depth(video.depths, video.photos), video.truth) <= most


def test_automatic_exposure_and_dropped_frames() -> None:
    video = ray_cast(204, CAMERAS["slow pan"] * 2, SHAPE)
    gain = 1 - 0.25 * np.sin(np.arange(2 * FRAMES)).reshape(-1, 1, 1, 1)
    seen = np.array([0, 1, 2, 5, 6, 8, 9, 11])
    photos = (video.photos * gain).clip(0, 255).astype(np.uint8)
    video = DepthVideo(video.depths[seen], photos[seen], video.truth[seen])
    error = mean_error(streamed(video), video.truth)
    assert error <= 1.02 * mean_error(frame_by_frame(video), video.truth)


def test_a_cut_to_another_room_does_not_bleed() -> None:
    before, after = (ray_cast(seed, CAMERAS["standing"][:4], SHAPE) for seed in (205, 206))
    stream = DepthStream()
    for z, photo in zip(before.depths, before.photos, strict=True):
        stream.push(z, photo)
    cut = [stream.push(z, p) for z, p in zip(after.depths, after.photos, strict=True)]
    fresh = streamed(after)
    for x, alone, truth in zip(cut, fresh, after.truth, strict=True):
        # The noise is that of the camera, from frames of both rooms.
        assert np.abs(x - truth).mean() <= 1.05 * np.abs(alone - truth).mean()
