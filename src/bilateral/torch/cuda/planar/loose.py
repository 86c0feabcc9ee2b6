"""Solve parts whose data determine no slope, where there is no ridge, as core/planes/solver.hpp.

Such a part changes one plane of its surroundings as little as possible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from bilateral.backends.cuda.planes.fill import Fill
from bilateral.backends.cuda.solve import pcg
from bilateral.torch.cuda.planar.plane_grid import PlaneGrid

if TYPE_CHECKING:
    from bilateral.torch.cuda.planar.system import PlaneSystem

_LEAST_SPREAD = 1e-7
"""The least spread of the data, in squared cells, that determines a slope."""
_LEAST_PIVOT = 1e-12
_UNIT = (1.0, 0.0, 0.0)


def find(grid: PlaneGrid, moments: Tensor) -> Tensor | None:
    """Return which vertices belong to parts with data that determine no slope; None: none."""
    parts = _Segments(grid)
    m, centre = moments.double(), grid.positions.centre
    weight = parts.sum(m[:, :1])
    mean = parts.sum(m[:, [1, 3]] + centre * m[:, :1])
    mean = mean / torch.where(weight > 0, weight, 1)
    offset = centre - mean[parts.of]
    total = parts.sum(_moved(m, offset))
    total[:, 2] -= _LEAST_SPREAD * total[:, 0]
    total[:, 5] -= _LEAST_SPREAD * total[:, 0]
    inverse0 = torch.where(total[:, 0] > 0, 1 / torch.where(total[:, 0] > 0, total[:, 0], 1), 0)
    l10, l20 = total[:, 1] * inverse0, total[:, 3] * inverse0
    d1 = total[:, 2] - l10 * l10 * total[:, 0]
    firm1 = d1 > _LEAST_PIVOT * total[:, 2]
    l21 = torch.where(firm1, (total[:, 4] - l20 * l10 * total[:, 0]) / d1, 0)
    d2 = total[:, 5] - l20 * l20 * total[:, 0] - torch.where(firm1, l21 * l21 * d1, 0)
    firm2 = d2 > _LEAST_PIVOT * total[:, 5]
    is_firm = firm1 & firm2 & (d1 > 0) & (d2 > 0)
    loose = ((weight[:, 0] > 0) & ~is_firm)[parts.of]
    return loose if bool(loose.any()) else None


def solve(
    system: PlaneSystem,
    loose: Tensor,
    b: Tensor,
    x: Tensor,
    scale: Tensor,
    tolerance: float,
    outcome: pcg.Outcome,
) -> pcg.Outcome:
    """Solve the loose parts again, by their least change of a plane of their surroundings."""
    grid, moments = system.plane_grid, system.moments
    firm = ~loose if system.with_data is None else system.with_data & ~loose
    _surround(grid, moments, firm, b, x)
    plane = _planes_of_leaders(grid, x) * loose[:, None, None]
    m = moments.double()[:, None]
    a, gx, gy = plane.double().unbind(2)
    product = torch.stack(
        [
            m[..., 0] * a + m[..., 1] * gx + m[..., 3] * gy,
            m[..., 1] * a + m[..., 2] * gx + m[..., 4] * gy,
            m[..., 3] * a + m[..., 4] * gx + m[..., 5] * gy,
        ],
        2,
    )
    left = ((b.double() - product) * loose[:, None, None]).to(b.dtype)
    change = torch.zeros_like(x)
    again = system.improve(left, change, scale, tolerance, loose)
    torch.where(loose[:, None, None], plane + change, x, out=x)
    pairs = [outcome.residuals, again.residuals]
    length = max(map(len, pairs))
    padded = [[*values, *[0.0] * (length - len(values))] for values in pairs]
    residuals = [max(pair) for pair in zip(*padded, strict=True)]
    converged = outcome.converged and again.converged
    return pcg.Outcome(residuals, converged, outcome.diverged or again.diverged)


class _Segments:
    """Sums over components in a fixed order."""

    def __init__(self, grid: PlaneGrid) -> None:
        root = grid.root
        self._order = torch.argsort(root, stable=True)
        _, of, self._sizes = torch.unique_consecutive(
            root[self._order], return_inverse=True, return_counts=True
        )
        self.of = torch.empty_like(of)
        """Component of each vertex."""
        self.of[self._order] = of

    def sum(self, rows: Tensor) -> Tensor:
        """Sum rows over each component."""
        return _sum_segments(rows[self._order], self._sizes)


def _sum_segments(rows: Tensor, sizes: Tensor) -> Tensor:
    return torch.segment_reduce(rows, "sum", lengths=sizes.long(), axis=0)


def _moved(m: Tensor, offset: Tensor) -> Tensor:
    """Move matrices (rows, 6) by offsets from other centres to theirs."""
    x, y = offset.unbind(1)
    moved_x, moved_y = m[:, 1] + x * m[:, 0], m[:, 3] + y * m[:, 0]
    return torch.stack(
        [
            m[:, 0],
            moved_x,
            m[:, 2] + x * m[:, 1] + x * moved_x,
            moved_y,
            m[:, 4] + y * m[:, 1] + x * moved_y,
            m[:, 5] + y * m[:, 3] + y * moved_y,
        ],
        1,
    )


def _surround(grid: PlaneGrid, moments: Tensor, firm: Tensor, b: Tensor, x: Tensor) -> None:
    """Write planes of the surroundings to x where it is not firm."""
    images, image = grid.grid.shape[0], grid.image
    sizes = grid.grid.first_vertex.diff()
    any_firm = _sum_segments(firm.double()[:, None], sizes)[:, 0] > 0
    if bool(any_firm.any()):
        filled = x.clone()
        Fill(grid.grid, grid.positions, firm).fill(filled)
        torch.where(any_firm[image][:, None, None], filled, x, out=x)
    if bool(any_firm.all()):
        return
    centre = grid.positions.centre
    total = _sum_segments(_moved(moments.double(), centre), sizes)
    rows = b.double()
    rows = rows.clone()
    rows[:, :, 1:] += rows[:, :, :1] * centre[:, None]
    right = _sum_segments(rows.view(len(rows), -1), sizes).view(images, -1, 3)
    matrix = total[:, [0, 1, 3, 1, 2, 4, 3, 4, 5]].view(-1, 3, 3)
    plane = torch.einsum("bij,bkj->bki", _inverse(matrix), right)[image]
    plane[:, :, 0] += (plane[:, :, 1:] * centre[:, None]).sum(2)
    torch.where(any_firm[image][:, None, None], x, plane.to(x.dtype), out=x)


def _inverse(matrix: Tensor) -> Tensor:
    """Invert semi-definite matrices; an unknown that they do not determine gets zeros."""
    out = torch.zeros_like(matrix)
    remaining, unit = matrix.clone(), torch.eye(3, dtype=matrix.dtype, device=matrix.device)
    lower = unit.repeat(len(matrix), 1, 1)
    for j in range(3):
        pivot = remaining[:, j, j]
        counts = pivot > _LEAST_PIVOT * matrix[:, j, j]
        inverse = torch.where(counts, 1 / torch.where(counts, pivot, 1), 0)
        column = remaining[:, :, j] * inverse[:, None]
        row = lower[:, j].clone()
        out += inverse[:, None, None] * row[:, :, None] * row[:, None, :]
        for i in range(j + 1, 3):
            lower[:, i] -= column[:, i, None] * row
        remaining = remaining - column[:, :, None] * remaining[:, j, None, :]
    return out


def _planes_of_leaders(grid: PlaneGrid, x: Tensor) -> Tensor:
    """Return the plane of the first vertex of each vertex's component, at the vertex's centre."""
    root = grid.root.long()
    centre = grid.positions.centre
    plane = x[root].double()
    plane[:, :, 0] += (plane[:, :, 1:] * (centre - centre[root])[:, None]).sum(2)
    return plane.to(x.dtype)
