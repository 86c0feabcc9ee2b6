"""Finding what belongs together: pixels of one vertex, vertices of one coarser vertex.

Items are sorted by tile, and a tile's items with equal keys form a group. Each tile compares all
pairs of its items, which are few, by itself.
"""

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 64


@dataclass(frozen=True)
class Groups:
    """A partition of items into groups, which are sorted by tile, then by their first item.

    There may be room for more groups than there are: what comes after the last is of no meaning.
    """

    total: Tensor
    """The number of groups, (1,), which only the device knows."""
    first: Tensor
    """The first group of each tile, and their number, as far as there is room."""
    keys: Tensor
    """Of each group."""
    tile: Tensor
    """Of each group."""
    parent: Tensor
    """The group of each item; 0 after the last item."""
    first_member: Tensor
    """Of each group, and the number of items."""
    members: Tensor
    """The items, sorted by group."""

    @property
    def room(self) -> int:
        """For how many groups there is."""
        return self.keys.shape[0]


def group(
    keys: Tensor, first_item: Tensor, room: int | None, slots: Tensor | None = None
) -> Groups:
    """Group items (N,) int64 by key within tiles, whose first items are given, then their number.

    With `slots`, an item is known by its slot instead. Without `room` their number is read from
    the device, and there is just as much. If there is too little, groups beyond it are merged.
    """
    items, tiles = keys.shape[0], first_item.shape[0] - 1
    like: dict[str, Any] = {"dtype": torch.int32, "device": keys.device}
    leader, before = torch.empty(items, **like), torch.empty(items, **like)
    counts = torch.empty(tiles, **like)
    _find_leaders[(tiles,)](keys, first_item, leader, before, counts, BLOCK=_BLOCK, num_warps=1)
    first = _sums(counts)
    size = int(first[-1]) if room is None else room
    group_keys = torch.empty(size, dtype=keys.dtype, device=keys.device)
    tile, sizes = torch.empty(size, **like), torch.zeros(size, **like)
    own, parent = torch.empty(items, **like), torch.zeros(items, **like)
    _number_leaders[(tiles,)](
        keys, first_item, first, leader, own, group_keys, tile, size, BLOCK=_BLOCK
    )
    grid, count = (triton.cdiv(items, 1024),), first_item[-1:]
    _follow_leaders[grid](leader, own, before, parent, sizes, count, size, slots, BLOCK=1024)
    first_member = _sums(sizes)
    members = torch.empty(items, **like)
    _list_members[grid](parent, before, first_member, members, count, slots, BLOCK=1024)
    total, first = first[-1:].clone(), first.clamp(max=size)
    return Groups(total, first, group_keys, tile, parent, first_member, members)


def _sums(counts: Tensor) -> Tensor:
    """0, then the cumulative sums."""
    out = torch.zeros(counts.shape[0] + 1, dtype=torch.int32, device=counts.device)
    torch.cumsum(counts, 0, dtype=torch.int32, out=out[1:])
    return out


@triton.jit
def _find_leaders(keys, first_item, leader, before, counts, BLOCK: tl.constexpr):
    """For each item: the first one of its tile with its key, and how many come before it."""
    tile = tl.program_id(0)
    begin, end = tl.load(first_item + tile), tl.load(first_item + tile + 1)
    total = tl.zeros((), tl.int32)
    for at in range(begin, end, BLOCK):
        i = at + tl.arange(0, BLOCK)
        key = tl.load(keys + i, mask=i < end, other=0)
        lead, count = i, tl.zeros((BLOCK,), tl.int32)
        for other in range(begin, at + 1, BLOCK):
            j = other + tl.arange(0, BLOCK)
            key_j = tl.load(keys + j, mask=j < end, other=0)
            same = (key[:, None] == key_j[None, :]) & (j[None, :] < i[:, None])
            count += tl.sum(same.to(tl.int32), 1)
            lead = tl.minimum(lead, tl.min(tl.where(same, j[None, :], i[:, None]), 1))
        tl.store(leader + i, lead, mask=i < end)
        tl.store(before + i, count, mask=i < end)
        total += tl.sum(((count == 0) & (i < end)).to(tl.int32), 0)
    tl.store(counts + tile, total)


@triton.jit
def _number_leaders(
    keys, first_item, first, leader, own, group_keys, tiles, room, BLOCK: tl.constexpr
):
    """Give the items that lead the numbers of their groups."""
    tile = tl.program_id(0)
    begin, end = tl.load(first_item + tile), tl.load(first_item + tile + 1)
    number = tl.load(first + tile)
    for at in range(begin, end, BLOCK):
        i = at + tl.arange(0, BLOCK)
        leads = (tl.load(leader + i, mask=i < end, other=-1) == i).to(tl.int32)
        mine = number + tl.cumsum(leads, 0) - 1
        tl.store(own + i, mine, mask=leads != 0)
        new = (leads != 0) & (mine < room)
        tl.store(group_keys + mine, tl.load(keys + i, mask=i < end, other=0), mask=new)
        tl.store(tiles + mine, tile, mask=new)
        number += tl.sum(leads, 0)


@triton.jit
def _follow_leaders(leader, own, before, parent, sizes, count, room, slots, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < tl.load(count)
    mine = tl.load(own + tl.load(leader + i, mask=mask, other=0), mask=mask, other=0)
    mine = tl.minimum(mine, room - 1)
    known_by = i
    if slots is not None:
        known_by = tl.load(slots + i, mask=mask, other=0)
    tl.store(parent + known_by, mine, mask=mask)
    tl.atomic_max(sizes + mine, tl.load(before + i, mask=mask, other=0) + 1, mask=mask)


@triton.jit
def _list_members(parent, before, first_member, members, count, slots, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < tl.load(count)
    known_by = i
    if slots is not None:
        known_by = tl.load(slots + i, mask=mask, other=0)
    mine = tl.load(parent + known_by, mask=mask, other=0)
    at = tl.load(first_member + mine, mask=mask, other=0) + tl.load(before + i, mask=mask, other=0)
    tl.store(members + at, known_by, mask=mask)
