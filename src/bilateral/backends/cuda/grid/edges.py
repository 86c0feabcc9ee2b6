"""Store the edges of the grid packed, so that kernels do not read absent neighbours.

Most vertices have fewer than half of the possible neighbours, and the kernels that read neighbours
are bound by memory.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.kernel import kernel

BLOCK = 256
"""Vertices per block. The neighbours of a block are consecutive, from a fixed place."""
_BLOCK: tl.constexpr = tl.constexpr(BLOCK)


class Edges(NamedTuple):
    """The next and the previous vertex along x, y and the features, where they exist.

    Direction 2 a leads to the next vertex along axis a, direction 2 a + 1 to the previous one.
    """

    words: Tensor
    """(room,) int32, per vertex: the place of its first neighbour in its block, times 2^D, plus one
    bit for each of the D directions that has a neighbour. 0 after the last vertex."""
    to: Tensor
    """(blocks, D, BLOCK) int32: the neighbours, vertex by vertex. The rest of a block is unused."""

    @property
    def room(self) -> int:
        """Number of vertices that there is memory for."""
        return self.words.shape[0]

    @property
    def directions(self) -> int:
        """D: twice the number of axes."""
        return self.to.shape[1]


def new_table(room: int, directions: int, device: torch.device) -> Tensor:
    """Allocate a table for `pack_edges` whose odd directions have no neighbours yet."""
    shape = triton.cdiv(room, BLOCK), directions, BLOCK
    out = torch.empty(shape, dtype=torch.int32, device=device)
    _clear[(shape[0],)](out, D=directions, num_warps=BLOCK // 32)
    return out


def pack_edges(table: Tensor, total: Tensor, room: int) -> Edges:
    """Pack a table (blocks, D, BLOCK) of neighbours, -1 for none, in place.

    `total` is the number of vertices, (1,); those beyond it have no edges.
    """
    words = torch.empty(room, dtype=torch.int32, device=table.device)
    _pack[(table.shape[0],)](table, words, total, room, D=table.shape[1], num_warps=BLOCK // 32)
    return Edges(words, table)


@triton.jit
def place_in_table(i, e, D: tl.constexpr):
    """Return the place of vertices i and direction e in a table that is not packed."""
    return (i // _BLOCK).to(tl.int64) * (_BLOCK * D) + (e * _BLOCK + i % _BLOCK)


@triton.jit
def read_neighbours(words, to, i, mask, D: tl.constexpr):
    """Return for each direction whether vertices i have a neighbour, and which.

    All neighbours are loaded before the caller uses one, so that loads overlap.
    """
    word = tl.load(words + i, mask=mask, other=0)
    at = to + (i // _BLOCK).to(tl.int64) * (_BLOCK * D) + (word >> D)
    neighbours = ()
    for e in tl.static_range(D):
        there = (word & (1 << e)) != 0
        neighbours += ((there, tl.load(at, mask=there)),)  # type: ignore[assignment]
        at = tl.where(there, at + 1, at)
    return neighbours


@kernel()
def _clear(to, D: tl.constexpr):
    """Store -1 in the odd directions."""
    i = tl.program_id(0) * _BLOCK + tl.arange(0, _BLOCK)
    for e in tl.static_range(1, D, 2):
        tl.store(to + place_in_table(i, e, D), i * 0 - 1)


@kernel()
def _pack(to, words, total, room, D: tl.constexpr):
    """Move the neighbours of a block to its front, and store the words."""
    i = tl.program_id(0) * _BLOCK + tl.arange(0, _BLOCK)
    mask = i < tl.minimum(tl.load(total), room)
    neighbours = ()
    bits, count = i * 0, i * 0
    for e in tl.static_range(D):
        j = tl.load(to + place_in_table(i, e, D), mask=mask, other=-1)
        neighbours += (j,)  # type: ignore[assignment]
        bits += (j >= 0).to(tl.int32) << e
        count += (j >= 0).to(tl.int32)
    first = tl.cumsum(count, 0) - count
    tl.store(words + i, tl.where(mask, (first << D) + bits, 0), mask=i < room)
    tl.debug_barrier()  # all of the table is read before it is overwritten
    at = to + (i // _BLOCK).to(tl.int64) * (_BLOCK * D) + first
    for e in tl.static_range(D):
        there = (bits & (1 << e)) != 0
        tl.store(at, neighbours[e], mask=there)
        at = tl.where(there, at + 1, at)
