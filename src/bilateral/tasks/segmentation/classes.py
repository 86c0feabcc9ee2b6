"""Class probabilities at the size of an image, from what networks return."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral import validation as checks
from bilateral.filters import resize
from bilateral.tasks.segmentation.label_trust import Ranked, rank

Array = NDArray[Any]

LOWEST = -80.0
"""A logit this far below the largest is one of probability 0, and its exponential is above 0."""
ACTIVE = 0.25
"""A class that is no pixel's label, and nowhere more probable than this, takes no part."""
FAINT = 0.05
"""A class that is nowhere more probable than this is no pixel's label."""
NOTHING = 1e-30
ROUNDING = 1e-3
"""Sums of probabilities that are off by no more than this are left to the result's."""
NEAREST = 0.25
"""What the nearest of four samples weighs at least."""
BELOW_BEST = 1 - 1e-6
"""Times the best probability, for classes that take no part."""


class Probabilities(NamedTuple):
    """Of K classes, at each pixel."""

    p: Array
    """(H, W, K) float32, 0 or above, with sums of about 1 where known, and 0 elsewhere."""
    known: Array | None
    """(H, W) bool; None: everywhere."""


def at_size(scores: checks.Scores, shape: tuple[int, ...]) -> Probabilities:
    """Probabilities of all classes at an image's size. A foreground becomes two classes.

    Scores are interpolated as they come: logits as logits, probabilities as probabilities.
    """
    values, known = (scores.values, None) if scores.finite else _known(scores)
    if values.shape[2] == 1:
        nothing = np.zeros_like(values) if scores.logits else 1 - np.minimum(values, 1)
        values = np.concatenate([nothing, values], axis=2)
    values = (_below_zero(values) if scores.logits else values).astype(np.float32, copy=False)
    if values.shape[:2] != shape:
        values, known = _interpolated(values, known, shape)
    p = np.exp(values) if scores.logits else values
    sums = p @ np.ones(p.shape[2], np.float32)
    if not sums.all():  # no class at all
        some = sums > 0
        known = some if known is None else known & some
        sums = np.where(some, sums, 1)
    if scores.logits or np.abs(sums - 1).max() > ROUNDING:
        p = p / sums[..., np.newaxis]
    return Probabilities(p, known)


class Active(NamedTuple):
    """The classes that take part."""

    classes: Array
    """Their numbers among all."""
    p: Array
    """(H, W, A) their probabilities, with sums of 1 where known."""
    ranked: Ranked
    """The best two of them."""
    share: Array | None
    """(H, W, 1) their sum among all classes; None: 1."""
    rest: float
    """The highest probability of any other class."""


def active(p: Array) -> Active:
    """Those of (H, W, K) probabilities that are the label of a pixel, or near to it."""
    highest = p.max(axis=0).max(axis=0)
    labels = np.flatnonzero(highest >= min(FAINT, 0.99 / p.shape[2]))
    few = _planes(p, labels)
    ranked = rank(few)
    best = np.bincount(ranked.labels.ravel(), minlength=len(labels)) > 0
    kept = best | (highest[labels] >= ACTIVE)
    if not kept.all():
        labels, few = labels[kept], np.ascontiguousarray(few[..., kept])
    sums = _sums(few)
    scale = 1 / np.maximum(sums, NOTHING)
    few *= scale
    scale = scale[..., 0]
    ranked = (
        Ranked(ranked.labels, ranked.best * scale, ranked.second * scale)
        if kept.all()
        else rank(few)
    )
    share = None if len(labels) == p.shape[2] else 1 - (_sums(p) - sums)
    rest = float(np.delete(highest, labels).max(initial=0))
    return Active(labels, few, ranked, share, rest)


def _planes(p: Array, classes: Array) -> Array:
    return np.stack([p[..., k] for k in classes], axis=2)


def joined(p: Array, few: Active, x: Array) -> Array:
    """New probabilities `x` of some classes among those of all, with sums of 1.

    The others stay as they are, but below the best.
    """
    sums = np.maximum(_sums(x), NOTHING)
    if few.share is None:
        return np.asarray(x / sums)
    x = x * (np.clip(few.share, 0, 1) / sums)
    out = p.copy()
    crowded = few.rest * x.shape[2] >= few.share.min()  # the best has one part of so many at least
    if crowded:
        np.minimum(out, BELOW_BEST * rank(x).best[..., np.newaxis], out=out)
    for i, k in enumerate(few.classes):
        out[..., k] = x[..., i]
    return out / _sums(out) if crowded else out


def _sums(p: Array) -> Array:
    sums: Array = p @ np.ones((p.shape[2], 1), p.dtype)
    return sums


def _known(scores: checks.Scores) -> tuple[Array, Array | None]:
    """Finite scores, and where they are known; -inf is a fine logit beside others."""
    values = scores.values
    finite = np.isfinite(values)
    known: Array = np.asarray(finite.all(axis=2))
    if scores.logits:
        known = np.asarray((finite | (values == -np.inf)).all(axis=2))
        if values.shape[2] > 1:
            known &= finite.any(axis=2)
    limit = np.finfo(values.dtype).max / 4  # differences stay finite
    values = np.clip(np.where(np.isnan(values), 0, values), -limit, limit)
    return np.where(known[..., np.newaxis], values, 0), None if known.all() else known


def _below_zero(logits: Array) -> Array:
    """Logits up to 0 that mean the same, none so low that a pixel could be left with nothing."""
    top = logits.max()
    if top - logits.min() <= -LOWEST:
        return np.asarray(logits - top)
    below: Array = np.maximum(logits - logits.max(axis=2, keepdims=True), LOWEST)
    return below


def _interpolated(
    values: Array, known: Array | None, shape: tuple[int, ...]
) -> tuple[Array, Array | None]:
    if known is None:
        return resize.bilinear(values, shape), None
    share = resize.bilinear(known.astype(np.float32), shape)
    values = resize.bilinear(values, shape)
    seen = share >= NEAREST
    return values / np.where(seen, share, 1)[..., np.newaxis], seen
