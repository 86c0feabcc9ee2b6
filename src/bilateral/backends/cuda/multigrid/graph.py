"""Store the weighted graph of one multigrid level, and read its links in kernels.

A link is an edge as seen from one of its two rows. The grid is level 0: its links are the edges of
`grid/edges.py`, and their weights are computed from n. The links of a row of a coarser level are
consecutive in memory, with gaps between rows.
"""

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.grid.edges import Edges, read_neighbours

_LANES = 8
"""Threads that share the links of a coarse row."""
_LINKS_AT_ONCE = 2
"""Links that each of these threads reads at a time."""
_THREADS = 64
"""Threads of a program that works on coarse rows."""


@dataclass(frozen=True)
class Graph:
    """A weighted graph. Its Laplacian is (L x)_i = sum_j w_ij (x_i - x_j)."""

    room: int
    """Number of rows that there is memory for."""
    total: Tensor
    """(1,) int32: number of rows, which only the device knows. It may exceed the room."""
    starts: Tensor
    """(images + 1,) int32: first row of each image, then the number of rows."""
    to: Tensor
    """Row that each link leads to."""
    n: Tensor | None
    """The grid only: n of each vertex."""
    factors: Tensor | None
    """The grid only: blur weights of edges in space and of edges along the features."""
    weight: Tensor | None
    """Coarser levels only: weight of each link."""
    first: Tensor
    """First link of each row; for the grid, the words of its edges."""
    last: Tensor | None
    """Coarser levels only: end of each row's links."""
    degree: Tensor
    """Sum of the weights of each row."""
    nearest: Tensor
    """Nearest neighbour of each row, which has the heaviest link; -1 without neighbours."""
    least: Tensor
    """Least weight of each row's strong edges, in float32."""

    @property
    def images(self) -> int:
        """Number of images."""
        return self.starts.shape[0] - 1

    @property
    def arguments(self) -> tuple[Any, ...]:
        """First arguments of all kernels that take a graph."""
        return (
            self.to,
            self.weight,
            self.n,
            self.factors,
            self.first,
            self.last,
            self.room,
            self.total,
        )

    def grid_constants(self, channels: int = 1) -> dict[str, int]:
        """Compile-time constants of kernels for the grid, which read all links of a row at once."""
        directions = self.to.shape[1]
        block = max(16, 256 // triton.next_power_of_2(channels))
        return {"D": directions, "STEP": directions, "BLOCK": block}

    def constants(self, channels: int = 1) -> dict[str, int]:
        """Compile-time constants of kernels for any graph; BLOCK is the number of rows per program.

        A program takes as long as its longest row, so that programs have few coarse rows. No thread
        has two rows of the grid: each link would move data between threads.
        """
        padded = triton.next_power_of_2(channels)
        if self.n is not None:
            constants = self.grid_constants(channels)
            return {**constants, "BLOCK": max(16, 128 // padded), "LANES": 1}
        rows = max(1, max(16, _THREADS // padded) // _LANES)
        constants = {"D": 0, "STEP": _LINKS_AT_ONCE, "LANES": _LANES, "BLOCK": rows}
        return {**constants, "num_warps": _THREADS // 32}


def grid_graph(
    edges: Edges, n: Tensor, blur: tuple[float, float, float], first_vertex: Tensor
) -> Graph:
    """Return the grid as a graph, whose degree, nearest and least are still to be written.

    The parameters are those of `Hierarchy`.
    """
    return Graph(
        room=edges.room,
        total=first_vertex[-1:],
        starts=first_vertex,
        to=edges.to,
        n=n,
        factors=constant(tuple(blur[1:]), n.dtype, n.device),
        weight=None,
        first=edges.words,
        last=None,
        degree=torch.empty_like(n),
        nearest=torch.empty(edges.room, dtype=torch.int32, device=n.device),
        least=torch.empty(edges.room, dtype=torch.float32, device=n.device),
    )


@triton.jit
def read_rows(graph, i, mask, D: tl.constexpr):
    """Return the links of rows i for `read_link`: where they begin, their number, and n.

    `graph` is (to, weight, n, factors, first, last). The grid's rows have D links, and all of their
    neighbours are loaded here.
    """
    to, _, n, _, first, last = graph
    if n is None:
        begin = tl.load(first + i, mask=mask, other=0)
        count = tl.load(last + i, mask=mask, other=0) - begin
        n_i = count
    else:
        begin = read_neighbours(first, to, i, mask, D)
        count = D
        n_i = tl.load(n + i, mask=mask, other=0)
    return begin, count, n_i


@triton.jit
def max_links(links, D: tl.constexpr):
    """Return the largest number of links of all rows that `read_rows` has read."""
    return tl.max(links[1], 0) if D == 0 else D


@triton.jit
def read_link(graph, links, e, step: tl.constexpr):
    """Return the neighbour at link e of each row, or -1, and the link's weight.

    The grid has one link per direction, which is `step`.
    """
    to, weight, n, factors, _, _ = graph
    begin, count, n_i = links
    if n is None:
        exists = count > e
        j = tl.load(to + begin + e, mask=exists, other=-1)
        w = tl.load(weight + begin + e, mask=exists, other=0)
    else:
        exists, j = begin[step]
        w = n_i * tl.load(n + j, mask=exists, other=0) * tl.load(factors + (step >= 4))
        j = tl.where(exists, j, -1)
    return j, w


@triton.jit
def lane_rows(total, room, BLOCK: tl.constexpr, LANES: tl.constexpr):
    """Return the rows of this program, each LANES times, their lanes, and which rows exist."""
    t = tl.program_id(0) * (BLOCK * LANES) + tl.arange(0, BLOCK * LANES)
    i = t // LANES
    return i, t % LANES, i < tl.minimum(tl.load(total), room)


@triton.jit
def link_number(at, step, lane, LANES: tl.constexpr):
    """Return the link that each lane reads at a step, where lanes share the links from `at` on."""
    return at + step if LANES == 1 else at + step * LANES + lane


@triton.jit
def sum_lanes(values, LANES: tl.constexpr):
    """Return the sum of each row's lanes in all of these lanes.

    `values` is (BLOCK * LANES,) or (BLOCK * LANES, K). Sums are by pairs, so that rounding does not
    depend on K.
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
def sum_lanes_before(values, LANES: tl.constexpr):
    """Return, for each lane, the sum over the lanes before it in the same row."""
    if LANES == 1:
        before = values * 0
    else:
        shape: tl.constexpr = (values.shape[0] // LANES, LANES)
        before = tl.reshape(tl.cumsum(tl.reshape(values, shape), 1), values.shape) - values
    return before


@triton.jit
def image_start(starts, i, images):
    """Return the first row of the image that rows i belong to, by binary search."""
    image = i * 0
    step = images
    while step > 1:
        step = (step + 1) // 2
        probe = image + step
        start = tl.load(starts + probe, mask=probe < images, other=2147483647)
        image = tl.where(start <= i, probe, image)
    return tl.load(starts + image)


@triton.jit
def edge_hash(i, j, start):
    """Return a hash of the edge between rows i and j, the same from both ends, to break ties.

    Rows count from the first row of their image, so that images do not depend on each other.
    """
    return ((i - start) ^ (j - start)) * -1640531535  # 0x9e3779b1


@triton.jit
def low_word(pair):
    """Return the lower 32 of 64 bits."""
    return pair.to(tl.int32)


@triton.jit
def high_word(pair):
    """Return the upper 32 of 64 bits."""
    return (pair >> 32).to(tl.int32)
