"""Hold all of the planar model that depends on the references of a batch alone."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from bilateral.backends.cuda.grid.grid import Grid
from bilateral.backends.cuda.multigrid.graph import grid_graph
from bilateral.backends.cuda.planes.geometry import Geometry
from bilateral.backends.cuda.planes.positions import find_positions
from bilateral.backends.cuda.planes.small_parts import SmallParts
from bilateral.backends.cuda.solve import components
from bilateral.torch.cuda.batch_grid import BatchGrid


class PlaneGrid:
    """Positions, geometry and components of the grids of a batch, each computed when needed."""

    def __init__(self, batch_grid: BatchGrid, sigma_xy: float) -> None:
        self.batch_grid = batch_grid
        self.positions = find_positions(batch_grid.grid, sigma_xy)
        self._moments: dict[torch.dtype, Tensor] = {}
        self._geometries: dict[tuple[torch.dtype, bool], Geometry] = {}

    @property
    def grid(self) -> Grid:
        """The grids of the batch."""
        return self.batch_grid.grid

    def pixel_moments(self, dtype: torch.dtype) -> Tensor:
        """Return `Positions.pixel_moments` in a dtype."""
        if dtype not in self._moments:
            self._moments[dtype] = self.positions.pixel_moments.to(dtype)
        return self._moments[dtype]

    def geometry(self, dtype: torch.dtype, *, all_levels: bool) -> Geometry:
        """Return the geometry of all multigrid levels, or of the grid alone."""
        key = dtype, all_levels
        if key not in self._geometries:
            batch, grid = self.batch_grid, self.grid
            if all_levels:
                hierarchy = batch.hierarchy(dtype)
                geometry = Geometry(hierarchy.graphs[0], hierarchy, self.positions)
            else:
                n = batch.bistochastized(dtype)
                graph = grid_graph(grid.edges, n, batch.blur, grid.first_vertex)
                geometry = Geometry(graph, None, self.positions)
            self._geometries[key] = geometry
        return self._geometries[key]

    def first_small(self, dtype: torch.dtype) -> int:
        """Return the first of multigrid's small levels."""
        return self.batch_grid.hierarchy(dtype).first_small

    @cached_property
    def root(self) -> Tensor:
        """Lowest vertex of each vertex's component."""
        _, space, features = self.batch_grid.blur
        return components.find_components(self.grid.edges, space=space > 0, features=features > 0)

    @cached_property
    def small_parts(self) -> SmallParts:
        """The small components."""
        return SmallParts(self.root, int(self.grid.total))

    @cached_property
    def image(self) -> Tensor:
        """Image of each vertex, (room,) int64."""
        ends = self.grid.first_vertex[1:].contiguous()
        vertex = torch.arange(self.grid.room, dtype=torch.int32, device=ends.device)
        return torch.searchsorted(ends, vertex, right=True).clamp(max=len(ends) - 1)
