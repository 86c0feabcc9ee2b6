"""Frames of depth videos: motion of the camera, comparison with the past, averages, calming."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral.backends import cpu

Array = NDArray[Any]
AverageRules = cpu.AverageRules
CameraMotion = cpu.CameraMotion
Comparison = cpu.Comparison
DepthChange = cpu.DepthChange
MovedPast = cpu.MovedPast
MEASURED = cpu.MEASURED

NO_MOTION = CameraMotion((0.0,) * cpu.FLOW_PARAMETERS, 1.0, 0.0, 0.0, 0.0)

_FINEST_PIXELS = 320 * 240
"""Motion is estimated on photographs of at most this size: more pixels add time, no precision."""
_LEAST_SIDE = 24
"""Levels of a pyramid have at least this many rows and columns."""
_MAX_LEVELS = 4

average_past = cpu.average_past
calm = cpu.calm
compare_past = cpu.compare_past
depth_change = cpu.depth_change
warp_past = cpu.warp_past


class Photo(NamedTuple):
    """A photograph as the operations on videos use it."""

    packed: NDArray[np.uint8]
    """(H, W, 4): red, green, blue, luma."""
    levels: list[Array]
    """Pyramid of luma, fine to coarse; each level has half the size of the one before."""
    finest_step: int
    """Pixels of the photograph per pixel of the first level."""


def photo(pixels: Array, highest: float) -> Photo:
    """Prepare an (H, W, 1 or 3) photograph with white at `highest`."""
    packed = cpu.pack_photo(pixels, highest)
    level, step = cpu.photo_luma(packed), 1
    while level.size > _FINEST_PIXELS and min(level.shape) >= 2 * _LEAST_SIDE:
        level, step = cpu.halve(level), 2 * step
    levels = [level] if min(level.shape) >= _LEAST_SIDE else []
    while levels and len(levels) < _MAX_LEVELS and min(levels[-1].shape) >= 2 * _LEAST_SIDE:
        levels.append(cpu.halve(levels[-1]))
    return Photo(packed, levels, step)


def camera_motion(
    before: Photo, now: Photo, depth: Array, unit: float, start: Sequence[float]
) -> CameraMotion:
    """Estimate the motion of the camera by aligning two photographs.

    The flow from a pixel to the same point in the frame before is that of a rigid scene: a
    quadratic function of the position (8 parameters) and 3 parameters times inverse depth. Gain
    and offset of the exposure are estimated, too.

    Parameters
    ----------
    before, now : Photo
        Of one size.
    depth : (H, W) float32 array
        Of the frame now; finite.
    unit : float
        Depth at which the inverse depth is 1; above 0.
    start : sequence of 11 numbers
        `theta` of the motion before.
    """
    return cpu.camera_motion(before.levels, now.levels, now.finest_step, depth, unit, start)
