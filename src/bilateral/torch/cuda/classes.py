"""Convert scores to probabilities and choose classes: `tasks.segmentation.classes` for tensors."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from bilateral.backends.cuda.constants import constant, hold
from bilateral.backends.cuda.labels.probabilities import Ranked, count_labels, rank
from bilateral.filters import resize
from bilateral.tasks.segmentation import policy


class Probabilities(NamedTuple):
    """Probabilities of K classes at each pixel."""

    p: Tensor
    """(K, H, W) float32, 0 or above. The sum is about 1 at known pixels, 0 elsewhere."""
    known: Tensor
    """(H, W) bool."""


def probabilities_at_size(
    scores: Tensor, logits: bool, finite: bool, ignore: Tensor | None, shape: tuple[int, int]
) -> Probabilities:
    """Compute the probabilities of all classes at the size of an image from (K, h, w) scores.

    Parameters
    ----------
    scores : (K, h, w) tensor
    logits : bool
        Whether the scores are logits.
    finite : bool
        Whether all scores are finite.
    ignore : (H, W) bool tensor, optional
        Pixels that are unknown.
    shape : (int, int)
        Height and width of the image.
    """
    size = scores.shape[1:]
    values, known = (scores, None) if finite else _finite_scores(scores, logits)
    if ignore is not None and size == shape:
        known = ~ignore if known is None else known & ~ignore
        values = torch.where(known, values, 0)
    if len(values) == 1:
        background = torch.zeros_like(values) if logits else 1 - values.clamp(max=1)
        values = torch.cat([background, values])
    if logits:
        values = (values - values.amax(0)).clamp(min=policy.MIN_LOGIT)
    values = values.float()
    if size != shape:
        values, known = _interpolate(values, known, shape)
    p = values.exp() if logits else values
    sums = p.sum(0)
    is_known = sums > 0
    if known is not None:
        is_known &= known
    if ignore is not None:
        is_known &= ~ignore
    exact = (torch.where(sums > 0, sums, 1) - 1).abs().amax() <= policy.SUM_TOLERANCE
    p = p / torch.where((sums > 0) & ~exact if not logits else sums > 0, sums, 1)
    return Probabilities(torch.where(is_known, p, 0), is_known)


def _finite_scores(scores: Tensor, logits: bool) -> tuple[Tensor, Tensor]:
    """Return finite scores and where they are known; -inf is a valid logit beside finite ones."""
    finite = scores.isfinite()
    known = finite.all(0)
    if logits:
        known = (finite | scores.isneginf()).all(0)
        if len(scores) > 1:
            known &= finite.any(0)
    limit = torch.finfo(scores.dtype).max / 4  # differences stay finite
    values = torch.where(scores.isnan(), 0, scores).clamp(-limit, limit)
    return torch.where(known, values, 0), known


def _interpolate(
    values: Tensor, known: Tensor | None, shape: tuple[int, int]
) -> tuple[Tensor, Tensor | None]:
    """Interpolate the known scores, and find the pixels that get enough of them."""
    if known is None:
        return _bilinear(values, shape), None
    share = _bilinear(known.float(), shape)
    is_known = share >= policy.MIN_KNOWN_SHARE
    return _bilinear(values, shape) / torch.where(is_known, share, 1), is_known


def _bilinear(values: Tensor, shape: tuple[int, int]) -> Tensor:
    """Interpolate maps (..., h, w) as `resize.bilinear`."""
    for axis, length in ((-1, shape[1]), (-2, shape[0])):
        samples = hold(_samples(values.shape[axis], length, values.device))
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


class ActiveClasses(NamedTuple):
    """The classes that take part in the refinement."""

    numbers: Tensor
    """(A,) int64: their numbers among all classes."""
    p: Tensor
    """(A, H, W) their probabilities, with sums of 1 at known pixels."""
    ranked: Ranked
    """The best two of them."""
    share: Tensor | None
    """(H, W) sum of their probabilities among all classes; None: 1."""


class ClassCounts(NamedTuple):
    """Numbers of pixels and probabilities of classes, on the host."""

    known: int
    """Number of known pixels."""
    trusted: int
    """Number of known pixels with a confidence above 0."""
    pixels: list[int]
    """Number of known pixels whose label is each class."""
    highest: list[float]
    """Highest probability of each class."""


def class_numbers(probabilities: Probabilities, confidence: Tensor | None) -> Tensor:
    """Return the numbers of `ClassCounts`. Without a confidence, all known pixels are trusted."""
    p, known = probabilities
    ranked = rank(p)
    counts = count_labels(ranked.labels, len(p), known)
    known_count = known.sum()[None]
    trusted = known_count if confidence is None else (known & (confidence > 0)).sum()[None]
    numbers = known_count, trusted, counts, ranked.highest
    return torch.cat([n.double() for n in numbers])


def class_counts(numbers: Tensor) -> ClassCounts:
    """Read the numbers of `class_numbers`, and wait for the device."""
    first, second, *others = numbers.tolist()
    classes = len(others) // 2
    pixels, highest = others[:classes], others[classes:]
    return ClassCounts(int(first), int(second), [int(n) for n in pixels], highest)


def active_numbers(p: Tensor, counts: ClassCounts) -> Tensor:
    """Choose the classes of (K, H, W) probabilities that are the label of a pixel, or nearly."""
    numbers = _active_numbers(counts, p.shape[1] * p.shape[2])
    return constant(tuple(numbers), torch.int64, p.device)


def active_classes(p: Tensor, numbers: Tensor) -> ActiveClasses:
    """Return some classes of (K, H, W) probabilities, which sum to 1 without the others."""
    has_all = len(numbers) == len(p)
    active = p if has_all else p.index_select(0, numbers)
    sums = active.sum(0)
    active = active * (1 / sums.clamp(min=policy.MIN_SUM))
    share = None if has_all else 1 - (p.sum(0) - sums)
    return ActiveClasses(numbers, active, rank(active), share)


def _active_numbers(counts: ClassCounts, pixels: int) -> list[int]:
    every = range(len(counts.highest))
    # The label of unknown pixels is the first class that is not faint, as on the CPU.
    limit = policy.faint_probability(len(every))
    of_unknown = -1
    if counts.known < pixels:
        of_unknown = next(k for k in every if counts.highest[k] >= limit)
    return [
        k
        for k in every
        if counts.pixels[k] > 0 or counts.highest[k] >= policy.ACTIVE_PROBABILITY or k == of_unknown
    ]


def most_probable(active: ActiveClasses, x: Tensor) -> Tensor:
    """Return the number of the most probable class of each pixel among all classes, int64."""
    return active.numbers[rank(x).labels.long()]


def join_classes(p: Tensor, active: ActiveClasses, x: Tensor) -> Tensor:
    """Insert new probabilities `x` of the active classes into those of all, with sums of 1.

    The other classes keep their probabilities, but stay below the most probable class.
    """
    x = x / x.sum(0).clamp(min=policy.MIN_SUM)
    if active.share is None:
        return x
    x = x * active.share.clamp(0, 1)
    out = torch.minimum(p, policy.BELOW_BEST * x.amax(0))
    out.index_copy_(0, active.numbers, x)
    return out / out.sum(0)
