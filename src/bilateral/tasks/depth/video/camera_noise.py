"""Noise of a depth camera, from the estimates of several frames."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bilateral.tasks.depth.noise import Noise

_QUANTILE = 0.75
"""Maps of few levels have estimates that are far too low in some frames."""
_EVERY_FRAME, _EVERY = 5, 30
"""A stream estimates the noise of its first frames, and then now and then: it takes time."""


def joint_noise(estimates: Sequence[Noise]) -> Noise:
    """Join estimates of the noise of one camera."""
    a, b = np.quantile(np.array(estimates), _QUANTILE, axis=0, method="higher")
    return Noise(float(a), float(b))


def is_due(frames: int) -> bool:
    """Whether a stream with so many frames before should estimate the noise."""
    return frames < _EVERY_FRAME or frames % _EVERY == 0


def remember(estimates: list[Noise], noise: Noise) -> list[Noise]:
    """Return the last few estimates with a new one."""
    return [*estimates, noise][-_EVERY_FRAME:]
