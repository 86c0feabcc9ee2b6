"""Coarsen a graph: w_IJ of two aggregates is the sum of w_ij between members of I and of J.

Atomics sum only integers, and lists that they fill are sorted afterwards. Weights are summed in the
order of these lists, so that every run gives the same result.
"""

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.blocks import program_rows
from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.multigrid.aggregation import find_roots
from bilateral.backends.cuda.multigrid.coarse_links import merge_links
from bilateral.backends.cuda.multigrid.graph import (
    Graph,
    high_word,
    lane_rows,
    link_number,
    low_word,
    max_links,
    read_link,
    read_rows,
    sum_lanes,
    sum_lanes_before,
)
from bilateral.backends.cuda.prefix import prefix_sums

_BLOCK = 256


@dataclass(frozen=True)
class Transfer:
    """The aggregates that connect a graph with the next coarser one."""

    parent: Tensor
    """Aggregate of each row; -1 for a row without neighbours."""
    bounds: Tensor
    """Of each aggregate, int64: its first member, and in the upper 32 bits its first link. The last
    entry holds the numbers of members and links."""
    members: Tensor
    """Rows, sorted by aggregate, then by number."""


def coarsen(fine: Graph, room: tuple[int, int] | None) -> tuple[Graph, Transfer] | None:
    """Aggregate the rows of a graph, and return the graph of the aggregates.

    Parameters
    ----------
    fine : Graph
    room : tuple of int, optional
        Numbers of aggregates and links that there is memory for; more are left out. None: the host
        reads the actual numbers from the device.

    Returns
    -------
    tuple of Graph and Transfer, or None
        None if there is nothing to aggregate, which the function finds out only without `room`.
    """
    device = fine.to.device
    like: dict[str, Any] = {"dtype": torch.int32, "device": device}
    root, roots, zeros = find_roots(fine, 0 if room is None else room[0])
    total = roots[-1:]
    rows = int(total) if room is None else room[0]
    if room is None and rows == 0:
        return None
    parent, arrival, links_out = torch.empty((3, fine.room), **like)
    starts = torch.empty_like(fine.starts)
    counts = zeros[: rows + 1]
    constants = fine.constants()
    programs = (triton.cdiv(fine.room, constants["BLOCK"]),)
    _number_aggregates[programs](
        *fine.arguments,
        *(root, roots, parent, arrival, links_out, counts),
        *(fine.starts, starts, rows, starts.shape[0]),
        **constants,
    )
    bounds = prefix_sums(counts)
    entries = max(1, int(bounds[-1]) >> 32) if room is None else room[1]
    unsorted, members = torch.empty((2, fine.room), **like)
    _list_members[(triton.cdiv(fine.room, _BLOCK),)](
        parent, arrival, bounds, unsorted, fine.total, fine.room, BLOCK=_BLOCK
    )
    to = torch.empty(entries, **like)
    weight = torch.empty(entries, dtype=fine.degree.dtype, device=device)
    _list_links[programs](
        *fine.arguments,
        *(root, parent, links_out, bounds, unsorted, members),
        *(to, weight, entries),
        **constants,
    )
    graph = merge_links(bounds, to, weight, starts, total, rows)
    return graph, Transfer(parent, bounds, members)


@triton.jit
def _leaves_aggregate(root, root_i, j, w):
    """Whether links of weight w from rows of root root_i to rows j leave the aggregate."""
    root_j = tl.load(root + j, mask=(j >= 0) & (w > 0), other=-1)
    return (root_j >= 0) & (root_j != root_i)


