"""Graphs of the multigrid hierarchy, and how kernels read them.

The links of a grid's vertex are those of `edges.py`, with weights made of n. Those of a coarser row
lie one after another, with gaps between rows.
"""

from dataclasses import dataclass
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.grid.edges import read_neighbours

_LANES = 8
"""Threads that share the links of a coarse row, in `Graph.shares`."""
_STEP = 2
"""Links that each of them reads at a time."""
_THREADS = 64
"""Of a block of coarse rows there."""


@dataclass(frozen=True)
class Graph:
    """A weighted graph: (L x)_i = sum_j w_ij (x_i - x_j)."""

    room: int
    """For how many rows there is."""
    total: Tensor
    """The number of rows, (1,), which only the device knows; it may exceed the room."""
    starts: Tensor
    """The first row of each image, and their number."""
    to: Tensor
    """Where each link leads."""
    n: Tensor | None
    """Of each of a grid's vertices."""
    factors: Tensor | None
    """Of a grid's edges: in space, and along the features."""
    weight: Tensor | None
    """Of each link of a coarser row."""
    first: Tensor
    """Link of each coarser row; of a grid, the words of its edges."""
    last: Tensor | None
    """After the links of each coarser row."""
    degree: Tensor
    """Sum of each row's weights."""
    nearest: Tensor
    """Neighbour of each row: the one with the largest weight, or -1."""
    least: Tensor
    """Weight of each row's strong edges, in float32."""

    @property
    def images(self) -> int:
        """How many there are."""
        return self.starts.shape[0] - 1

    @property
    def arguments(self) -> tuple[Any, ...]:
        """For kernels, in the order of `read_rows` and `read_link`."""
        return (self.to, self.weight, self.n, self.factors, self.first, self.last, self.room)

    def sizes(self, channels: int = 1) -> dict[str, int]:
        """Constants for kernels that take grids alone: all links of a row are read at once."""
        directions = self.to.shape[1]
        block = max(16, 256 // triton.next_power_of_2(channels))
        return {"D": directions, "STEP": directions, "BLOCK": block}

    def shares(self, channels: int = 1) -> dict[str, int]:
        """For kernels that take any graph. BLOCK is the number of rows of a program.

        Blocks of coarse rows are small, since each takes as long as its longest row. No thread has
        two of a grid's rows: they would be moved between threads at each link.
        """
        padded = triton.next_power_of_2(channels)
        if self.n is not None:
            return {**self.sizes(channels), "BLOCK": max(16, 128 // padded), "LANES": 1}
        rows = max(16, _THREADS // padded) // _LANES
        sizes = {"D": 0, "STEP": _STEP, "LANES": _LANES, "BLOCK": max(1, rows)}
        return {**sizes, "num_warps": _THREADS // 32}


@triton.jit
def read_rows(to, n, first, last, i, mask, D: tl.constexpr):
    """Of rows i: where their links begin, or of a grid all neighbours, their number, and n."""
    if n is None:
        begin = tl.load(first + i, mask=mask, other=0)
        count = tl.load(last + i, mask=mask, other=0) - begin
        own = count
    else:
        begin = read_neighbours(first, to, i, mask, D)
        count = D
        own = tl.load(n + i, mask=mask, other=0)
    return begin, count, own


@triton.jit
def most_links(count, D: tl.constexpr):
    """How many there are to be read, of all rows."""
    return tl.max(count, 0) if D == 0 else D


@triton.jit
def read_link(to, weight, n, factors, begin, count, own, e, step: tl.constexpr):
    """Where link number e of each row leads, or -1, and its weight; of a grid, e is the step."""
    if n is None:
        on = count > e
        j = tl.load(to + begin + e, mask=on, other=-1)
        w = tl.load(weight + begin + e, mask=on, other=0)
    else:
        there, j = begin[step]
        w = own * tl.load(n + j, mask=there, other=0) * tl.load(factors + (step >= 4))
        j = tl.where(there, j, -1)
    return j, w


@triton.jit
def share_rows(BLOCK: tl.constexpr, LANES: tl.constexpr):
    """A program's rows, each as often as it has lanes, and those lanes."""
    t = tl.program_id(0) * (BLOCK * LANES) + tl.arange(0, BLOCK * LANES)
    return t // LANES, t % LANES


@triton.jit
def link_number(at, step, lane, LANES: tl.constexpr):
    """Of the links from number `at` on that lanes read in turn."""
    return at + step if LANES == 1 else at + step * LANES + lane


@triton.jit
def add_lanes(values, LANES: tl.constexpr):
    """Of (BLOCK * LANES,) or (BLOCK * LANES, K): each row's sum, in all of its lanes.

    In pairs, so that it is the same for any K.
    """
    if LANES > 1:
        ROWS: tl.constexpr = values.shape[0] // LANES
        K: tl.constexpr = values.shape[1] if len(values.shape) > 1 else 1
        two = tl.sum(tl.reshape(values, (ROWS, LANES // 2, 2, K)), 2)
        four = tl.sum(tl.reshape(two, (ROWS, LANES // 4, 2, K)), 2)
        total = tl.sum(four, 1, keep_dims=True)
        values = tl.reshape(tl.broadcast_to(total, (ROWS, LANES, K)), values.shape)
    return values


@triton.jit
def add_lanes_before(values, LANES: tl.constexpr):
    """The sum over a row's lanes before each."""
    if LANES == 1:
        before = values * 0
    else:
        both: tl.constexpr = (values.shape[0] // LANES, LANES)
        before = tl.reshape(tl.cumsum(tl.reshape(values, both), 1), values.shape) - values
    return before


@triton.jit
def image_start(starts, i, IMAGES: tl.constexpr):
    """The first row of the image of rows i, by halving."""
    image = i * 0
    for step in tl.static_range(30):
        if (1 << (29 - step)) < IMAGES:
            probe = image + (1 << (29 - step))
            there = tl.load(starts + probe, mask=probe < IMAGES, other=2147483647)
            image = tl.where(there <= i, probe, image)
    return tl.load(starts + image)


@triton.jit
def mix(i, j, start):
    """A hash of the edge between rows i and j, by which ties go, and on which both ends agree.

    Rows count from the first of their image: what becomes of one does not depend on the others.
    """
    return ((i - start) ^ (j - start)) * -1640531535  # 0x9e3779b1


@triton.jit
def low(pair):
    """The lower half of 64 bits."""
    return pair.to(tl.int32)


@triton.jit
def high(pair):
    """The upper half of 64 bits."""
    return (pair >> 32).to(tl.int32)
