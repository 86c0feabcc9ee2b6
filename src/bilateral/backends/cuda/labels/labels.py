"""Maps of labels: which class is the most probable, and which has the majority around a pixel."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.kernel import kernel

_BLOCK = 1024
_WINDOWS = 128
"""Pixels of a row whose windows one program looks at."""


class Ranked(NamedTuple):
    """The best two of (K, H, W) probabilities."""

    labels: Tensor
    """The first of the most probable classes: (H, W) int32."""
    best: Tensor
    second: Tensor
    """Probability of the next class, 0 if there is none."""
    highest: Tensor
    """Of each class: (K,)."""


def rank(p: Tensor) -> Ranked:
    """Find the most probable class of each pixel and the next."""
    classes, *shape = p.shape
    pixels = p[0].numel()
    blocks = triton.cdiv(pixels, _BLOCK)
    labels = torch.empty(shape, dtype=torch.int32, device=p.device)
    best, second = (p.new_empty(shape) for _ in range(2))
    highest = p.new_empty((blocks, classes))
    _rank[(blocks,)](p.contiguous(), labels, best, second, highest, classes, pixels, BLOCK=_BLOCK)
    return Ranked(labels, best, second, highest.amax(0))


def count_labels(labels: Tensor, classes: int, where: Tensor | None = None) -> Tensor:
    """How many pixels of a map, or of a part of it, have each label: (classes,) int64."""
    blocks = triton.cdiv(labels.numel(), _BLOCK)
    counts = torch.empty((blocks, classes), dtype=torch.int32, device=labels.device)
    _count[(blocks,)](labels, where, counts, classes, labels.numel(), BLOCK=_BLOCK)
    return counts.sum(0)


def majority(labels: Tensor, radius: int) -> Tensor:
    """The label that fills more than half of the window around each pixel, or else its own.

    The window has 2 radius + 1 pixels along each axis, and its part beyond the border repeats the
    outermost pixels.
    """
    height, width = labels.shape
    out = torch.empty_like(labels)
    _majority[(height, triton.cdiv(width, _WINDOWS))](
        labels, out, height, width, radius, BLOCK=_WINDOWS
    )
    return out


def favour(x: Tensor, labels: Tensor, factor: float) -> None:
    """Multiply the probability of each pixel's label, in place."""
    _favour[(triton.cdiv(labels.numel(), _BLOCK),)](
        x, labels, labels.numel(), FACTOR=factor, BLOCK=_BLOCK
    )


def exchange(x: Tensor, own: Tensor, new: Tensor) -> None:
    """Let the probabilities of two labels of each pixel change places."""
    _exchange[(triton.cdiv(own.numel(), _BLOCK),)](x, own, new, own.numel(), BLOCK=_BLOCK)


@kernel("classes", "count")
def _rank(p, labels, best, second, highest, classes, count, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    i = block * BLOCK + tl.arange(0, BLOCK)
    mask = i < count
    at = p + i
    first = tl.load(at, mask=mask, other=0)
    tl.store(highest + block * classes, tl.max(first, 0))
    next_, label = tl.zeros_like(first), tl.zeros((BLOCK,), tl.int32)
    for k in range(1, classes):
        at += count
        x = tl.load(at, mask=mask, other=0)
        tl.store(highest + block * classes + k, tl.max(x, 0))
        label = tl.where(x > first, k, label)
        next_ = tl.maximum(next_, tl.minimum(first, x))
        first = tl.maximum(first, x)
    tl.store(labels + i, label, mask=mask)
    tl.store(best + i, first, mask=mask)
    tl.store(second + i, next_, mask=mask)


@kernel("classes", "count")
def _count(labels, where, counts, classes, count, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    i = block * BLOCK + tl.arange(0, BLOCK)
    mask = i < count
    label = tl.load(labels + i, mask=mask, other=-1)
    if where is not None:
        mask &= tl.load(where + i, mask=mask, other=0) != 0
    for k in range(0, classes):
        tl.store(counts + block * classes + k, tl.sum((mask & (label == k)).to(tl.int32), 0))


@kernel("height", "width", "radius")
def _majority(labels, out, height, width, radius, BLOCK: tl.constexpr):
    """Boyer and Moore's vote: what has a majority is left when pairs of others have cancelled."""
    y = tl.program_id(0)
    x = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    right = width - 1
    own = tl.load(labels + y * width + tl.minimum(x, right))
    low, high = own, own
    if 2 * radius <= BLOCK:  # the ends of all windows leave no gap
        for dy in range(-radius, radius + 1):
            row = labels + tl.minimum(tl.maximum(y + dy, 0), height - 1) * width
            first = tl.load(row + tl.minimum(tl.maximum(x - radius, 0), right))
            last = tl.load(row + tl.minimum(x + radius, right))
            low, high = tl.minimum(tl.minimum(first, last), low), tl.maximum(first, high)
            high = tl.maximum(last, high)
    found = own
    if (2 * radius > BLOCK) | (tl.min(low, 0) < tl.max(high, 0)):
        found = _vote(labels, own, y, x, height, width, radius, BLOCK)
    tl.store(out + y * width + x, found, mask=x < width)


@triton.jit
def _vote(labels, own, y, x, height, width, radius, BLOCK: tl.constexpr):
    leader, lead = own, tl.zeros((BLOCK,), tl.int32)
    for dy in range(-radius, radius + 1):
        row = labels + tl.minimum(tl.maximum(y + dy, 0), height - 1) * width
        for dx in range(-radius, radius + 1):
            label = tl.load(row + tl.minimum(tl.maximum(x + dx, 0), width - 1))
            leader = tl.where(lead == 0, label, leader)
            lead += tl.where(label == leader, 1, -1)
    votes = tl.zeros((BLOCK,), tl.int32)
    for dy in range(-radius, radius + 1):
        row = labels + tl.minimum(tl.maximum(y + dy, 0), height - 1) * width
        for dx in range(-radius, radius + 1):
            label = tl.load(row + tl.minimum(tl.maximum(x + dx, 0), width - 1))
            votes += (label == leader).to(tl.int32)
    side = 2 * radius + 1
    return tl.where(2 * votes > side * side, leader, own)


@kernel("count")
def _favour(x, labels, count, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < count
    at = x + tl.load(labels + i, mask=mask, other=0).to(tl.int64) * count + i
    tl.store(at, tl.load(at, mask=mask, other=0) * FACTOR, mask=mask)


@kernel("count")
def _exchange(x, own, new, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < count
    one = x + tl.load(own + i, mask=mask, other=0).to(tl.int64) * count + i
    other = x + tl.load(new + i, mask=mask, other=0).to(tl.int64) * count + i
    a, b = tl.load(one, mask=mask, other=0), tl.load(other, mask=mask, other=0)
    tl.store(one, b, mask=mask)
    tl.store(other, a, mask=mask)
