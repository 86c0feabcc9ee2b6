"""Average the frames of a depth video over time, along the motion of the camera."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral.filters import video
from bilateral.filters.surfaces import smooth_depth
from bilateral.tasks.depth.frame import Frame
from bilateral.tasks.depth.noise import Noise

Array = NDArray[Any]

SAME = 3.0
"""Values that differ by fewer units of noise are measurements of one surface."""
_RULES = video.AverageRules(
    radius=10,  # a window of 21 x 21 pixels: means are precise to 1/20 of the noise
    least_shift=0.1,  # twice that
    most_shift=2.0,
    same=SAME,
    most=6,  # longer averages gain little and make the scene respond later
    settled=0.25,  # else something moves, and its shadow in the depth with it
)
_PHOTO_TOLERANCE = 12.0
"""Noise of photographs, in grey levels."""
_MOVING_SHIFT, _STANDING_SHIFT = 1.0, 0.25
"""Misalignment of photographs in pixels: of a moving camera, and of one that stands."""
DEPTH_TOLERANCE = 4.0
"""Units of noise: a larger change of depth is motion."""
_LEAST_MOTION = 0.15
"""A flow of fewer pixels is the error of its estimate: the camera stands."""
_EXPOSURE = (0.2, 5.0)
"""Range of the gain between two frames."""
_MOST_FACTOR = 3.0
"""Noise in time is up to so many times the noise in space."""
_MOST_WOBBLE, _WOBBLE_NOISE = 8.0, 0.01
"""Maps of phones are smooth but wobble: a larger factor while the noise is below 1 % of depth."""
_SMOOTH_SCALE = 5.0
"""Differences of more units of noise are edges."""
_CUT = 0.25
"""A lower share of steady pixels is a cut to another scene."""


class Averaged(NamedTuple):
    """A frame averaged with the past."""

    x: NDArray[np.float32]
    counts: NDArray[np.uint8]
    """Number of frames in the average, plus `video.MEASURED` if a frame measured the depth."""
    speed: NDArray[np.float32] | None
    """Flow in pixels; None for the first frame of a scene."""
    noise: Noise
    """Noise in time."""

    def frames(self) -> NDArray[np.uint8]:
        """Return the number of frames in the average, at least 1."""
        return np.asarray(np.maximum(self.counts & ~np.uint8(video.MEASURED), 1))


class _Past(NamedTuple):
    x: Array
    counts: Array
    photo: video.Photo


class TemporalAverage:
    """Average of up to 6 frames at each point of the scene. It stores one frame.

    With `smooth`, the average is smoothed in space, too, for frames that are refined in haste.
    """

    def __init__(self, *, smooth: bool = False) -> None:
        self._smooth = smooth
        self._past: _Past | None = None
        self._motion = video.NO_MOTION
        self._unit = 1.0

    def push(self, frame: Frame, measured: Array, photo: video.Photo) -> Averaged:
        """Average a frame with the frames before.

        Parameters
        ----------
        frame : Frame
        measured : (H, W) float32 array
            The data of the frame, doubtful ones too; NaN where unknown.
        photo : Photo
            The photograph of the frame.
        """
        averaged = None
        if self._past is not None:
            averaged = self._with_past(self._past, frame, measured, photo)
        if averaged is None:
            self._motion = video.NO_MOTION
            self._unit = abs(float(np.median(frame.x))) or 1.0
            averaged = Averaged(frame.x, _first_counts(frame.kept), None, frame.noise)
        if self._smooth:
            a, b = frame.noise
            x = smooth_depth(averaged.x, frame.kept, (a, 0.0, b), scale=_SMOOTH_SCALE, limit=SAME)
            averaged = averaged._replace(x=x)
        self._past = _Past(averaged.x, averaged.counts, photo)
        return averaged

    def _with_past(
        self, past: _Past, frame: Frame, measured: Array, photo: video.Photo
    ) -> Averaged | None:
        """Average with the past; None after a cut."""
        motion, moving = self._camera_motion(past.photo, photo, frame.x)
        moved = video.warp_past(
            past.x, past.counts, past.photo.packed, frame.x, motion, self._unit, frame.noise
        )
        change = video.depth_change(
            frame.z, frame.x, moved.depth, moved.counts, frame.noise, moving
        )
        noise = self._noise_in_time(frame.noise, change.noise_factor)
        compared = video.compare_past(
            measured,
            frame.z,
            frame.x,
            frame.kept,
            photo.packed,
            moved,
            change.c,
            noise,
            _PHOTO_TOLERANCE,
            _MOVING_SHIFT if moving else _STANDING_SHIFT,
            DEPTH_TOLERANCE,
        )
        if np.count_nonzero(compared.steadiness) < _CUT * frame.x.size:
            return None
        self._motion = motion
        x, counts = video.average_past(frame.x, frame.kept, compared, moved, noise, _RULES)
        return Averaged(x, counts, moved.speed, noise)

    def _camera_motion(
        self, before: video.Photo, now: video.Photo, x: Array
    ) -> tuple[video.CameraMotion, bool]:
        """Estimate the motion of the camera, and whether it moves at all."""
        motion = video.camera_motion(before, now, x, self._unit, self._motion.theta)
        motion = motion._replace(gain=float(np.clip(motion.gain, *_EXPOSURE)))
        moving = motion.flow > _LEAST_MOTION
        return (motion if moving else motion._replace(theta=video.NO_MOTION.theta)), moving

    def _noise_in_time(self, noise: Noise, factor: float) -> Noise:
        wobble = _WOBBLE_NOISE * self._unit / float(noise(np.array(self._unit)))
        most = float(np.clip(wobble, _MOST_FACTOR, _MOST_WOBBLE))
        factor = float(np.clip(factor, 1.0, most))
        return Noise(factor * noise.a, factor * noise.b)


def _first_counts(kept: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return the counts of the first frame of a scene."""
    return np.where(kept, np.uint8(1 + video.MEASURED), np.uint8(1))
