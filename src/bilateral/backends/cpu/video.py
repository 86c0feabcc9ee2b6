"""Compare and average the frames of depth videos."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral import _core
from bilateral.threads import get_num_threads

Array = NDArray[Any]
Bytes = NDArray[np.uint8]
Noise = tuple[float, float]
"""a and b of the standard deviation a + b z^2."""

FLOW_PARAMETERS = 11
MEASURED = 0x80
"""Added to the count of frames of a pixel whose depth was measured in one of them."""


def pack_photo(pixels: Array, highest: float) -> Bytes:
    """Convert (H, W, 1 or 3) pixels with white at `highest` to (H, W, 4) bytes: RGB and luma."""
    out = np.empty((*pixels.shape[:2], 4), np.uint8)
    _core.pack_photo(pixels, 255 / highest, out, get_num_threads())
    return out


def photo_luma(photo: Bytes) -> Array:
    """Return the luma of a packed photograph in float32."""
    out = np.empty(photo.shape[:2], np.float32)
    _core.photo_luma(photo, out)
    return out


def halve(image: Array) -> Array:
    """Halve an (H, W) float32 image by means over 4 x 4 pixels with the weights 1, 3, 3, 1."""
    out = np.empty((image.shape[0] // 2, image.shape[1] // 2), np.float32)
    _core.halve(image, out, get_num_threads())
    return out


class CameraMotion(NamedTuple):
    """Parameters of the flow, and exposure: luma before = gain * luma now + offset."""

    theta: Sequence[float]
    gain: float
    offset: float
    residual: float
    """Median of |luma before - gain * luma now - offset|."""
    flow: float
    """The longest flow in pixels."""


def camera_motion(
    before: Sequence[Array],
    now: Sequence[Array],
    finest_step: int,
    depth: Array,
    unit: float,
    start: Sequence[float],
) -> CameraMotion:
    """Align two pyramids of luma, fine to coarse, whose first level has 1 / `finest_step` size."""
    threads = get_num_threads()
    return CameraMotion(*_core.camera_motion(before, now, finest_step, depth, unit, start, threads))


class MovedPast(NamedTuple):
    """The frame before in the view of the frame now."""

    depth: Array
    counts: Bytes
    """Number of frames in the average, plus `MEASURED`; 0 outside the view of the frame before."""
    photo: Bytes
    speed: Array
    """Length of the flow in pixels."""


def warp_past(
    past: Array,
    count: Bytes,
    photo: Bytes,
    depth: Array,
    motion: CameraMotion,
    unit: float,
    noise: Noise,
) -> MovedPast:
    """Move depth, count and photograph of the frame before along the flow of `depth`."""
    moved = MovedPast(
        np.empty_like(past), np.empty_like(count), np.empty_like(photo), np.empty_like(past)
    )
    _core.warp_past(
        past,
        count,
        photo,
        depth,
        motion.theta,
        unit,
        noise,
        motion.gain,
        motion.offset,
        *moved,
        get_num_threads(),
    )
    return moved


class DepthChange(NamedTuple):
    """Depth now - depth before = c0 + (c1 x + c2 y + c3) * depth now."""

    c: Sequence[float]
    noise_factor: float
    """Noise in time relative to the noise in space."""
    samples: int


def depth_change(
    z: Array, x: Array, before: Array, count: Bytes, noise: Noise, moving: bool
) -> DepthChange:
    """Fit the change of depth of a moving camera, and the noise in time."""
    return DepthChange(*_core.depth_change(z, x, before, count, noise, moving))


class Comparison(NamedTuple):
    """The moved past beside the present."""

    past: Array
    """Depth of the past, with the camera's change of depth."""
    steadiness: Bytes
    """0: changed; 1 to 4: steady. A doubtful measurement agrees with the past (2), is far closer to
    it than to the filling (3), or far closer to the filling (4)."""
    difference: NDArray[np.int16]
    """Measured depth - past where steady, in 1/512 of the noise; -32768 elsewhere."""


def compare_past(
    measured: Array,
    z: Array,
    x: Array,
    kept: NDArray[np.bool_],
    photo: Bytes,
    moved: MovedPast,
    change: Sequence[float],
    noise: Noise,
    photo_tolerance: float,
    photo_shift: float,
    depth_tolerance: float,
) -> Comparison:
    """Find the pixels whose photograph and depth did not change.

    `measured` has doubtful values, too; `z` does not. `photo_shift` is the misalignment of the
    photographs in pixels, at most 1.
    """
    shape = z.shape
    out = Comparison(
        np.empty(shape, np.float32), np.empty(shape, np.uint8), np.empty(shape, np.int16)
    )
    _core.compare_past(
        measured,
        z,
        x,
        kept,
        photo,
        moved.depth,
        moved.counts,
        moved.photo,
        change,
        noise,
        photo_tolerance,
        photo_shift,
        depth_tolerance,
        *out,
        get_num_threads(),
    )
    return out


class AverageRules(NamedTuple):
    """When and how to average."""

    radius: int
    """Of the window of local means and changes, in pixels."""
    least_shift: float
    """A mean difference of fewer units of noise is noise."""
    most_shift: float
    """A mean difference of more units of noise is a change of the scene."""
    same: float
    """Present and past differ by fewer units of noise."""
    most: int
    """Largest number of frames in an average."""
    settled: float
    """Fillings use the past if a smaller part of their window changed."""


def average_past(
    x: Array,
    kept: NDArray[np.bool_],
    compared: Comparison,
    moved: MovedPast,
    noise: Noise,
    rules: AverageRules,
) -> tuple[Array, Bytes]:
    """Average the present with the steady past; return depths and counts."""
    out, out_count = np.empty_like(x), np.empty_like(moved.counts)
    _core.average_past(
        x,
        kept,
        compared.past,
        moved.counts,
        compared.steadiness,
        compared.difference,
        noise,
        *rules,
        out,
        out_count,
        get_num_threads(),
    )
    return out, out_count


def calm(
    x: Sequence[Array],
    speed: Array,
    noise: Noise,
    *,
    gain: float,
    most: float,
    fast: float,
    change: float,
) -> Array:
    """Move pixels towards the value that the last two lead to. Frames come newest first."""
    out = np.empty_like(x[0])
    _core.calm(x, speed, noise, gain, most, fast, change, out, get_num_threads())
    return out
