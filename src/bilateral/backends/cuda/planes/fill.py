"""Fill the parts of the grid that are connected to no data.

A vertex takes the mean plane of the nearest pyramid level that has one, evaluated at its own
centre, as in core/planes/fill.hpp. The fill is linear, and has a transpose.
"""

import torch
from torch import Tensor

from bilateral.backends.cuda.grid.grid import Grid
from bilateral.backends.cuda.grid.pyramid_transfer import coarse_sums
from bilateral.backends.cuda.planes.positions import Positions


class Fill:
    """The map from the planes of active vertices to those of all others, and its transpose.

    Parameters
    ----------
    grid : Grid
    positions : Positions
    active : Tensor
        (room,) bool.
    """

    def __init__(self, grid: Grid, positions: Positions, active: Tensor) -> None:
        self._grid = grid
        mass = torch.where(active, positions.pixel_moments[:, 0], 0)[:, None]
        self._mass = mass
        sums = coarse_sums(grid, torch.cat([mass, mass * positions.centre], 1))
        there = sums[:, 0] > 0
        self._inverse = torch.where(there, 1 / torch.where(there, sums[:, 0], 1), 0)
        """Of the mass of active vertices below each coarse vertex, or 0."""
        centre = sums[:, 1:] * self._inverse[:, None]
        pyramid = grid.pyramid
        self._ancestors = [pyramid.parent.long()]
        for level in pyramid.ancestors:
            self._ancestors.append(level.index_select(0, pyramid.parent).long())
        self._vertices = (~active).nonzero()[:, 0]
        """Vertices to fill."""
        node = self._ancestors[-1][self._vertices]
        for ancestor in reversed(self._ancestors):
            own = ancestor[self._vertices]
            node = torch.where(there[own], own, node)
        self._node = node
        """The coarse vertex that each of them takes its plane from."""
        self._offset = positions.centre[self._vertices] - centre[node]

    def fill(self, x: Tensor) -> None:
        """Write the planes of inactive vertices to x (room, K, 3)."""
        wide = x.double().view(len(x), -1)
        sums = coarse_sums(self._grid, torch.where(self._mass > 0, self._mass * wide, 0))
        mean = (sums * self._inverse[:, None])[self._node].view(-1, *x.shape[1:])
        mean[:, :, 0] += (mean[:, :, 1:] * self._offset[:, None]).sum(2)
        x[self._vertices] = mean.to(x.dtype)

    def fill_transposed(self, x: Tensor) -> None:
        """Add the transpose of `fill` to active vertices of x, and clear the others."""
        values = x[self._vertices].double()
        values[:, :, 1:] += values[:, :, :1] * self._offset[:, None]
        values *= self._inverse[self._node][:, None, None]
        order = torch.argsort(self._node, stable=True)
        nodes, counts = torch.unique_consecutive(self._node[order], return_counts=True)
        # Sums of segments have a fixed order, unlike atomic sums.
        rows = values[order].view(len(values), -1)
        sums = rows.new_zeros((len(self._inverse), rows.shape[1]))
        sums[nodes] = torch.segment_reduce(rows, "sum", lengths=counts, axis=0)
        total = torch.zeros_like(x, dtype=torch.float64).view(len(x), -1)
        for ancestor in self._ancestors:
            total += sums[ancestor]
        added = (self._mass * total).view(x.shape).to(x.dtype)
        x[self._vertices] = 0
        x += added