@kernel()
def _number_aggregates(
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
    links_out,
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
    """Number aggregates in the order of their roots; count their members and the links that leave.

    `arrival` is the place of each row among the members of its aggregate, in any order.
    """
    i, lane, mask = lane_rows(total, room, BLOCK, LANES)
    graph = to, weight, n, factors, first, last
    root_i = tl.load(root + i, mask=mask, other=-1)
    number = tl.load(roots + root_i, mask=root_i >= 0, other=0) - 1
    number = tl.where(number < coarse_room, number, -1)
    tl.store(parent + i, number, mask=(i < room) & (lane == 0))
    links = read_rows(graph, i, mask & (number >= 0), D)
    leaving = tl.zeros((BLOCK * LANES,), tl.int32)
    for at in range(0, max_links(links, D), STEP * LANES):
        for step in tl.static_range(STEP):
            e = link_number(at, step, lane, LANES)
            j, w = read_link(graph, links, e, step)
            leaving += _leaves_aggregate(root, root_i, j, w).to(tl.int32)
    leaving = sum_lanes(leaving, LANES)
    tl.store(links_out + i, leaving, mask=mask & (lane == 0))
    # One atomic adds the links in the upper 32 bits, and one member in the lower.
    increment, counted = (leaving.to(tl.int64) << 32) + 1, (number >= 0) & (lane == 0)
    before = tl.atomic_add(counts + number + 1, increment, mask=counted)
    tl.store(arrival + i, low_word(before), mask=counted)
    if tl.program_id(0) == 0:
        for at in range(0, bounds_of_images, BLOCK):
            b = at + tl.arange(0, BLOCK)
            row = tl.load(starts + b, mask=b < bounds_of_images, other=0)
            row = tl.minimum(row, room)
            coarse_row = tl.load(roots + row - 1, mask=row > 0, other=0)
            coarse_row = tl.minimum(coarse_row, coarse_room)
            tl.store(coarse_starts + b, coarse_row, mask=b < bounds_of_images)


@kernel()
def _list_members(parent, arrival, bounds, unsorted, total, room, BLOCK: tl.constexpr):
    """List the members of each aggregate in the order of their arrival."""
    i, mask = program_rows(total, room, BLOCK)
    number = tl.load(parent + i, mask=mask, other=-1)
    is_member = number >= 0
    at = low_word(tl.load(bounds + number, mask=is_member, other=0))
    at += tl.load(arrival + i, mask=is_member, other=0)
    tl.store(unsorted + at, i, mask=is_member)


@kernel()
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
    links_out,
    bounds,
    unsorted,
    members,
    coarse_to,
    coarse_weight,
    entries,
    D: tl.constexpr,
    STEP: tl.constexpr,
    BLOCK: tl.constexpr,
    LANES: tl.constexpr,
):
    """Sort the members of each aggregate, and list the links that leave it, member by member."""
    i, lane, mask = lane_rows(total, room, BLOCK, LANES)
    graph = to, weight, n, factors, first, last
    number = tl.load(parent + i, mask=mask, other=-1)
    is_member = number >= 0
    bound = tl.load(bounds + number, mask=is_member, other=0)
    next_bound = tl.load(bounds + number + 1, mask=is_member, other=0)
    size = low_word(next_bound) - low_word(bound)
    # A row's place is the number of members with a smaller number; its links follow theirs.
    member, link = i * 0, i * 0
    for at in range(0, tl.max(size, 0), LANES):
        e = at + lane
        other = tl.load(unsorted + low_word(bound) + e, mask=e < size, other=2147483647)
        earlier = other < i
        member += earlier.to(tl.int32)
        link += tl.load(links_out + other, mask=earlier, other=0)
    member = low_word(bound) + sum_lanes(member, LANES)
    link = high_word(bound) + sum_lanes(link, LANES)
    tl.store(members + member, i, mask=is_member & (lane == 0))
    root_i = tl.load(root + i, mask=is_member, other=-1)
    links = read_rows(graph, i, is_member, D)
    for at in range(0, max_links(links, D), STEP * LANES):
        for step in tl.static_range(STEP):
            e = link_number(at, step, lane, LANES)
            j, w = read_link(graph, links, e, step)
            leaves = _leaves_aggregate(root, root_i, j, w)
            target = tl.load(parent + j, mask=leaves, other=-1)
            place = link + sum_lanes_before(leaves.to(tl.int32), LANES)
            fits = leaves & (place < entries)
            tl.store(coarse_to + place, target, mask=fits)
            tl.store(coarse_weight + place, w, mask=fits)
            link += sum_lanes(leaves.to(tl.int32), LANES)
