"""Calm a stream: reduce the second difference in time at each pixel, within the noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bilateral.filters import video
from bilateral.tasks.depth.video.averaging import Averaged

FAST = 15.0
"""Flow in pixels at which calming is half as strong: in a fast pan nobody sees flicker."""
MOVED = 4 * 6**0.5
"""Units of noise: a larger second difference is motion. That of the noise itself is sqrt(6)."""
_GAIN = 0.35
"""Part of the way to the predicted value: more overshoots after a correction, and lags."""
_MOST = 1.2
"""Units of noise by which a pixel moves, at most."""


class Calming:
    """Move each pixel towards the value that its last two results lead to."""

    def __init__(self) -> None:
        self._results: list[NDArray[np.float32]] = []

    def push(self, averaged: Averaged) -> NDArray[np.float32]:
        """Return the calmed frame."""
        if averaged.speed is None:  # a new scene
            self._results = []
        x = averaged.x
        if averaged.speed is not None and len(self._results) == 2:
            x = video.calm(
                [x, *self._results],
                averaged.speed,
                averaged.noise,
                gain=_GAIN,
                most=_MOST,
                fast=FAST,
                change=MOVED,
            )
        self._results = [x, *self._results[:1]]
        return x
