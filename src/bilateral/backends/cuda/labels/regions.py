"""The regions of a label map: pixels joined to those beside, above and below with the same label.

A forest in which a pixel's parent is one before it, and the root is its region's first. Roots are
joined by atomic minima, so that it does not matter who comes first.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.prefix import maximum

_BLOCK = 256


class Regions(NamedTuple):
    """Of an (H, W) map."""

    root: Tensor
    """The first pixel of each one's region: (H, W) int32."""
    size: Tensor
    """How many pixels it has, at the first of them, elsewhere 0: (H W,) int32."""


def find_regions(labels: Tensor) -> Regions:
    """The regions of (H, W) int32 labels."""
    height, width = labels.shape
    count = labels.numel()
    start, parent, root = (torch.empty_like(labels) for _ in range(3))
    size = torch.zeros(count, dtype=torch.int32, device=labels.device)
    grid = (triton.cdiv(count, _BLOCK),)
    _find_runs[(height,)](labels, start, parent, width, BLOCK=_BLOCK)
    _join_rows[grid](labels, parent, count, width, BLOCK=_BLOCK)
    _shorten[grid](start, parent, count, BLOCK=_BLOCK)
    _find_roots[grid](start, parent, root, size, count, width, BLOCK=_BLOCK)
    return Regions(root, size)


def border_votes(
    labels: Tensor, regions: Regions, number: Tensor, small: int, classes: int
) -> Tensor:
    """How often each class borders on each small region: (small, classes) int32.

    Each root has its `number` among the small regions, or -1. Borders of two of these do not count.
    """
    height, width = labels.shape
    votes = torch.zeros((small, classes), dtype=torch.int32, device=labels.device)
    _vote[(triton.cdiv(labels.numel(), _BLOCK),)](
        labels, regions.root, number, votes, height, width, classes, BLOCK=_BLOCK
    )
    return votes


@kernel("width")
def _find_runs(labels, start, parent, width, BLOCK: tl.constexpr):
    """The first pixel of each one's run along its row."""
    row = tl.program_id(0) * width
    last = row
    for begin in range(0, width, BLOCK):
        x = begin + tl.arange(0, BLOCK)
        mask = x < width
        i = row + x
        own = tl.load(labels + i, mask=mask, other=0)
        left = tl.load(labels + i - 1, mask=mask & (x > 0), other=0)
        first = tl.associative_scan(tl.where(own != left, i, row), 0, maximum)
        first = tl.maximum(first, last)
        tl.store(start + i, first, mask=mask)
        tl.store(parent + i, first, mask=mask)
        last = tl.max(tl.where(mask, first, 0), 0)


@kernel("count", "width")
def _join_rows(labels, parent, count, width, BLOCK: tl.constexpr):
    """Join each run to those above that touch it, once each."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = (i < count) & (i >= width)
    own = tl.load(labels + i, mask=mask, other=-1)
    meets = mask & (tl.load(labels + i - width, mask=mask, other=-2) == own)
    inner = meets & (i % width > 0)
    inner &= tl.load(labels + i - 1, mask=inner, other=-2) == own
    inner &= tl.load(labels + i - width - 1, mask=inner, other=-2) == own
    open_ = meets & ~inner
    a, b = i, tl.where(open_, i - width, i)
    while tl.max(open_.to(tl.int32), 0) > 0:
        high, low = tl.maximum(a, b), tl.minimum(a, b)
        # The parent that `high` had is joined to `low`, too, unless `high` was a root.
        old = tl.atomic_min(parent + high, low, mask=open_)
        open_ &= (old != high) & (old != low)
        a, b = tl.where(open_, old, low), low


@kernel("count")
def _shorten(start, parent, count, BLOCK: tl.constexpr):
    """Make the root each run's parent: on the way up parents come nearer to it, for all."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < count
    open_ = mask & (tl.load(start + i, mask=mask, other=-1) == i)
    up = tl.load(parent + i, mask=open_, other=0)
    while tl.max(open_.to(tl.int32), 0) > 0:
        above = tl.load(parent + up, mask=open_, other=0, cache_modifier=".cg")
        open_ &= above != up
        tl.store(parent + i, above, mask=open_)
        up = tl.where(open_, above, up)


@kernel("count", "width")
def _find_roots(start, parent, root, size, count, width, BLOCK: tl.constexpr):
    """The root of each pixel's run; the last pixel of each run counts its pixels."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < count
    begin = tl.load(start + i, mask=mask, other=0)
    at = tl.load(parent + begin, mask=mask, other=0)
    tl.store(root + i, at, mask=mask)
    after = mask & (i % width + 1 < width)
    ends = mask & (tl.load(start + i + 1, mask=after, other=-1) != begin)
    tl.atomic_add(size + at, i - begin + 1, mask=ends)


@kernel("height", "width", "classes")
def _vote(labels, root, number, votes, height, width, classes, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < height * width
    y, x = i // width, i % width
    region = tl.load(root + i, mask=mask, other=0)
    place = tl.load(number + region, mask=mask, other=-1).to(tl.int64)
    small = mask & (place >= 0)
    for side in tl.static_range(4):
        if side == 0:
            j, there = i - 1, small & (x > 0)
        elif side == 1:
            j, there = i + 1, small & (x + 1 < width)
        elif side == 2:
            j, there = i - width, small & (y > 0)
        else:
            j, there = i + width, small & (y + 1 < height)
        other = tl.load(root + j, mask=there, other=0)
        counts = there & (tl.load(number + other, mask=there, other=0) < 0)
        label = tl.load(labels + j, mask=counts, other=0)
        tl.atomic_add(votes + place * classes + label, 1, mask=counts)
