"""The multigrid hierarchy of a batch of grids: graphs from the grid to one without edges.

It depends neither on the smoothness nor on the confidence, which only enter the diagonals.
"""

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.grid.edges import Edges
from bilateral.backends.cuda.multigrid.coarsening import Transfer, coarsen
from bilateral.backends.cuda.multigrid.graph import Graph
from bilateral.backends.cuda.multigrid.matching import find_nearest
from bilateral.backends.cuda.multigrid.small_levels import Tail

_ALONE = 1024
"""Levels that have no more rows per image are left to one program for each."""

Rooms = Sequence[tuple[int, int]]


class Hierarchy:
    """Graphs, the grid's first, and the ways between them.

    With `rooms`, for rows and links of each coarse level, nothing is read from the device.
    """

    def __init__(
        self,
        edges: Edges,
        n: Tensor,
        blur: tuple[float, float, float],
        first_vertex: Tensor,
        rooms: Rooms | None = None,
        alone: int | None = None,
    ) -> None:
        factors = constant(tuple(blur[1:]), n.dtype, n.device)
        room, total = edges.room, first_vertex[-1:]
        nearest = torch.empty(room, dtype=torch.int32, device=n.device)
        least = torch.empty(room, dtype=torch.float32, device=n.device)
        grid = Graph(
            room,
            total,
            first_vertex,
            edges.to,
            n,
            factors,
            None,
            edges.words,
            None,
            torch.empty_like(n),
            nearest,
            least,
        )
        find_nearest(grid)
        self.graphs: list[Graph] = [grid]
        self.transfers: list[Transfer] = []
        self._exact = rooms is None
        if rooms is None:
            while self._add(None) and self.rooms[-1][1] > 1:
                pass
        else:
            for size in rooms:
                self._add(size)
        self.alone = min(self._first_alone() if alone is None else max(1, alone), self.depth)
        """The first of the levels that are left to one program per image."""

    @cached_property
    def tail(self) -> Tail:
        """The levels from `alone` on, of which there must be some."""
        return Tail(self.graphs[self.alone :], self.transfers[self.alone :], not self._exact)

    @property
    def depth(self) -> int:
        """Of coarse levels, how many there are."""
        return len(self.transfers)

    @property
    def images(self) -> int:
        """How many there are."""
        return self.graphs[0].images

    @property
    def rooms(self) -> list[tuple[int, int]]:
        """For rows and links, of each coarse level."""
        return [(graph.room, graph.to.shape[0]) for graph in self.graphs[1:]]

    @property
    def overflow(self) -> Tensor:
        """Whether there was too little room anywhere, or too few levels."""
        if self._exact:
            return torch.zeros((), dtype=torch.bool, device=self.graphs[0].to.device)
        if not self.transfers:
            return (self.graphs[0].degree > 0).any()
        rows = torch.cat([graph.total for graph in self.graphs[1:]]).to(torch.int64)
        links = torch.cat([way.bounds[-1:] for way in self.transfers]) >> 32
        limits = [*(entries for _, entries in self.rooms[:-1]), 0]
        most = constant(
            (tuple(rows for rows, _ in self.rooms), tuple(limits)), torch.int64, rows.device
        )
        return (torch.stack([rows, links]) > most).any()

    def _add(self, room: tuple[int, int] | None) -> bool:
        level = coarsen(self.graphs[-1], room)
        if level is None:
            return False
        self.graphs.append(level[0])
        self.transfers.append(level[1])
        return True

    def _first_alone(self) -> int:
        few = (k for k, (rows, _) in enumerate(self.rooms, 1) if rows <= _ALONE * self.images)
        return next(few, self.depth)
