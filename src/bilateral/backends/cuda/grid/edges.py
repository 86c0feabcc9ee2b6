"""The edges of the grid, packed: what is not there is not read.

Most vertices have fewer than half of the neighbours they could have, and kernels that read them are
bound by memory.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.kernel import kernel

BLOCK = 256
"""Vertices whose neighbours lie one after the other, from a place that is known beforehand."""
_BLOCK: tl.constexpr = tl.constexpr(BLOCK)


class Edges(NamedTuple):
    """The next and the previous vertex along x, y and the features, as far as there are any."""

    words: Tensor
    """Of each vertex: where its neighbours begin in those of its block, times 2^D, and a bit for
    each of the D directions that has one. 0 after the last vertex."""
    to: Tensor
    """(blocks, D, BLOCK): the neighbours, vertex by vertex; the rest of a block is not used."""

    @property
    def room(self) -> int:
        """For how many vertices there is."""
        return self.words.shape[0]

    @property
    def directions(self) -> int:
        """D, twice the number of axes."""
        return self.to.shape[1]


def new_table(room: int, directions: int, device: torch.device) -> Tensor:
    """Memory for `pack_edges`, with no neighbours in every second direction."""
    shape = triton.cdiv(room, BLOCK), directions, BLOCK
    out = torch.empty(shape, dtype=torch.int32, device=device)
    _clear[(shape[0],)](out, D=directions, num_warps=BLOCK // 32)
    return out


def pack_edges(table: Tensor, total: Tensor, room: int) -> Edges:
    """Of a table (blocks, D, BLOCK) with -1 for none, whose memory becomes that of the edges."""
    words = torch.empty(room, dtype=torch.int32, device=table.device)
    _pack[(table.shape[0],)](table, words, total, room, D=table.shape[1], num_warps=BLOCK // 32)
    return Edges(words, table)


@triton.jit
def place_in_table(i, e, D: tl.constexpr):
    """Of vertices i and direction e, before packing."""
    return (i // _BLOCK).to(tl.int64) * (_BLOCK * D) + (e * _BLOCK + i % _BLOCK)


@triton.jit
def read_neighbours(words, to, i, mask, D: tl.constexpr):
    """Of vertices i, in each direction: whether there is one, and which.

    All are loaded before anything is done with one, so that loads overlap.
    """
    word = tl.load(words + i, mask=mask, other=0)
    at = to + (i // _BLOCK).to(tl.int64) * (_BLOCK * D) + (word >> D)
    found = ()
    for e in tl.static_range(D):
        there = (word & (1 << e)) != 0
        found += ((there, tl.load(at, mask=there)),)  # type: ignore[assignment]
        at = tl.where(there, at + 1, at)
    return found


@kernel()
def _clear(to, D: tl.constexpr):
    i = tl.program_id(0) * _BLOCK + tl.arange(0, _BLOCK)
    for e in tl.static_range(1, D, 2):
        tl.store(to + place_in_table(i, e, D), i * 0 - 1)


@kernel("room")
def _pack(to, words, total, room, D: tl.constexpr):
    i = tl.program_id(0) * _BLOCK + tl.arange(0, _BLOCK)
    mask = i < tl.minimum(tl.load(total), room)
    found = ()
    bits, count = i * 0, i * 0
    for e in tl.static_range(D):
        j = tl.load(to + place_in_table(i, e, D), mask=mask, other=-1)
        found += (j,)  # type: ignore[assignment]
        bits += (j >= 0).to(tl.int32) << e
        count += (j >= 0).to(tl.int32)
    first = tl.cumsum(count, 0) - count
    tl.store(words + i, tl.where(mask, (first << D) + bits, 0), mask=i < room)
    tl.debug_barrier()  # the table is overwritten
    at = to + (i // _BLOCK).to(tl.int64) * (_BLOCK * D) + first
    for e in tl.static_range(D):
        there = (bits & (1 << e)) != 0
        tl.store(at, found[e], mask=there)
        at = tl.where(there, at + 1, at)
