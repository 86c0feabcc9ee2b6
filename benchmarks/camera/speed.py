"""Time the stream at the size of common cameras, and the refinement of one megapixel."""

from collections.abc import Callable, Iterator
from itertools import chain, cycle
from typing import Any

import numpy as np

from benchmarks.camera import realsense
from benchmarks.camera.methods import REALSENSE
from benchmarks.camera.videos import STREAM, unknown_as_nan
from benchmarks.common import Array, photos
from benchmarks.common.cells import QUICK_SHAPE, Results, Setting
from benchmarks.common.machine import Others
from benchmarks.common.rgbd import Video
from benchmarks.common.tables import OTHERS, at_least, at_most, bullets, page, table
from benchmarks.common.timing import Timing, clock
from bilateral import tasks

Call = Callable[[Array, Array], Any]
CAMERA, MEGAPIXEL = (480, 640), (864, 1152)
FRAMES_PER_SECOND, SECONDS = 30.0, 0.6
WARM_UPS, FRAMES = 3, 4  # frames in the stream for each repeat
ONE, LARGE = "refine_depth of one frame", "refine_depth of one megapixel"


def measure(videos: list[Video], setting: Setting) -> list[Results]:
    """Time on the first video, enlarged to each size."""
    small, large = (QUICK_SHAPE, QUICK_SHAPE) if setting.quick else (CAMERA, MEGAPIXEL)
    video = enlarged(videos[0], small)
    calls: dict[str, Call] = {STREAM: tasks.DepthStream().push, ONE: tasks.refine_depth}
    rows = [_row(name, call, video, setting) for name, call in calls.items()]
    if realsense.skipped() is None:
        with realsense.RealSense(small) as camera:
            rows.append(_row(REALSENSE, lambda z, _: camera.push(np.nan_to_num(z)), video, setting))
    return [*rows, _row(LARGE, tasks.refine_depth, enlarged(videos[0], large), setting)]


def enlarged(video: Video, shape: tuple[int, int]) -> Video:
    depths = [photos.nearest(depth, shape) for depth in unknown_as_nan(video.depths)]
    pictures = [photos.resized(photo, shape) for photo in video.photos]
    return Video(video.name, np.stack(pictures), np.stack(depths))


def _row(name: str, call: Call, video: Video, setting: Setting) -> Results:
    others, seconds = Others(), []
    count = WARM_UPS + FRAMES * setting.repeats
    for (depth, photo), _ in zip(back_and_forth(video), range(count), strict=False):
        seconds.append(clock(call, depth, photo)[0])
    return {
        **{"call": name, "video": video.name, "megapixels": video.depths[0].size / 1e6},
        **{"timing": Timing.of(seconds[WARM_UPS:]), "other_work": others.cores()},
    }


def back_and_forth(video: Video) -> Iterator[tuple[Array, Array]]:
    """Repeat a video forwards and backwards without end, so that neighbours stay neighbours."""
    frames = list(zip(video.depths, video.photos, strict=True))
    return cycle(chain(frames, frames[-2:0:-1]))


def as_text(rows: list[Results]) -> str:
    timings = {row["call"]: row["timing"] for row in rows}
    rate = at_least(1 / timings[STREAM].median, FRAMES_PER_SECOND, ".1f")
    verdicts = [
        f"frames per second of DepthStream: {rate}",
        f"seconds for one megapixel: {at_most(timings[LARGE].median, SECONDS)}",
    ]
    return page(
        "## Speed\n\nMedian and quartiles in ms per frame, with two threads.",
        table(
            [{**row, "rate": 1 / row["timing"].median} for row in rows],
            "call | {call}; video | {video}; megapixels | {megapixels:.2f}",
            "ms | {timing}; frames per second | {rate:.1f}",
            OTHERS,
        ),
        bullets("Targets:", verdicts),
    )
