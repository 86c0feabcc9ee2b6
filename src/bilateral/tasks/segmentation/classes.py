"""Convert scores of classes to probabilities at the size of an image, and choose active classes."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral import validation
from bilateral.filters import resize
from bilateral.tasks.segmentation import policy
from bilateral.tasks.segmentation.ranking import Ranked, rank

Array = NDArray[Any]


class Probabilities(NamedTuple):
    """Probabilities of K classes at each pixel."""

    p: Array
    """(H, W, K) float32, 0 or above. The sum is about 1 at known pixels, 0 elsewhere."""
    known: Array | None
    """(H, W) bool; None: everywhere."""


def probabilities_at_size(scores: validation.Scores, shape: tuple[int, ...]) -> Probabilities:
    """Compute the probabilities of all classes at the size of an image.

    A foreground becomes two classes. Scores are interpolated as they are: logits as logits,
    probabilities as probabilities.
    """
    values, known = (scores.values, None) if scores.finite else _finite_scores(scores)
    if values.shape[2] == 1:
        background = np.zeros_like(values) if scores.logits else 1 - np.minimum(values, 1)
        values = np.concatenate([background, values], axis=2)
    values = (_shifted_logits(values) if scores.logits else values).astype(np.float32, copy=False)
    if values.shape[:2] != shape:
        values, known = _interpolate(values, known, shape)
    p = np.exp(values) if scores.logits else values
    sums = p @ np.ones(p.shape[2], np.float32)
    if not sums.all():  # some pixels have no class at all
        positive = sums > 0
        known = positive if known is None else known & positive
        sums = np.where(positive, sums, 1)
    if scores.logits or np.abs(sums - 1).max() > policy.SUM_TOLERANCE:
        p = p / sums[..., np.newaxis]
    return Probabilities(p, known)


class ActiveClasses(NamedTuple):
    """The classes that take part in the refinement."""

    classes: Array
    """Their numbers among all classes."""
    p: Array
    """(H, W, A) their probabilities, with sums of 1 at known pixels."""
    ranked: Ranked
    """The best two of them."""
    share: Array | None
    """(H, W, 1) sum of their probabilities among all classes; None: 1."""
    max_inactive: float
    """The highest probability of any other class."""


def active_classes(p: Array) -> ActiveClasses:
    """Choose the classes of (H, W, K) probabilities that are the label of a pixel, or nearly."""
    highest = p.max(axis=0).max(axis=0)
    numbers = np.flatnonzero(highest >= policy.faint_probability(p.shape[2]))
    active = np.stack([p[..., k] for k in numbers], axis=2)
    ranked = rank(active)
    is_label = np.bincount(ranked.labels.ravel(), minlength=len(numbers)) > 0
    takes_part = is_label | (highest[numbers] >= policy.ACTIVE_PROBABILITY)
    if not takes_part.all():
        numbers, active = numbers[takes_part], np.ascontiguousarray(active[..., takes_part])
    sums = _sums(active)
    scale = 1 / np.maximum(sums, policy.MIN_SUM)
    active *= scale
    scale = scale[..., 0]
    ranked = (
        Ranked(ranked.labels, ranked.best * scale, ranked.second * scale)
        if takes_part.all()
        else rank(active)
    )
    share = None if len(numbers) == p.shape[2] else 1 - (_sums(p) - sums)
    max_inactive = float(np.delete(highest, numbers).max(initial=0))
    return ActiveClasses(numbers, active, ranked, share, max_inactive)


def join_classes(p: Array, active: ActiveClasses, x: Array) -> Array:
    """Insert new probabilities `x` of the active classes into those of all, with sums of 1.

    The other classes keep their probabilities, but stay below the most probable class.
    """
    sums = np.maximum(_sums(x), policy.MIN_SUM)
    if active.share is None:
        return np.asarray(x / sums)
    x = x * (np.clip(active.share, 0, 1) / sums)
    out = p.copy()
    # The best of A classes has at least 1 / A of their share.
    may_exceed = active.max_inactive * x.shape[2] >= active.share.min()
    if may_exceed:
        np.minimum(out, policy.BELOW_BEST * rank(x).best[..., np.newaxis], out=out)
    for i, k in enumerate(active.classes):
        out[..., k] = x[..., i]
    return out / _sums(out) if may_exceed else out


def _sums(p: Array) -> Array:
    sums: Array = p @ np.ones((p.shape[2], 1), p.dtype)
    return sums


def _finite_scores(scores: validation.Scores) -> tuple[Array, Array | None]:
    """Return finite scores and where they are known; -inf is a valid logit beside finite ones."""
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


def _shifted_logits(logits: Array) -> Array:
    """Shift logits to at most 0, and limit them so that the sum of exponentials is never 0."""
    top = logits.max()
    if top - logits.min() <= -policy.MIN_LOGIT:
        return np.asarray(logits - top)
    below: Array = np.maximum(logits - logits.max(axis=2, keepdims=True), policy.MIN_LOGIT)
    return below


def _interpolate(
    values: Array, known: Array | None, shape: tuple[int, ...]
) -> tuple[Array, Array | None]:
    """Interpolate the known scores, and find the pixels that get enough of them."""
    if known is None:
        return resize.bilinear(values, shape), None
    share = resize.bilinear(known.astype(np.float32), shape)
    values = resize.bilinear(values, shape)
    is_known = share >= policy.MIN_KNOWN_SHARE
    return values / np.where(is_known, share, 1)[..., np.newaxis], is_known
