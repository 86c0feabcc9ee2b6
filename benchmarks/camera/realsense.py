"""Run the depth filters of Intel's RealSense library on any frames, through its software device."""

from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any, Self

import numpy as np

from benchmarks.common import Array

STEPS = 1000  # of its 16-bit maps in a metre
FOCAL, FRAMES_PER_SECOND, TIMEOUT = 500.0, 30, 5000  # any camera's; milliseconds
LARGEST = np.iinfo(np.uint16).max


def skipped() -> str | None:
    """Say why the filters cannot run; None if they can."""
    if find_spec("pyrealsense2") is not None:
        return None
    return "RealSense's filters skipped: pip install pyrealsense2."


class RealSense:
    """Spatial filter, temporal filter and hole filling with their defaults; a context manager."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        import pyrealsense2 as rs  # type: ignore[import-not-found, import-untyped, unused-ignore]

        self._rs: Any = rs
        self._shape = shape
        self._device = rs.software_device()
        self._sensor = self._device.add_sensor("depth")
        self._profile = self._sensor.add_video_stream(self._stream())
        self._sensor.add_read_only_option(rs.option.depth_units, 1 / STEPS)
        self._queue = rs.frame_queue(2)
        self._filters = rs.spatial_filter(), rs.temporal_filter(), rs.hole_filling_filter()
        self._count = 0

    def __enter__(self) -> Self:
        self._sensor.open(self._profile)
        self._sensor.start(self._queue)
        return self

    def __exit__(self, *_: object) -> None:
        self._sensor.stop()
        self._sensor.close()

    def push(self, depth: Array) -> Array:
        """Filter the next frame, in metres and 0 where it is unknown."""
        rs = self._rs
        frame = rs.software_video_frame()
        frame.pixels = np.clip(np.rint(depth * STEPS), 0, LARGEST).astype(np.uint16)
        frame.bpp, frame.stride = 2, 2 * self._shape[1]
        frame.timestamp, frame.frame_number = 1e3 * self._count / FRAMES_PER_SECOND, self._count
        frame.domain = rs.timestamp_domain.hardware_clock
        frame.profile, frame.depth_units = self._profile.as_video_stream_profile(), 1 / STEPS
        self._count += 1
        self._sensor.on_video_frame(frame)
        filtered = self._queue.wait_for_frame(TIMEOUT)
        for step in self._filters:
            filtered = step.process(filtered)
        return np.asarray(filtered.get_data(), np.float32) / STEPS

    def _stream(self) -> Any:
        rs, (height, width) = self._rs, self._shape
        lens = rs.intrinsics()
        lens.width, lens.height, lens.ppx, lens.ppy = width, height, width / 2, height / 2
        lens.fx = lens.fy = FOCAL
        lens.model, lens.coeffs = rs.distortion.brown_conrady, [0.0] * 5
        stream = rs.video_stream()
        stream.type, stream.fmt, stream.bpp = rs.stream.depth, rs.format.z16, 2
        stream.index = stream.uid = 0
        stream.width, stream.height, stream.fps = width, height, FRAMES_PER_SECOND
        stream.intrinsics = lens
        return stream


def filtered(depths: Iterable[Array]) -> Array:
    """Filter the frames of one video."""
    frames = list(depths)
    with RealSense(frames[0].shape) as camera:
        return np.stack([camera.push(depth) for depth in frames])
