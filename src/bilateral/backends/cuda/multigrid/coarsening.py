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

from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.multigrid.coarse_links import merge_links
from bilateral.backends.cuda.multigrid.graph import (
    Graph,
    add_lanes,
    add_lanes_before,
    high,
    link_number,
    low,
    most_links,
    read_link,
    read_rows,
    share_rows,
)
from bilateral.backends.cuda.multigrid.matching import find_roots
from bilateral.backends.cuda.prefix import prefix_sums

_BLOCK = 256


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
    root, roots, zeros = find_roots(fine, 0 if room is None else room[0])
    total = roots[-1:]
    rows = int(total) if room is None else room[0]
    if room is None and rows == 0:
        return None
    parent, arrival, links = torch.empty((3, fine.room), **like)
    starts = torch.empty_like(fine.starts)
    counts = zeros[: rows + 1]
    sizes = fine.shares()
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
    to = torch.empty(entries, **like)
    weight = torch.empty(entries, dtype=fine.degree.dtype, device=device)
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
    graph = merge_links(bounds, to, weight, starts, total, rows)
    return graph, Transfer(parent, bounds, members)


@kernel("room", "coarse_room", "bounds_of_images")
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
    LANES: tl.constexpr,
):
    """Aggregates in the order of their roots; each one's members and the links that leave it."""
    i, lane = share_rows(BLOCK, LANES)
    mask = i < tl.minimum(tl.load(total), room)
    mine = tl.load(root + i, mask=mask, other=-1)
    number = tl.load(roots + mine, mask=mine >= 0, other=0) - 1
    number = tl.where(number < coarse_room, number, -1)
    tl.store(parent + i, number, mask=(i < room) & (lane == 0))
    begin, count, own = read_rows(to, n, first, last, i, mask & (number >= 0), D)
    leave = tl.zeros((BLOCK * LANES,), tl.int32)
    for at in range(0, most_links(count, D), STEP * LANES):
        for step in tl.static_range(STEP):
            e = link_number(at, step, lane, LANES)
            j, w = read_link(to, weight, n, factors, begin, count, own, e, step)
            other = tl.load(root + j, mask=(j >= 0) & (w > 0), other=-1)
            leave += ((other >= 0) & (other != mine)).to(tl.int32)
    leave = add_lanes(leave, LANES)
    tl.store(links + i, leave, mask=mask & (lane == 0))
    both, on = (leave.to(tl.int64) << 32) + 1, (number >= 0) & (lane == 0)
    before = tl.atomic_add(counts + number + 1, both, mask=on)
    tl.store(arrival + i, low(before), mask=on)
    if tl.program_id(0) == 0:
        for at in range(0, bounds_of_images, BLOCK):
            b = at + tl.arange(0, BLOCK)
            row = tl.load(starts + b, mask=b < bounds_of_images, other=0)
            row = tl.minimum(row, room)
            coarse = tl.load(roots + row - 1, mask=row > 0, other=0)
            coarse = tl.minimum(coarse, coarse_room)
            tl.store(coarse_starts + b, coarse, mask=b < bounds_of_images)


@kernel("room")
def _list_members(parent, arrival, bounds, listed, total, room, BLOCK: tl.constexpr):
    """In any order."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < tl.minimum(tl.load(total), room)
    number = tl.load(parent + i, mask=mask, other=-1)
    on = number >= 0
    at = low(tl.load(bounds + number, mask=on, other=0))
    tl.store(listed + at + tl.load(arrival + i, mask=on, other=0), i, mask=on)


@kernel("room", "entries")
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
    LANES: tl.constexpr,
):
    """Members in order, and the links that leave each aggregate, member by member."""
    i, lane = share_rows(BLOCK, LANES)
    mask = i < tl.minimum(tl.load(total), room)
    number = tl.load(parent + i, mask=mask, other=-1)
    on = number >= 0
    bound = tl.load(bounds + number, mask=on, other=0)
    size = low(tl.load(bounds + number + 1, mask=on, other=0)) - low(bound)
    member, link = i * 0, i * 0
    for at in range(0, tl.max(size, 0), LANES):
        e = at + lane
        other = tl.load(listed + low(bound) + e, mask=e < size, other=2147483647)
        earlier = other < i
        member += earlier.to(tl.int32)
        link += tl.load(links + other, mask=earlier, other=0)
    member = low(bound) + add_lanes(member, LANES)
    link = high(bound) + add_lanes(link, LANES)
    tl.store(members + member, i, mask=on & (lane == 0))
    mine = tl.load(root + i, mask=on, other=-1)
    begin, count, own = read_rows(to, n, first, last, i, on, D)
    for at in range(0, most_links(count, D), STEP * LANES):
        for step in tl.static_range(STEP):
            e = link_number(at, step, lane, LANES)
            j, w = read_link(to, weight, n, factors, begin, count, own, e, step)
            other = tl.load(root + j, mask=(j >= 0) & (w > 0), other=-1)
            leaves = (other >= 0) & (other != mine)
            target = tl.load(parent + j, mask=leaves, other=-1)
            here = link + add_lanes_before(leaves.to(tl.int32), LANES)
            fits = leaves & (here < entries)
            tl.store(coarse_to + here, target, mask=fits)
            tl.store(coarse_weight + here, w, mask=fits)
            link += add_lanes(leaves.to(tl.int32), LANES)
