"""Rank the classes of each pixel: its label, the probability of the label and of the next class."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Ranked(NamedTuple):
    """The best two of (H, W, K) probabilities."""

    labels: NDArray[np.int32]
    """The first of the most probable classes."""
    best: Array
    second: Array
    """Probability of the next class; 0 if there is none."""


def rank(p: Array) -> Ranked:
    """Find the most probable class of each pixel, and the next."""
    best = p[..., 0].copy()
    second, labels = np.zeros_like(best), np.zeros(best.shape, np.int32)
    for k in range(1, p.shape[2]):
        plane = np.ascontiguousarray(p[..., k])
        labels[plane > best] = k
        np.maximum(second, np.minimum(best, plane), out=second)
        np.maximum(best, plane, out=best)
    return Ranked(labels, best, second)
