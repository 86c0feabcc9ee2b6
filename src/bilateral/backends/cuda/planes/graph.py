"""The graph of one level of planes, and how kernels read where the planes of its rows meet.

On the grid, the planes of neighbours meet midway between their centres. An aggregate has one plane
for all its members, so two aggregates meet where their members do: the mean of these points is
stored with each link, relative to the centres of both ends.
"""

from dataclasses import dataclass
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.grid.edges import read_neighbours
from bilateral.backends.cuda.multigrid.graph import Graph
from bilateral.backends.cuda.planes.blocks import evaluate, read_point

_THREADS = 64


@dataclass(frozen=True)
class PlaneGraph:
    """A level's graph with the geometry of its planes."""

    graph: Graph
    place: Tensor | None
    """The grid only: (rows, 3), n and the centre of each vertex."""
    meet: Tensor | None
    """Coarser levels only: (links, 4), where the planes meet, from the centres of both ends."""
    centre: Tensor
    """(rows, 2) float64: mean position of each row's pixels."""
    mass: Tensor
    """(rows,) float64: number of each row's pixels."""

    @property
    def arguments(self) -> tuple[Any, ...]:
        """First arguments of all kernels that take a graph of planes."""
        graph = self.graph
        links = graph.to, graph.weight, self.meet, self.place, graph.factors
        return *links, graph.first, graph.last, graph.room, graph.total

    def constants(self, channels: int = 1) -> dict[str, int]:
        """Compile-time constants of these kernels, as `Graph.constants`."""
        padded = triton.next_power_of_2(channels)
        if self.place is not None:
            constants = self.graph.grid_constants()
            return {**constants, "BLOCK": max(16, 128 // padded), "LANES": 1}
        return self.graph.constants(channels)


@triton.jit
def read_links(graph, i, mask, D: tl.constexpr):
    """Return the links of rows i for `read_meeting`: begin, number, n and centre.

    `graph` is (to, weight, meet, place, factors, first, last).
    """
    to, _, _, place, _, first, last = graph
    if place is None:
        begin = tl.load(first + i, mask=mask, other=0)
        count = tl.load(last + i, mask=mask, other=0) - begin
        n_i, x_i, y_i = count, count, count
    else:
        begin = read_neighbours(first, to, i, mask, D)
        count = D
        at = place + i.to(tl.int64) * 3
        n_i = tl.load(at, mask=mask, other=0)
        x_i = tl.load(at + 1, mask=mask, other=0)
        y_i = tl.load(at + 2, mask=mask, other=0)
    return begin, count, n_i, x_i, y_i


@triton.jit
def read_meeting(graph, links, e, step: tl.constexpr):
    """Return the neighbour at link e of each row, or -1, the link's weight, and where they meet.

    The last two results are the meeting point from the centre of the row and of the neighbour. The
    grid has one link per direction, which is `step`.
    """
    to, weight, meet, place, factors, _, _ = graph
    begin, count, n_i, x_i, y_i = links
    if place is None:
        exists = count > e
        j = tl.load(to + begin + e, mask=exists, other=-1)
        w = tl.load(weight + begin + e, mask=exists, other=0)
        at = meet + (begin + e).to(tl.int64) * 4
        near = tl.load(at, mask=exists, other=0), tl.load(at + 1, mask=exists, other=0)
        far = tl.load(at + 2, mask=exists, other=0), tl.load(at + 3, mask=exists, other=0)
    else:
        exists, j = begin[step]
        at = place + j.to(tl.int64) * 3
        w = n_i * tl.load(at, mask=exists, other=0) * tl.load(factors + (step >= 4))
        half_x = tl.where(exists, (tl.load(at + 1, mask=exists, other=0) - x_i) * 0.5, 0.0)
        half_y = tl.where(exists, (tl.load(at + 2, mask=exists, other=0) - y_i) * 0.5, 0.0)
        j = tl.where(exists, j, -1)
        near, far = (half_x, half_y), (-half_x, -half_y)
    return j, w, near, far


@triton.jit
def add_force(total, w, turn, near, value, along_x, along_y):
    """Add the forces of links: of differences of values at meeting points, and of slopes."""
    force = w[:, None] * value
    turned = (w * turn)[:, None]
    return (
        total[0] + force,
        total[1] + near[0][:, None] * force + turned * along_x,
        total[2] + near[1][:, None] * force + turned * along_y,
    )


@triton.jit
def lowered(lift, i, mask, plane):
    """Return planes of parents as planes of their members i; `lift` leads to the members."""
    return evaluate(plane, read_point(lift, i, mask)), plane[1], plane[2]


@triton.jit
def raised(lift, i, mask, residual):
    """Return residuals of members i as residuals of their parents: the transpose of `lowered`."""
    x, y = read_point(lift, i, mask)
    a = residual[0]
    return a, residual[1] + x[:, None] * a, residual[2] + y[:, None] * a
