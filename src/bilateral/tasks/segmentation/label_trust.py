"""What the outlines of labels tell: how far to trust them, and how much of each class there is."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral.backends import cpu
from bilateral.tasks.segmentation.small_regions import flood

Array = NDArray[Any]

LEAST_TRUST = 0.01
LARGEST_BIAS = 0.25
"""Of a class's log odds: its area may change if that is what the photograph says."""
CLOSE = math.exp(-2 * LARGEST_BIAS)
"""A class must be as probable as this part of the best, or no bias makes it the label."""
DOUBT = 0.5
"""A label is in doubt if the next class is less than this below it."""
ROUNDS = 20
STEP = 0.5
SETTLED = 0.003
FEW_PIXELS = 20
"""A change of an area by less than about this is of no account."""


class Ranked(NamedTuple):
    """The best two of (H, W, K) probabilities."""

    labels: NDArray[np.int32]
    """The first of the most probable classes."""
    best: Array
    second: Array
    """Probability of the next class, 0 if there is none."""


def rank(p: Array) -> Ranked:
    """Find the most probable class of each pixel and the next."""
    best = p[..., 0].copy()
    second, labels = np.zeros_like(best), np.zeros(best.shape, np.int32)
    for k in range(1, p.shape[2]):
        plane = np.ascontiguousarray(p[..., k])
        labels[plane > best] = k
        np.maximum(second, np.minimum(best, plane), out=second)
        np.maximum(best, plane, out=best)
    return Ranked(labels, best, second)


def belt(ranked: Ranked, known: Array | None) -> float:
    """How wide the belt of doubt along the outlines is, in pixels; 0 if no pixel is in doubt.

    Doubtful are pixels whose two best classes differ by less than a half: where a map was
    interpolated linearly between sure labels, that is half of a cell.
    """
    doubt = ranked.best - ranked.second < DOUBT
    if known is not None:
        doubt &= known
    length = sum(_changes(ranked.labels, known, axis) for axis in (0, 1))
    return float(np.count_nonzero(doubt)) / max(length, 1)


def _changes(labels: Array, known: Array | None, axis: int) -> int:
    differ = np.diff(labels, axis=axis) != 0
    if known is not None:
        differ &= np.delete(known, 0, axis=axis) & np.delete(known, -1, axis=axis)
    return int(np.count_nonzero(differ))


def trust(labels: NDArray[np.int32], known: Array | None, radius: int) -> Array:
    """Little at the outlines, where a network knows least, and most in the middle of each region.

    ``1 - exp(-2 (d / t)^2)`` at the distance d to the nearest outline, t being the largest such
    distance nearby in the same region: however thin it is, it has a middle that counts.
    """
    if known is not None:
        labels = np.where(known, labels, np.int32(-1))
    c: Array = -np.expm1(-2 * np.square(cpu.label_depth(labels, radius)))
    return np.maximum(c, np.float32(LEAST_TRUST))


def keep_areas(x: Array, before: Array, known: Array | None) -> Array:
    """Weigh the classes of (H, W, K) probabilities so that each is the label of as many pixels.

    Smoothing takes from small regions what it gives to the large ones around them. `before` are
    the labels that the areas are taken from.
    """
    classes = x.shape[2]
    now = rank(x)
    close = now.second > now.best * CLOSE
    after = now.labels
    if known is not None:
        close, before, after = close & known, before[known], after[known]
    wanted, found = (np.bincount(a.ravel(), minlength=classes) for a in (before, after))
    sure = found - np.bincount(now.labels[close], minlength=classes)
    scores = np.log(np.maximum(x[close], np.finfo(x.dtype).tiny))
    bias = np.zeros(classes)
    for _ in range(ROUNDS):
        found = sure + np.bincount((scores + bias).argmax(axis=1), minlength=classes)
        step = STEP * np.log((wanted + FEW_PIXELS) / (found + FEW_PIXELS))
        last, bias = bias, np.clip(bias + step, -LARGEST_BIAS, LARGEST_BIAS)
        if np.abs(bias - last).max() < SETTLED:
            break
    weighed: Array = x * np.exp(bias).astype(x.dtype)
    return weighed


def calm(x: Array, radius: int, least: float) -> Array:
    """Give each pixel the label of the majority around it, and leave no islands.

    Islands are regions of fewer pixels than `least`. Where a pixel's label changes, the
    probabilities of the old and the new class change places.
    """
    own = rank(x).labels
    new = flood(cpu.majority(own, x.shape[2], radius), least)
    rows, columns = np.nonzero(new != own)
    old, better = ((rows, columns, k[rows, columns]) for k in (own, new))
    out = x.copy()
    out[old], out[better] = x[better], x[old]
    return out
