"""Refine videos of depth cameras frame by frame, as a stream, as a whole, and with peers."""

from collections.abc import Callable

import numpy as np

from benchmarks.camera import realsense
from benchmarks.camera.methods import INPUT, REALSENSE
from benchmarks.camera.metrics import nearest_filled
from benchmarks.common import Array
from benchmarks.common.rgbd import Video
from bilateral import tasks

SINGLE, STREAM, WHOLE = "frame by frame", "DepthStream", "refine_depth of the video"


def unknown_as_nan(depths: Array) -> Array:
    return np.where(depths > 0, depths, np.float32(np.nan))


def single(video: Video) -> Array:
    pairs = zip(unknown_as_nan(video.depths), video.photos, strict=True)
    return np.stack([tasks.refine_depth(depth, photo) for depth, photo in pairs])


def stream(video: Video) -> Array:
    online = tasks.DepthStream()
    pairs = zip(unknown_as_nan(video.depths), video.photos, strict=True)
    return np.stack([online.push(depth, photo) for depth, photo in pairs])


def whole(video: Video) -> Array:
    return tasks.refine_depth(unknown_as_nan(video.depths), video.photos)


def methods() -> dict[str, Callable[[Video], Array]]:
    """Return the methods that can run here."""
    every: dict[str, Callable[[Video], Array]] = {
        INPUT: lambda video: np.stack([nearest_filled(depth) for depth in video.depths]),
        REALSENSE: lambda video: realsense.filtered(video.depths),
        **{SINGLE: single, STREAM: stream, WHOLE: whole},
    }
    if realsense.skipped() is not None:
        del every[REALSENSE]
    return every
