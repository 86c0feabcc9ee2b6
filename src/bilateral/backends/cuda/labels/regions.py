"""Find the connected regions of a map: 4-neighbours with the same label are connected.

Union-find: the parent of a pixel is an earlier pixel of its region, and the root is the region's
first pixel. Atomic minima join the roots, so that the order of programs does not matter.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.prefix import maximum

_BLOCK = 256
_STRIP = 32
"""Rows are joined within strips of this height, and then the strips. Runs that are joined are a
chain from row to row, which a program follows; a chain through a whole image takes ten times as
long."""


class Regions(NamedTuple):
    """The regions of an (H, W) map."""

    root: Tensor
    """(H, W) int32: first pixel of each pixel's region."""
    size: Tensor
    """(H W,) int32: number of pixels of a region, at its first pixel; 0 elsewhere."""


def find_regions(labels: Tensor, tolerance: float = 0) -> Regions:
    """Find the regions of (H, W) int32 labels, or of float32 values.

    Neighbours in x or y are connected if they differ by at most the tolerance.
    """
    height, width = labels.shape
    count = labels.numel()
    start, parent = (torch.empty_like(labels, dtype=torch.int32) for _ in range(2))
    grid = (triton.cdiv(count, _BLOCK),)
    _find_runs[(height,)](labels, start, parent, float(tolerance), width, BLOCK=_BLOCK)
    for between_strips in (0, 1):
        if between_strips:
            _shorten[grid](start, parent, count, BLOCK=_BLOCK)
        _join_rows[grid](
            *(labels, parent, float(tolerance), count, width, between_strips),
            STRIP=_STRIP,
            BLOCK=_BLOCK,
        )
    return collect_regions(start, parent)


def collect_regions(start: Tensor, parent: Tensor) -> Regions:
    """Return the regions of pixels whose runs are joined.

    Parameters
    ----------
    start : Tensor
        (H, W) int32: first pixel of each pixel's run.
    parent : Tensor
        (H, W) int32: at the start of a run, an earlier pixel of its region, or itself.
    """
    count, width = start.numel(), start.shape[1]
    root = torch.empty_like(start)
    size = torch.zeros(count, dtype=torch.int32, device=start.device)
    grid = (triton.cdiv(count, _BLOCK),)
    _shorten[grid](start, parent, count, BLOCK=_BLOCK)
    _find_roots[grid](start, parent, root, size, count, width, BLOCK=_BLOCK)
    return Regions(root, size)


def border_votes(
    labels: Tensor, regions: Regions, number: Tensor, small: int, classes: int
) -> Tensor:
    """Count the border pixels of each small region by the class beyond: (small, classes) int32.

    Borders between two small regions do not count.

    Parameters
    ----------
    labels : Tensor
        (H, W) int32.
    regions : Regions
    number : Tensor
        (H W,) int32: at each root of a small region its number, elsewhere -1.
    small : int
        Number of small regions, or more.
    classes : int
    """
    height, width = labels.shape
    votes = torch.zeros((small, classes), dtype=torch.int32, device=labels.device)
    _vote[(triton.cdiv(labels.numel(), _BLOCK),)](
        labels, regions.root, number, votes, height, width, classes, BLOCK=_BLOCK
    )
    return votes


@kernel()
def _find_runs(labels, start, parent, tolerance, width, BLOCK: tl.constexpr):
    """Store the first pixel of each pixel's run along its row."""
    row = tl.program_id(0) * width
    last = row
    for begin in range(0, width, BLOCK):
        x = begin + tl.arange(0, BLOCK)
        mask = x < width
        i = row + x
        label = tl.load(labels + i, mask=mask, other=0)
        left = tl.load(labels + i - 1, mask=mask & (x > 0), other=0)
        first = tl.associative_scan(tl.where(tl.abs(label - left) > tolerance, i, row), 0, maximum)
        first = tl.maximum(first, last)
        tl.store(start + i, first, mask=mask)
        tl.store(parent + i, first, mask=mask)
        last = tl.max(tl.where(mask, first, 0), 0)


@kernel()
def _join_rows(
    labels,
    parent,
    tolerance,
    count,
    width,
    between_strips,
    STRIP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Join each run to the runs above that touch it, once each: within strips or between them."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = (i < count) & (i >= width)
    mask &= ((i // width) % STRIP == 0) == (between_strips != 0)
    label = tl.load(labels + i, mask=mask, other=0)
    above = tl.load(labels + i - width, mask=mask, other=0)
    meets = mask & (tl.abs(above - label) <= tolerance)
    inner = meets & (i % width > 0)
    left = tl.load(labels + i - 1, mask=inner, other=0)
    before = tl.load(labels + i - width - 1, mask=inner, other=0)
    # The pixels to the left are joined already, and so is each of them with its neighbour here.
    inner &= (tl.abs(left - label) <= tolerance) & (tl.abs(before - left) <= tolerance)
    inner &= tl.abs(before - above) <= tolerance
    join_roots(parent, i, i - width, meets & ~inner)


@triton.jit
def join_roots(parent, a, b, active):
    """Join the regions of the pixels a and b where `active`."""
    b = tl.where(active, b, a)
    while tl.max(active.to(tl.int32), 0) > 0:
        high, low = tl.maximum(a, b), tl.minimum(a, b)
        # If `high` was no root, its former parent must be joined to `low`, too.
        old = tl.atomic_min(parent + high, low, mask=active)
        active &= (old != high) & (old != low)
        a, b = tl.where(active, old, low), low


@kernel()
def _shorten(start, parent, count, BLOCK: tl.constexpr):
    """Make the root the parent of each run; the paths that others follow become shorter, too."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < count
    active = mask & (tl.load(start + i, mask=mask, other=-1) == i)
    up = tl.load(parent + i, mask=active, other=0)
    while tl.max(active.to(tl.int32), 0) > 0:
        above = tl.load(parent + up, mask=active, other=0, cache_modifier=".cg")
        active &= above != up
        tl.store(parent + i, above, mask=active)
        up = tl.where(active, above, up)


@kernel()
def _find_roots(start, parent, root, size, count, width, BLOCK: tl.constexpr):
    """Store the root of each pixel; the last pixel of each run adds its length to the size."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < count
    begin = tl.load(start + i, mask=mask, other=0)
    at = tl.load(parent + begin, mask=mask, other=0)
    tl.store(root + i, at, mask=mask)
    after = mask & (i % width + 1 < width)
    ends = mask & (tl.load(start + i + 1, mask=after, other=-1) != begin)
    tl.atomic_add(size + at, i - begin + 1, mask=ends)


@kernel()
def _vote(labels, root, number, votes, height, width, classes, BLOCK: tl.constexpr):
    """Each pixel of a small region votes for the classes of its neighbours in large regions."""
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
