"""Rank the classes of each pixel by probability, count labels, and edit probabilities in place."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.kernel import kernel

_BLOCK = 1024


class Ranked(NamedTuple):
    """The two most probable classes of (K, H, W) probabilities."""

    labels: Tensor
    """(H, W) int32: the most probable class; the first one of equals."""
    best: Tensor
    """(H, W): probability of the most probable class."""
    second: Tensor
    """(H, W): probability of the next class; 0 if there is none."""
    highest: Tensor
    """(K,): highest probability of each class in the map."""


def rank(p: Tensor) -> Ranked:
    """Find the two most probable classes of each pixel of (K, H, W) probabilities."""
    classes, *shape = p.shape
    pixels = p[0].numel()
    blocks = triton.cdiv(pixels, _BLOCK)
    labels = torch.empty(shape, dtype=torch.int32, device=p.device)
    best, second = (p.new_empty(shape) for _ in range(2))
    highest = p.new_empty((blocks, classes))
    _rank[(blocks,)](p.contiguous(), labels, best, second, highest, classes, pixels, BLOCK=_BLOCK)
    return Ranked(labels, best, second, highest.amax(0))


def count_labels(labels: Tensor, classes: int, where: Tensor | None = None) -> Tensor:
    """Count the pixels of each label, in the whole map or `where` a mask is set: (classes,) int64.

    `labels` is (H, W) int32, `where` (H, W) bool.
    """
    blocks = triton.cdiv(labels.numel(), _BLOCK)
    counts = torch.empty((blocks, classes), dtype=torch.int32, device=labels.device)
    _count[(blocks,)](labels, where, counts, classes, labels.numel(), BLOCK=_BLOCK)
    return counts.sum(0)


def scale_labels(p: Tensor, labels: Tensor, factor: float) -> None:
    """Multiply the probability of each pixel's label by a factor; (K, H, W) in place."""
    _scale_labels[(triton.cdiv(labels.numel(), _BLOCK),)](
        p, labels, labels.numel(), FACTOR=factor, BLOCK=_BLOCK
    )


def swap_labels(p: Tensor, first: Tensor, second: Tensor) -> None:
    """Swap the probabilities of two labels at each pixel; (K, H, W) in place."""
    _swap_labels[(triton.cdiv(first.numel(), _BLOCK),)](
        p, first, second, first.numel(), BLOCK=_BLOCK
    )


@kernel()
def _rank(p, labels, best, second, highest, classes, pixels, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    i = block * BLOCK + tl.arange(0, BLOCK)
    mask = i < pixels
    at = p + i
    first = tl.load(at, mask=mask, other=0)
    tl.store(highest + block * classes, tl.max(first, 0))
    next_, label = tl.zeros_like(first), tl.zeros((BLOCK,), tl.int32)
    for k in range(1, classes):
        at += pixels
        x = tl.load(at, mask=mask, other=0)
        tl.store(highest + block * classes + k, tl.max(x, 0))
        label = tl.where(x > first, k, label)
        next_ = tl.maximum(next_, tl.minimum(first, x))
        first = tl.maximum(first, x)
    tl.store(labels + i, label, mask=mask)
    tl.store(best + i, first, mask=mask)
    tl.store(second + i, next_, mask=mask)


@kernel()
def _count(labels, where, counts, classes, pixels, BLOCK: tl.constexpr):
    """Store the pixel counts of all labels in one block, (blocks, classes)."""
    block = tl.program_id(0)
    i = block * BLOCK + tl.arange(0, BLOCK)
    mask = i < pixels
    label = tl.load(labels + i, mask=mask, other=-1)
    if where is not None:
        mask &= tl.load(where + i, mask=mask, other=0) != 0
    for k in range(0, classes):
        tl.store(counts + block * classes + k, tl.sum((mask & (label == k)).to(tl.int32), 0))


@kernel()
def _scale_labels(p, labels, pixels, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < pixels
    at = p + tl.load(labels + i, mask=mask, other=0).to(tl.int64) * pixels + i
    tl.store(at, tl.load(at, mask=mask, other=0) * FACTOR, mask=mask)


@kernel()
def _swap_labels(p, first, second, pixels, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < pixels
    one = p + tl.load(first + i, mask=mask, other=0).to(tl.int64) * pixels + i
    other = p + tl.load(second + i, mask=mask, other=0).to(tl.int64) * pixels + i
    a, b = tl.load(one, mask=mask, other=0), tl.load(other, mask=mask, other=0)
    tl.store(one, b, mask=mask)
    tl.store(other, a, mask=mask)
