"""Clean a label map: majority vote, then merge small regions into their neighbours."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.filters.labels import find_regions, majority
from bilateral.tasks.segmentation import policy
from bilateral.tasks.segmentation.ranking import rank

Array = NDArray[Any]


def clean_labels(x: Array, radius: int, min_area: float) -> Array:
    """Give each pixel the label of the majority around it, and remove small regions.

    Where the label of a pixel changes, the probabilities of the old and the new class change
    places.

    Parameters
    ----------
    x : (H, W, K) array
        Probabilities.
    radius : int
        Radius of the window of the vote.
    min_area : float
        Regions of fewer pixels are merged into their neighbours.
    """
    old = rank(x).labels
    new = merge_small_regions(majority(old, x.shape[2], radius), min_area)
    rows, columns = np.nonzero(new != old)
    at_old, at_new = ((rows, columns, labels[rows, columns]) for labels in (old, new))
    out = x.copy()
    out[at_old], out[at_new] = x[at_new], x[at_old]
    return out


def merge_small_regions(labels: NDArray[np.int32], min_area: float) -> NDArray[np.int32]:
    """Merge regions of fewer than `min_area` pixels into the label with the longest shared border.

    If all regions are small, the labels stay as they are.
    """
    everywhere = np.ones(labels.shape, np.bool_)
    for _ in range(policy.MERGE_ROUNDS):
        regions, count = find_regions(labels, everywhere, 0.5)
        small = np.bincount(regions.ravel(), minlength=count + 1) < min_area
        small[0] = False
        if not small.any() or small[1:].all():
            break
        inside, outside = _border_pairs(labels, regions, small)
        classes = int(labels.max()) + 1
        number = np.cumsum(small) - 1
        votes = np.bincount(number[inside] * classes + outside, minlength=classes * small.sum())
        votes = votes.reshape(-1, classes)
        winner = np.where(votes.any(axis=1), votes.argmax(axis=1), -1)
        pixels = np.nonzero(small[regions])
        new = winner[number[regions[pixels]]]
        labels = labels.copy()
        labels[pixels] = np.where(new >= 0, new, labels[pixels])
        if winner.min() >= 0:
            break
    return labels


def _border_pairs(labels: Array, regions: Array, small: Array) -> tuple[Array, Array]:
    """Return the small region and the label beyond, at each border with a region that is not small.

    Every pair of neighbouring pixels counts once.
    """
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
