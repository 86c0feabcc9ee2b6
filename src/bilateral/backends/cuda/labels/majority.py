"""Apply the majority filter to a label map."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.kernel import kernel

_BLOCK = 128
"""Pixels of a row whose windows one program examines."""


def majority(labels: Tensor, radius: int) -> Tensor:
    """Return the label that fills more than half of the window around each pixel.

    A pixel whose window has no such label keeps its own. The window has 2 radius + 1 pixels along
    each axis, and its part beyond the border repeats the outermost pixels.

    Parameters
    ----------
    labels : Tensor
        (H, W) int32.
    radius : int
        In pixels.
    """
    height, width = labels.shape
    out = torch.empty_like(labels)
    _majority[(height, triton.cdiv(width, _BLOCK))](
        labels, out, height, width, radius, BLOCK=_BLOCK
    )
    return out


@kernel()
def _majority(labels, out, height, width, radius, BLOCK: tl.constexpr):
    """Filter part of a row; programs whose windows hold one label only skip the vote."""
    y = tl.program_id(0)
    x = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    right = width - 1
    own = tl.load(labels + y * width + tl.minimum(x, right))
    low, high = own, own
    if 2 * radius <= BLOCK:  # then the ends of the BLOCK windows cover all pixels between them
        for dy in range(-radius, radius + 1):
            row = labels + tl.minimum(tl.maximum(y + dy, 0), height - 1) * width
            first = tl.load(row + tl.minimum(tl.maximum(x - radius, 0), right))
            last = tl.load(row + tl.minimum(x + radius, right))
            low, high = tl.minimum(tl.minimum(first, last), low), tl.maximum(first, high)
            high = tl.maximum(last, high)
    label = own
    if (2 * radius > BLOCK) | (tl.min(low, 0) < tl.max(high, 0)):
        label = _vote(labels, own, y, x, height, width, radius, BLOCK)
    tl.store(out + y * width + x, label, mask=x < width)


@triton.jit
def _vote(labels, own, y, x, height, width, radius, BLOCK: tl.constexpr):
    """Find the majority by the algorithm of Boyer and Moore.

    Pairs of different labels cancel, so that only a label with a majority can be left. A second
    pass counts whether it has one.
    """
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
