"""Links of coarse rows: one for all that lead from a row to the same other."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.multigrid.graph import Graph, high, image_start
from bilateral.backends.cuda.multigrid.matching import better

_FEW = 32
_MANY = 128
"""Links of a row, one or several per thread, each compared with all."""
_STEP: tl.constexpr = tl.constexpr(4)
"""Links read at a time."""
_MOST_PROGRAMS = 8192
"""Of a kernel that goes from row to row: to start one takes longer than most rows."""


def merge_links(
    bounds: Tensor, to: Tensor, weight: Tensor, starts: Tensor, total: Tensor, rows: int
) -> Graph:
    """The graph of so many rows; the links of each lie from one of the bounds to the next."""
    like: dict[str, Any] = {"dtype": torch.int32, "device": to.device}
    merged, heavy = torch.empty_like(to), torch.empty_like(weight)
    first, last, nearest = torch.empty((3, rows), **like)
    least = torch.empty(rows, dtype=torch.float32, device=to.device)
    degree = weight.new_empty(rows)
    _merge_links[(min(rows, _MOST_PROGRAMS),)](
        bounds,
        to,
        weight,
        merged,
        heavy,
        first,
        last,
        degree,
        nearest,
        least,
        starts,
        total,
        rows,
        to.shape[0],
        IMAGES=starts.shape[0] - 1,
        FEW=_FEW,
        MANY=_MANY,
        num_warps=1,
    )
    rest = first, last, degree, nearest, least
    return Graph(rows, total, starts, merged, None, None, heavy, *rest)


@kernel("rows", "entries")
def _merge_links(
    bounds,
    to,
    weight,
    merged,
    heavy,
    first,
    last,
    degree,
    nearest,
    least,
    starts,
    total,
    rows,
    entries,
    IMAGES: tl.constexpr,
    FEW: tl.constexpr,
    MANY: tl.constexpr,
):
    """One link for all links of a row with the same target, and the heaviest of them."""
    for row in range(tl.program_id(0), tl.minimum(tl.load(total), rows), tl.num_programs(0)):
        begin = tl.minimum(high(tl.load(bounds + row)), entries)
        end = tl.minimum(high(tl.load(bounds + row + 1)), entries)
        start = image_start(starts, row, IMAGES)
        if end - begin <= FEW:
            written, sums, best, choice = _merge_row(
                to, weight, merged, heavy, begin, end, row, start, FEW
            )
        else:
            written, sums, best, choice = _merge_row(
                to, weight, merged, heavy, begin, end, row, start, MANY
            )
        tl.store(nearest + row, choice)
        tl.store(least + row, 0.5 * best)
        tl.store(first + row, begin)
        tl.store(last + row, written)
        tl.store(degree + row, sums.to(degree.dtype.element_ty))


@triton.jit
def _merge_row(
    to,
    weight,
    merged,
    heavy,
    begin,
    end,
    row,
    start,
    BLOCK: tl.constexpr,
):
    """One row, by a warp: links stay in the order of the first to each target.

    Returns where they end, the sum of their weights, the largest, and where that one leads.
    """
    written = begin
    sums = tl.zeros((BLOCK,), tl.float64)
    best, rank = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.int32)
    choice = tl.full((BLOCK,), -1, tl.int32)
    for at in range(begin, end, BLOCK):
        here = at + tl.arange(0, BLOCK)
        target = tl.load(to + here, mask=here < end, other=-1)
        own = tl.load(weight + here, mask=here < end, other=0)
        earliest = tl.full((BLOCK,), -1, tl.int32)
        total = tl.zeros((BLOCK,), tl.float64)
        # Backwards, so that the first of them stays.
        for back in range(0, end - begin, _STEP):
            there = end - 1 - back
            for step in tl.static_range(_STEP):
                on = there - step >= begin
                j = tl.load(to + there - step, mask=on, other=-2)
                w = tl.load(weight + there - step, mask=on).to(tl.float64)
                total += tl.where(target == j, w, 0.0)
                earliest = tl.where(target == j, there - step, earliest)
        new = (earliest == here) & (target >= 0)
        to_write = written + tl.cumsum(new.to(tl.int32), 0) - 1
        w = total.to(heavy.dtype.element_ty)
        tl.store(merged + to_write, target, mask=new)
        tl.store(heavy + to_write, w, mask=new)
        written += tl.sum(new.to(tl.int32), 0)
        sums += tl.where(target >= 0, own, 0).to(tl.float64)
        best, rank, choice = better(row, target, start, w.to(tl.float32), new, best, rank, choice)
    # Of floats that are not negative, the bits are in the same order, and faster to compare.
    most = tl.max(best.to(tl.int32, bitcast=True), 0).to(tl.float32, bitcast=True)
    rank = tl.where((best == most) & (choice >= 0), rank, -2147483648)
    found = tl.max(tl.where(rank == tl.max(rank, 0), choice, -1), 0)
    return written, tl.sum(sums, 0), most, found
