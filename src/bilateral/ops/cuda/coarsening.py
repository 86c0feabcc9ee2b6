"""The graph of aggregates: w_IJ is the sum of w_ij between members of I and of J.

Integers are summed by atomics, and lists are put in order afterwards; weights are summed in the
order of those lists.
"""

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.ops.cuda.kernel import kernel
from bilateral.ops.cuda.links import (
    Graph,
    high,
    image_start,
    low,
    mix,
    read_link,
    read_rows,
)
from bilateral.ops.cuda.matching import find_roots
from bilateral.ops.cuda.prefix import prefix_sums

_BLOCK = 256
_ROWS = 8
_LINKS = 16
"""Of each of so many coarse rows, compared with each other at a time."""


@dataclass(frozen=True)
class Transfer:
    """Between a graph and the next coarser one."""

    parent: Tensor
    """The aggregate of each row; -1 for a row without neighbours."""
    bounds: Tensor
    """Of each aggregate: its first member and, times 2^32, its first link; then their numbers."""
    members: Tensor
    """The rows, by aggregate."""


def coarsen(fine: Graph, room: tuple[int, int] | None) -> tuple[Graph, Transfer] | None:
    """Aggregates and their graph, in a room for so many rows and links; None: just enough.

    None if there is nothing to join, which only a host that reads numbers can find. If there is
    too little room, aggregates and links beyond it are left out.
    """
    device = fine.to.device
    like: dict[str, Any] = {"dtype": torch.int32, "device": device}
    root, roots = find_roots(fine)
    total = roots[-1:]
    rows = int(total) if room is None else room[0]
    if room is None and rows == 0:
        return None
    parent, arrival, links = torch.empty((3, fine.room), **like)
    starts = torch.empty_like(fine.starts)
    counts = torch.zeros(rows + 1, dtype=torch.int64, device=device)
    sizes = fine.sizes()
    grid = (triton.cdiv(fine.room, sizes["BLOCK"]),)
    _number[grid](
        *fine.arguments,
        fine.total,
        root,
        roots,
        parent,
        arrival,
        links,
        counts,
        fine.starts,
        starts,
        rows,
        starts.shape[0],
        **sizes,
    )
    bounds = prefix_sums(counts)
    entries = max(1, int(bounds[-1]) >> 32) if room is None else room[1]
    listed, members = torch.empty((2, fine.room), **like)
    _list_members[(triton.cdiv(fine.room, _BLOCK),)](
        parent, arrival, bounds, listed, fine.total, fine.room, BLOCK=_BLOCK
    )
    to, merged = torch.empty((2, entries), **like)
    weight, heavy = torch.empty((2, entries), dtype=fine.degree.dtype, device=device)
    _list_links[grid](
        *fine.arguments,
        fine.total,
        root,
        parent,
        links,
        bounds,
        listed,
        members,
        to,
        weight,
        entries,
        **sizes,
    )
    first, last, nearest = torch.empty((3, rows), **like)
    least = torch.empty(rows, dtype=torch.float32, device=device)
    degree = torch.empty(rows, dtype=weight.dtype, device=device)
    _merge_links[(triton.cdiv(rows, _ROWS),)](
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
        rows,
        entries,
        IMAGES=fine.images,
        ROWS=_ROWS,
        LINKS=_LINKS,
        num_warps=2,
    )
    graph = Graph(
        rows, total, starts, merged, None, None, heavy, first, last, degree, nearest, least
    )
    return graph, Transfer(parent, bounds, members)


