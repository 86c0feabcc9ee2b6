"""Class probabilities on a device, at the size of an image: `tasks.classes` for tensors."""

from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.labels.probabilities import Ranked, count_labels, rank
from bilateral.filters import resize
from bilateral.tasks.segmentation import classes as rules


class Probabilities(NamedTuple):
    """Of K classes, at each pixel."""

    p: Tensor
    """(K, H, W) float32, 0 or above, with sums of about 1 where known, and 0 elsewhere."""
    known: Tensor
    """(H, W) bool."""


def at_size(
    scores: Tensor, logits: bool, finite: bool, hidden: Tensor | None, shape: torch.Size
) -> Probabilities:
    """As `tasks.classes.at_size`, for (K, h, w) scores, but for what is `hidden` in the image."""
    size = scores.shape[1:]
    values, known = (scores, None) if finite else _known(scores, logits)
    if hidden is not None and size == shape:
        known = ~hidden if known is None else known & ~hidden
        values = torch.where(known, values, 0)
    if len(values) == 1:
        nothing = torch.zeros_like(values) if logits else 1 - values.clamp(max=1)
        values = torch.cat([nothing, values])
    if logits:
        values = (values - values.amax(0)).clamp(min=rules.LOWEST)
    values = values.float()
    if size != shape:
        values, known = _interpolated(values, known, shape)
    p = values.exp() if logits else values
    sums = p.sum(0)
    some = sums > 0
    if known is not None:
        some &= known
    if hidden is not None:
        some &= ~hidden
    exact = (torch.where(sums > 0, sums, 1) - 1).abs().amax() <= rules.ROUNDING
    p = p / torch.where((sums > 0) & ~exact if not logits else sums > 0, sums, 1)
    return Probabilities(torch.where(some, p, 0), some)


def _known(scores: Tensor, logits: bool) -> tuple[Tensor, Tensor]:
    """Finite scores, and where they are known; -inf is a fine logit beside others."""
    finite = scores.isfinite()
    known = finite.all(0)
    if logits:
        known = (finite | scores.isneginf()).all(0)
        if len(scores) > 1:
            known &= finite.any(0)
    limit = torch.finfo(scores.dtype).max / 4  # differences stay finite
    values = torch.where(scores.isnan(), 0, scores).clamp(-limit, limit)
    return torch.where(known, values, 0), known


def _interpolated(
    values: Tensor, known: Tensor | None, shape: torch.Size
) -> tuple[Tensor, Tensor | None]:
    if known is None:
        return _bilinear(values, shape), None
    share = _bilinear(known.float(), shape)
    seen = share >= rules.NEAREST
    return _bilinear(values, shape) / torch.where(seen, share, 1), seen


def _bilinear(values: Tensor, shape: torch.Size) -> Tensor:
    """`resize.bilinear` of maps (..., h, w)."""
    for axis, length in ((-1, shape[1]), (-2, shape[0])):
        samples = _samples(values.shape[axis], length, values.device)
        parts = [
            (weight if axis == -1 else weight[:, None]) * values.index_select(axis, at)
            for at, weight in samples
        ]
        values = parts[0] + parts[1]
    return values


@lru_cache(maxsize=32)
def _samples(size: int, length: int, device: torch.device) -> list[tuple[Tensor, Tensor]]:
    return [
        (torch.from_numpy(at).to(device), torch.from_numpy(weight).to(device, torch.float32))
        for at, weight in resize.linear_samples(size, length)
    ]


class Active(NamedTuple):
    """The classes that take part."""

    classes: list[int]
    """Their numbers among all."""
    p: Tensor
    """(A, H, W) their probabilities, with sums of 1 where known."""
    ranked: Ranked
    """The best two of them."""
    share: Tensor | None
    """(H, W) their sum among all classes; None: 1."""


class Counts(NamedTuple):
    """What the host must know of probabilities."""

    known: int
    """How many pixels are."""
    trusted: int
    """How many of these have a confidence above 0."""
    labels: list[int]
    """Of how many each class is the label."""
    highest: list[float]
    """Of each class."""


def count(given: Probabilities, confidence: Tensor | None) -> Counts:
    """Wait for the device, and count; without a confidence all known pixels are trusted."""
    ranked = rank(given.p)
    counts = count_labels(ranked.labels, len(given.p), given.known)
    known = given.known.sum()[None]
    trusted = known if confidence is None else (given.known & (confidence > 0)).sum()[None]
    numbers = known, trusted, counts, ranked.highest
    first, second, *others = torch.cat([n.double() for n in numbers]).tolist()
    classes = len(given.p)
    return Counts(int(first), int(second), [int(n) for n in others[:classes]], others[classes:])


def active(given: Probabilities, seen: Counts) -> Active:
    """The classes that are the label of a pixel, or near to it."""
    p = given.p
    chosen = _chosen(seen, p.shape[1] * p.shape[2])
    whole = len(chosen) == len(p)
    few = p if whole else p.index_select(0, constant(tuple(chosen), torch.int64, p.device))
    sums = few.sum(0)
    few = few * (1 / sums.clamp(min=rules.NOTHING))
    return Active(chosen, few, rank(few), None if whole else 1 - (p.sum(0) - sums))


def _chosen(seen: Counts, pixels: int) -> list[int]:
    every = range(len(seen.highest))
    # Unknown pixels have the first label that is more than faint.
    least = min(rules.FAINT, 0.99 / len(every))
    unknown = next(k for k in every if seen.highest[k] >= least) if seen.known < pixels else -1
    return [
        k for k in every if seen.labels[k] > 0 or seen.highest[k] >= rules.ACTIVE or k == unknown
    ]


def labels(few: Active, x: Tensor) -> Tensor:
    """The most probable class of each pixel among all, int64."""
    return constant(tuple(few.classes), torch.int64, x.device)[rank(x).labels.long()]


def joined(p: Tensor, few: Active, x: Tensor) -> Tensor:
    """New probabilities `x` of some classes among those of all, with sums of 1.

    The others stay as they are, but below the best.
    """
    x = x / x.sum(0).clamp(min=rules.NOTHING)
    if few.share is None:
        return x
    x = x * few.share.clamp(0, 1)
    out = torch.minimum(p, rules.BELOW_BEST * x.amax(0))
    out.index_copy_(0, constant(tuple(few.classes), torch.int64, p.device), x)
    return out / out.sum(0)
