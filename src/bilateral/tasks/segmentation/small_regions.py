"""Regions of labels too small to be anything go under in their surroundings."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.backends import cpu

Array = NDArray[Any]

ROUNDS = 4
"""Islands that touch nothing but islands wait for the next round."""


def flood(labels: NDArray[np.int32], least: float) -> NDArray[np.int32]:
    """Give regions of fewer pixels than `least` the label that most of their border has.

    A label map of which nothing else would be left stays as it is.
    """
    everywhere = np.ones(labels.shape, np.bool_)
    for _ in range(ROUNDS):
        regions, count = cpu.find_regions(labels.astype(np.float32), everywhere, 0.5)
        small = np.bincount(regions.ravel(), minlength=count + 1) < least
        small[0] = False
        if not small.any() or small[1:].all():
            break
        inside, outside = _borders(labels, regions, small)
        classes = int(labels.max()) + 1
        rank = np.cumsum(small) - 1
        votes = np.bincount(rank[inside] * classes + outside, minlength=classes * small.sum())
        votes = votes.reshape(-1, classes)
        label_of = np.where(votes.any(axis=1), votes.argmax(axis=1), -1)
        at = np.nonzero(small[regions])
        new = label_of[rank[regions[at]]]
        labels = labels.copy()
        labels[at] = np.where(new >= 0, new, labels[at])
        if label_of.min() >= 0:
            break
    return labels


def _borders(labels: Array, regions: Array, small: Array) -> tuple[Array, Array]:
    """The small region and the label beyond, wherever one borders on a region that is not small."""
    inside, outside = [], []
    for axis in (0, 1):
        before = tuple(slice(None, -1) if a == axis else slice(None) for a in (0, 1))
        after = tuple(slice(1, None) if a == axis else slice(None) for a in (0, 1))
        edge = labels[before] != labels[after]
        for one, other in ((before, after), (after, before)):
            from_, to, label = regions[one][edge], regions[other][edge], labels[other][edge]
            counts = small[from_] & ~small[to]
            inside.append(from_[counts])
            outside.append(label[counts])
    return np.concatenate(inside), np.concatenate(outside)