@kernel
def _number(
    to,
    weight,
    n,
    factors,
    first,
    last,
    room,
    total,
    root,
    roots,
    parent,
    arrival,
    links,
    counts,
    starts,
    coarse_starts,
    coarse_room,
    bounds_of_images,
    D: tl.constexpr,
    STEP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Aggregates in the order of their roots; each one's members and the links that leave it."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < tl.minimum(tl.load(total), room)
    mine = tl.load(root + i, mask=mask, other=-1)
    number = tl.load(roots + mine, mask=mine >= 0, other=0) - 1
    number = tl.where(number < coarse_room, number, -1)
    tl.store(parent + i, number, mask=i < room)
    begin, count, own = read_rows(n, first, last, i, mask & (number >= 0), D)
    leave = tl.zeros((BLOCK,), tl.int32)
    for at in range(0, tl.max(count, 0), STEP):
        for step in tl.static_range(STEP):
            j, w = read_link(to, weight, n, factors, room, begin, count, own, at + step)
            other = tl.load(root + j, mask=(j >= 0) & (w > 0), other=-1)
            leave += ((other >= 0) & (other != mine)).to(tl.int32)
    tl.store(links + i, leave, mask=mask)
    both = (leave.to(tl.int64) << 32) + 1
    before = tl.atomic_add(counts + number + 1, both, mask=number >= 0)
    tl.store(arrival + i, low(before), mask=number >= 0)
    if tl.program_id(0) == 0:
        for at in range(0, bounds_of_images, BLOCK):
            b = at + tl.arange(0, BLOCK)
            row = tl.load(starts + b, mask=b < bounds_of_images, other=0)
            row = tl.minimum(row, room)
            coarse = tl.load(roots + row - 1, mask=row > 0, other=0)
            coarse = tl.minimum(coarse, coarse_room)
            tl.store(coarse_starts + b, coarse, mask=b < bounds_of_images)


@kernel
def _list_members(parent, arrival, bounds, listed, total, room, BLOCK: tl.constexpr):
    """In any order."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < tl.minimum(tl.load(total), room)
    number = tl.load(parent + i, mask=mask, other=-1)
    on = number >= 0
    at = low(tl.load(bounds + number, mask=on, other=0))
    tl.store(listed + at + tl.load(arrival + i, mask=on, other=0), i, mask=on)


@kernel
def _list_links(
    to,
    weight,
    n,
    factors,
    first,
    last,
    room,
    total,
    root,
    parent,
    links,
    bounds,
    listed,
    members,
    coarse_to,
    coarse_weight,
    entries,
    D: tl.constexpr,
    STEP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Members in order, and the links that leave each aggregate, member by member."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < tl.minimum(tl.load(total), room)
    number = tl.load(parent + i, mask=mask, other=-1)
    on = number >= 0
    bound = tl.load(bounds + number, mask=on, other=0)
    size = low(tl.load(bounds + number + 1, mask=on, other=0)) - low(bound)
    member, link = low(bound), high(bound)
    for at in range(0, tl.max(size, 0)):
        other = tl.load(listed + low(bound) + at, mask=at < size, other=2147483647)
        earlier = other < i
        member += earlier.to(tl.int32)
        link += tl.load(links + other, mask=earlier, other=0)
    tl.store(members + member, i, mask=on)
    mine = tl.load(root + i, mask=on, other=-1)
    begin, count, own = read_rows(n, first, last, i, on, D)
    for at in range(0, tl.max(count, 0), STEP):
        for step in tl.static_range(STEP):
            j, w = read_link(to, weight, n, factors, room, begin, count, own, at + step)
            other = tl.load(root + j, mask=(j >= 0) & (w > 0), other=-1)
            leaves = (other >= 0) & (other != mine)
            target = tl.load(parent + j, mask=leaves, other=-1)
            fits = leaves & (link < entries)
            tl.store(coarse_to + link, target, mask=fits)
            tl.store(coarse_weight + link, w, mask=fits)
            link += leaves.to(tl.int32)


@kernel
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
    rows,
    entries,
    IMAGES: tl.constexpr,
    ROWS: tl.constexpr,
    LINKS: tl.constexpr,
):
    """One link for all links of a row with the same target, in the order of the first of them.

    And the heaviest of them.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    begin = high(tl.load(bounds + row, mask=row < rows, other=0))
    end = high(tl.load(bounds + row + 1, mask=row < rows, other=0))
    begin, end = tl.minimum(begin, entries), tl.minimum(end, entries)
    e = tl.arange(0, LINKS)
    longest = tl.max(end - begin, 0)
    written = begin
    sums = tl.zeros((ROWS,), tl.float64)
    start = image_start(starts, row, IMAGES)
    best, rank = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.int32)
    choice = tl.full((ROWS,), -1, tl.int32)
    for at in range(0, longest, LINKS):
        here = begin[:, None] + at + e[None, :]
        target = tl.load(to + here, mask=here < end[:, None], other=-1)
        earlier = tl.zeros((ROWS, LINKS), tl.int32)
        total = tl.zeros((ROWS, LINKS), tl.float64)
        for other in range(0, longest, LINKS):
            there = begin[:, None] + other + e[None, :]
            inside = there < end[:, None]
            w = tl.load(weight + there, mask=inside, other=0).to(tl.float64)
            same = target[:, :, None] == tl.load(to + there, mask=inside, other=-1)[:, None, :]
            total += tl.sum(tl.where(same, w[:, None, :], 0.0), 2)
            same = same & (there[:, None, :] < here[:, :, None])
            earlier += tl.sum(same.to(tl.int32), 2)
        new = ((target >= 0) & (earlier == 0)).to(tl.int32)
        to_write = written[:, None] + tl.cumsum(new, 1) - 1
        tl.store(merged + to_write, target, mask=new > 0)
        tl.store(heavy + to_write, total.to(heavy.dtype.element_ty), mask=new > 0)
        written += tl.sum(new, 1)
        total = tl.where(new > 0, total, 0.0)
        sums += tl.sum(total, 1)
        w32 = total.to(heavy.dtype.element_ty).to(tl.float32)
        most = tl.max(w32, 1)
        mixed = mix(row[:, None], target, start[:, None])
        mixed = tl.where((w32 == most[:, None]) & (new > 0), mixed, -2147483647)
        highest = tl.max(mixed, 1)
        found = tl.max(tl.where(mixed == highest[:, None], target, -1), 1)
        better = (most > best) | ((most == best) & (highest > rank))
        better = better & (most > 0)
        best = tl.where(better, most, best)
        rank = tl.where(better, highest, rank)
        choice = tl.where(better, found, choice)
    tl.store(nearest + row, choice, mask=row < rows)
    tl.store(least + row, 0.5 * best, mask=row < rows)
    tl.store(first + row, begin, mask=row < rows)
    tl.store(last + row, written, mask=row < rows)
    tl.store(degree + row, sums.to(degree.dtype.element_ty), mask=row < rows)
