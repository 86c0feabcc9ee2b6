"""The edges of the grid: a vertex's neighbours in its own tile and in those beside it."""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.ops.cuda.grouping import Groups


def find_neighbours(vertices: Groups, right: Tensor, below: Tensor, units: Sequence[int]) -> Tensor:
    """(2 d, vertices): the next and the previous one along x, y and the features; -1 for none.

    `right` and `below` are the tiles beside each, `units` what one cell is in a key.
    """
    room = vertices.room
    out = torch.full((2 * (2 + len(units)), room), -1, dtype=torch.int32, device=right.device)
    block = 256
    grid = (triton.cdiv(room, block),)
    arguments = vertices.keys, vertices.first, vertices.tile, vertices.total, out
    _beside[grid](*arguments, right, 0, room, BLOCK=block)
    _beside[grid](*arguments, below, 1, room, BLOCK=block)
    for k, unit in enumerate(units):
        _inside[grid](*arguments, unit, 2 + k, room, BLOCK=block)
    return out


@triton.jit
def _search(keys, begin, end, key, on):
    """Where a key is among those of a tile, or -1."""
    found = tl.full(key.shape, -1, tl.int32)
    longest = tl.max(tl.where(on, end - begin, 0), 0)
    for i in range(0, longest):
        at = begin + i
        same = tl.load(keys + at, mask=on & (at < end), other=-1) == key
        found = tl.where(same, at, found)
    return found


@triton.jit
def _join(out, axis, room, v, found):
    there = found >= 0
    tl.store(out + (2 * axis) * room.to(tl.int64) + v, found, mask=there)
    tl.store(out + (2 * axis + 1) * room.to(tl.int64) + found, v, mask=there)


@triton.jit
def _beside(keys, first, tile, total, out, other, axis, room, BLOCK: tl.constexpr):
    v = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = v < tl.minimum(tl.load(total), room)
    beside = tl.load(other + tl.load(tile + v, mask=mask, other=0), mask=mask, other=-1)
    on = beside >= 0
    begin = tl.load(first + beside, mask=on, other=0)
    end = tl.load(first + beside + 1, mask=on, other=0)
    key = tl.load(keys + v, mask=mask, other=0)
    _join(out, axis, room, v, _search(keys, begin, end, key, on))


@triton.jit
def _inside(keys, first, tile, total, out, unit, axis, room, BLOCK: tl.constexpr):
    v = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = v < tl.minimum(tl.load(total), room)
    own = tl.load(tile + v, mask=mask, other=0)
    begin = tl.load(first + own, mask=mask, other=0)
    end = tl.load(first + own + 1, mask=mask, other=0)
    key = tl.load(keys + v, mask=mask, other=0) + unit
    _join(out, axis, room, v, _search(keys, begin, end, key, mask))
