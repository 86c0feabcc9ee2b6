"""Build the multigrid hierarchy of a batch of grids: levels from the grid to a graph without edges.

The hierarchy depends neither on the smoothness nor on the confidence, which enter only the
diagonals.
"""

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.grid.edges import Edges
from bilateral.backends.cuda.multigrid.coarsening import Transfer, coarsen
from bilateral.backends.cuda.multigrid.graph import Graph, grid_graph
from bilateral.backends.cuda.multigrid.matching import find_nearest
from bilateral.backends.cuda.multigrid.small_levels import SmallLevels

_SMALL_LEVEL_ROWS = 1024
"""A level with at most this many rows per image is small: one program per image processes it."""

Rooms = Sequence[tuple[int, int]]


class Hierarchy:
    """Graphs of all levels, and the transfers between them. Level 0 is the grid.

    Parameters
    ----------
    edges : Edges
        Edges of the grids.
    n : Tensor
        n of each vertex.
    blur : tuple of float
        Weights of the blur: centre, neighbours in space, neighbours along the features.
    first_vertex : Tensor
        First vertex of each image, then the number of vertices.
    rooms : sequence of tuple of int, optional
        Room for rows and links of each coarse level. With it, the host reads nothing from the
        device. None: just enough, as the device says.
    first_small : int, optional
        First of the small levels, 1 or above. None: the first that is small enough.
    """

    def __init__(
        self,
        edges: Edges,
        n: Tensor,
        blur: tuple[float, float, float],
        first_vertex: Tensor,
        rooms: Rooms | None = None,
        first_small: int | None = None,
    ) -> None:
        grid = grid_graph(edges, n, blur, first_vertex)
        find_nearest(grid)
        self.graphs: list[Graph] = [grid]
        self.transfers: list[Transfer] = []
        """Transfer k connects the levels k and k + 1."""
        self._exact = rooms is None
        if rooms is None:
            while self._add_level(None) and self.rooms[-1][1] > 1:
                pass
        else:
            for room in rooms:
                self._add_level(room)
        if first_small is None:
            first_small = self._find_first_small()
        self.first_small = min(max(1, first_small), self.depth)
        """First of the small levels, which one program per image processes."""

    @cached_property
    def small_levels(self) -> SmallLevels:
        """The levels from `first_small` on; the depth must be above 0."""
        first = self.first_small
        return SmallLevels(self.graphs[first:], self.transfers[first:], recorded=not self._exact)

    @property
    def depth(self) -> int:
        """Number of coarse levels."""
        return len(self.transfers)

    @property
    def images(self) -> int:
        """Number of images."""
        return self.graphs[0].images

    @property
    def rooms(self) -> list[tuple[int, int]]:
        """Room for rows and links of each coarse level."""
        return [(graph.room, graph.to.shape[0]) for graph in self.graphs[1:]]

    @property
    def overflow(self) -> Tensor:
        """Whether any level had too little room, or there were too few levels."""
        if self._exact:
            return torch.zeros((), dtype=torch.bool, device=self.graphs[0].to.device)
        if not self.transfers:
            return (self.graphs[0].degree > 0).any()
        rows = torch.cat([graph.total for graph in self.graphs[1:]]).to(torch.int64)
        links = torch.cat([transfer.bounds[-1:] for transfer in self.transfers]) >> 32
        # The last level must have no links: otherwise there are too few levels.
        max_links = [*(entries for _, entries in self.rooms[:-1]), 0]
        limits = constant(
            (tuple(rows for rows, _ in self.rooms), tuple(max_links)), torch.int64, rows.device
        )
        return (torch.stack([rows, links]) > limits).any()

    def _add_level(self, room: tuple[int, int] | None) -> bool:
        """Coarsen the last level. False if it has nothing left to aggregate."""
        level = coarsen(self.graphs[-1], room)
        if level is None:
            return False
        self.graphs.append(level[0])
        self.transfers.append(level[1])
        return True

    def _find_first_small(self) -> int:
        limit = _SMALL_LEVEL_ROWS * self.images
        small = (k for k, (rows, _) in enumerate(self.rooms, 1) if rows <= limit)
        return next(small, self.depth)
