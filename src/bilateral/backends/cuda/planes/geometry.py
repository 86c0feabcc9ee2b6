"""Build the geometry of all levels: where rows are, and where the planes of neighbours meet.

It depends on the grid alone.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.multigrid.coarsening import Transfer
from bilateral.backends.cuda.multigrid.graph import (
    Graph,
    lane_rows,
    link_number,
    low_word,
    max_links,
)
from bilateral.backends.cuda.multigrid.hierarchy import Hierarchy
from bilateral.backends.cuda.multigrid.levels import restrict_to
from bilateral.backends.cuda.planes.blocks import read_point
from bilateral.backends.cuda.planes.graph import PlaneGraph, read_links, read_meeting
from bilateral.backends.cuda.planes.positions import Positions

_ROWS, _LANES = 8, 8
"""Coarse rows of a program, and threads that share the links of a row."""


class Geometry:
    """The geometry of the grid and of a hierarchy's levels; without a hierarchy, of the grid.

    Parameters
    ----------
    grid : Graph
        The grid as a level, as `Hierarchy.graphs` has it.
    hierarchy : Hierarchy, optional
    positions : Positions
    """

    def __init__(self, grid: Graph, hierarchy: Hierarchy | None, positions: Positions) -> None:
        n = grid.n
        assert n is not None
        place = torch.cat([n[:, None], positions.centre.to(n.dtype)], 1)
        mass = positions.pixel_moments[:, 0]
        self.levels = [PlaneGraph(grid, place, None, positions.centre, mass)]
        self.transfers: list[Transfer] = [] if hierarchy is None else hierarchy.transfers
        """Transfer k connects the levels k and k + 1."""
        self.lifts: list[Tensor] = []
        """(rows, 2) per transfer: centre of each row, from the centre of its parent."""
        for k, transfer in enumerate(self.transfers):
            assert hierarchy is not None
            self._add_level(hierarchy.graphs[k + 1], transfer)

    @property
    def depth(self) -> int:
        """Number of coarse levels."""
        return len(self.transfers)

    def _add_level(self, coarse: Graph, transfer: Transfer) -> None:
        fine = self.levels[-1]
        mass = fine.mass[:, None]
        sums = fine.centre.new_empty((coarse.room, 3))
        restrict_to(transfer, coarse, torch.cat([mass, mass * fine.centre], 1), sums)
        centre = sums[:, 1:] / sums[:, :1]
        has_parent = transfer.parent >= 0
        parent = transfer.parent.clamp(min=0)
        lift = torch.where(has_parent[:, None], fine.centre - centre.index_select(0, parent), 0)
        self.lifts.append(lift.to(coarse.degree.dtype))
        meet = coarse.degree.new_empty((coarse.to.shape[0], 4))
        _find_meetings[(triton.cdiv(coarse.room, _ROWS),)](
            *fine.arguments[:-2],
            *(coarse.to, coarse.first, coarse.last, coarse.total, coarse.room),
            *(transfer.bounds, transfer.members, transfer.parent, self.lifts[-1]),
            *(centre, meet),
            D=fine.constants()["D"],
            STEP=fine.constants()["STEP"],
            BLOCK=_ROWS,
            LANES=_LANES,
            num_warps=2,
        )
        self.levels.append(PlaneGraph(coarse, None, meet, centre, sums[:, 0].contiguous()))


@kernel()
def _find_meetings(
    to,
    weight,
    meet,
    place,
    factors,
    first,
    last,
    coarse_to,
    coarse_first,
    coarse_last,
    total,
    room,
    bounds,
    members,
    parent,
    lift,
    centre,
    coarse_meet,
    D: tl.constexpr,
    STEP: tl.constexpr,
    BLOCK: tl.constexpr,
    LANES: tl.constexpr,
):
    """Store the mean of the points where the members of two aggregates meet, for each link.

    The numbers of a fine graph come first. Each lane takes every LANES-th link of its row.
    """
    row, lane, exists = lane_rows(total, room, BLOCK, LANES)
    graph = to, weight, meet, place, factors, first, last
    begin = tl.load(coarse_first + row, mask=exists, other=0)
    count = tl.load(coarse_last + row, mask=exists, other=0) - begin
    member = low_word(tl.load(bounds + row, mask=exists, other=0))
    members_end = low_word(tl.load(bounds + row + 1, mask=exists, other=0))
    at_row = read_point(centre, row, exists)
    for at in range(0, tl.max(count, 0), LANES):
        link = begin + at + lane
        has_link = exists & (at + lane < count)
        neighbour = tl.load(coarse_to + link, mask=has_link, other=-2)
        sum_w = tl.zeros((BLOCK * LANES,), coarse_meet.dtype.element_ty)
        sum_x, sum_y = sum_w, sum_w
        for m in range(0, tl.max(members_end - member, 0)):
            has_member = has_link & (member + m < members_end)
            i = tl.load(members + member + m, mask=has_member, other=0)
            lift_x, lift_y = read_point(lift, i, has_member)
            links = read_links(graph, i, has_member, D)
            for e in range(0, max_links(links, D), STEP):
                for step in tl.static_range(STEP):
                    number = link_number(e, step, 0, 1)
                    j, w, near, _ = read_meeting(graph, links, number, step)
                    target = tl.load(parent + j, mask=j >= 0, other=-1)
                    w = tl.where((target == neighbour) & (target >= 0), w, 0.0)
                    sum_w += w
                    sum_x += w * (lift_x + near[0])
                    sum_y += w * (lift_y + near[1])
        inverse = tl.where(sum_w > 0, 1 / tl.where(sum_w > 0, sum_w, 1.0), 0.0)
        at_neighbour = read_point(centre, neighbour, has_link)
        shift_x, shift_y = at_row[0] - at_neighbour[0], at_row[1] - at_neighbour[1]
        x, y = inverse * sum_x, inverse * sum_y
        to_link = coarse_meet + link.to(tl.int64) * 4
        tl.store(to_link, x, mask=has_link)
        tl.store(to_link + 1, y, mask=has_link)
        tl.store(to_link + 2, x + shift_x.to(x.dtype), mask=has_link)
        tl.store(to_link + 3, y + shift_y.to(y.dtype), mask=has_link)
