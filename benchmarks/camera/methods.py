"""Refine one frame of a depth camera with our task and with what others use."""

from collections.abc import Iterator

import numpy as np

import bilateral
from benchmarks.camera import realsense
from benchmarks.camera.metrics import nearest_filled
from benchmarks.common import Array
from benchmarks.common.opencv import Worker
from benchmarks.common.rgbd import Frame
from bilateral.tasks import refine_depth

INPUT, OURS = "input, nearest-filled", "refine_depth"
SOLVE, REALSENSE = "bilateral.solve", "RealSense's filters"
SOLVER = "fast bilateral solver"
# Radius or smoothness, then sigma in 8-bit grey levels; each peer is judged by its best setting.
FILTERS: dict[str, list[tuple[float, float]]] = {
    "guided filter": [(2, 5), (4, 5), (8, 5), (8, 15)],
    "fast global smoother": [(10, 4), (100, 4), (100, 12), (1000, 4)],
}
SIGMAS, STEPS = (8.0, 8.0, 8.0), 25
SMOOTHNESSES = (1.0, 4.0, 16.0)


def ours(frame: Frame) -> Array:
    return refine_depth(frame.depth, frame.photo, invalid=0)


def peers(frame: Frame, python: str | None) -> Iterator[tuple[str, Array]]:
    """Yield the result of each peer and setting; a peer with several settings comes repeatedly."""
    yield INPUT, nearest_filled(frame.depth)
    target = np.where(frame.depth > 0, frame.depth, np.float32(np.nan))
    yield SOLVE, bilateral.solve(frame.photo, target)
    if realsense.skipped() is None:
        yield REALSENSE, realsense.filtered([frame.depth])[0]
    if python is not None:
        yield from opencv(frame, python)


def opencv(frame: Frame, python: str) -> Iterator[tuple[str, Array]]:
    """Yield OpenCV's filters of the filled map, and its solver with confidence 0 in holes."""
    confidence = (frame.depth > 0).astype(np.float32)
    maps = {"photo": frame.photo, "guide": frame.photo[..., ::-1], "confidence": confidence}
    with Worker(python, maps | {"filled": nearest_filled(frame.depth)}) as worker:
        for name, settings in FILTERS.items():
            for setting in settings:
                worker.run(name, "photo filled", *setting, save=True)
                yield f"{name}, OpenCV", worker.result().astype(np.float32)
        for smoothness in SMOOTHNESSES:
            settings_ = *SIGMAS, smoothness, STEPS
            worker.run(SOLVER, "guide filled confidence", *settings_, save=True)
            yield f"{SOLVER}, OpenCV", worker.result().astype(np.float32)
