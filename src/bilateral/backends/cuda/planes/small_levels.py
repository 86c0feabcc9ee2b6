"""Run the V-cycle of planes on the small levels in one kernel, with one program per image.

Launching a kernel takes longer than the work on such a level. All levels share one set of tensors,
one level after another, as those of `multigrid/small_levels.py`.
"""

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.blocks import row_channels
from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.multigrid.levels import sum_members
from bilateral.backends.cuda.planes.blocks import read_matrix, read_plane, times, write_plane
from bilateral.backends.cuda.planes.diagonals import Diagonals
from bilateral.backends.cuda.planes.geometry import Geometry
from bilateral.backends.cuda.planes.graph import lowered, raised
from bilateral.backends.cuda.planes.levels import jacobi_update, row_residual

_OMEGA = 0.9
"""Damping of the Jacobi steps."""
_ROWS = 512


class SmallLevels:
    """The levels from `first` to the last one of a hierarchy."""

    def __init__(self, geometry: Geometry, diagonals: Diagonals, first: int) -> None:
        levels, transfers = geometry.levels[first:], geometry.transfers[first:]
        graphs = [level.graph for level in levels]
        device = graphs[0].to.device
        self._images, self._count = graphs[0].images, len(graphs)
        self.first_room = graphs[0].room
        """Rows of the first of these levels."""
        self._rows = sum(graph.room for graph in graphs)
        self._links = (
            *(torch.cat([graph.to for graph in graphs]), _joined(g.weight for g in graphs)),
            _joined(level.meet for level in levels),
            *(torch.cat([graph.first for graph in graphs]), _joined(g.last for g in graphs)),
        )
        no_parents = torch.full((graphs[-1].room,), -1, dtype=torch.int32, device=device)
        no_lift = diagonals.data[-1].new_zeros((graphs[-1].room, 2))
        self._tables = (
            torch.cat([*(transfer.parent for transfer in transfers), no_parents]),
            torch.cat([*geometry.lifts[first:], no_lift]),
            torch.cat([no_parents.long()[:0], *(transfer.bounds for transfer in transfers)]),
            torch.cat([*(transfer.members for transfer in transfers), no_parents]),
            _offsets([graph.room for graph in graphs], device),
            _offsets([graph.to.shape[0] for graph in graphs], device),
            torch.stack([graph.starts for graph in graphs]),
        )
        self._matrix = (
            diagonals.smoothness[first:],
            *(torch.cat(v[first:]) for v in (diagonals.turns, diagonals.data, diagonals.inverses)),
        )

    def vectors(self, like: Tensor) -> tuple[Tensor, ...]:
        """Allocate r, x, the result and the residual of all levels."""
        return tuple(like.new_empty((self._rows, *like.shape[1:])) for _ in range(4))

    def vcycle(self, vectors: tuple[Tensor, ...]) -> Tensor:
        """Run one V-cycle from 0 for r of the first level; return the result of all levels.

        The V-cycle makes one Jacobi step on each level before and after the coarser levels.
        """
        channels = vectors[0].shape[1]
        padded = triton.next_power_of_2(channels)
        constants: dict[str, Any] = {"KP": padded, "BLOCK": max(16, _ROWS // padded)}
        _vcycle[(self._images,)](
            *vectors,
            *self._links,
            *self._tables,
            *self._matrix,
            *(self._count, channels, _OMEGA),
            STEP=2,
            COLUMNS=triton.next_power_of_2(3 * channels),
            **constants,
            num_warps=16,
        )
        return vectors[2]


def _joined(parts: Any) -> Tensor:
    return torch.cat([part for part in parts if part is not None])


def _offsets(sizes: Sequence[int], device: torch.device) -> Tensor:
    offsets = [sum(sizes[:k]) for k in range(len(sizes))]
    return torch.tensor(offsets, dtype=torch.int32, device=device)


@kernel(ones=("channels",))
def _vcycle(
    r,
    x,
    result,
    residual,
    to,
    weight,
    meet,
    first,
    last,
    parent,
    lift,
    bounds,
    members,
    offsets,
    link_offsets,
    starts,
    smoothness,
    turns,
    data,
    inverse,
    count,
    channels,
    omega,
    STEP: tl.constexpr,
    COLUMNS: tl.constexpr,
    KP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    image, images = tl.program_id(0), tl.num_programs(0)
    k = tl.arange(0, KP)
    width = 3 * channels
    for level in range(0, count - 1):
        row, link = tl.load(offsets + level), tl.load(link_offsets + level)
        coarse_row = tl.load(offsets + level + 1)
        at_image = starts + level * (images + 1) + image
        begin, end = tl.load(at_image), tl.load(at_image + 1)
        for at in range(begin, end, BLOCK):
            i = at + tl.arange(0, BLOCK)
            mask = i < end
            given = read_plane(r, row + i, mask, channels, k)
            solved = times(read_matrix(inverse, row + i, mask), given)
            solved = (omega * solved[0], omega * solved[1], omega * solved[2])
            write_plane(x, row + i, mask, channels, k, solved)
        tl.debug_barrier()
        graph = to + link, weight + link, meet + link * 4, None, None, first + row, last + row
        for at in range(begin, end, BLOCK):
            i = at + tl.arange(0, BLOCK)
            mask = i < end
            _, remaining, _ = row_residual(
                graph,
                x + row * width,
                (turns + row, data + row * 6),
                r + row * width,
                i,
                mask,
                tl.load(smoothness + level),
                channels,
                0,
                STEP,
                KP,
            )
            up = raised(lift, row + i, mask, remaining)
            write_plane(residual, row + i, mask, channels, k, up)
        tl.debug_barrier()
        # Each level but the first has one bound more than rows.
        level_bounds = bounds + (coarse_row - tl.load(offsets + 1) + level)
        fine, columns = residual + row * width, tl.arange(0, COLUMNS)
        end = tl.load(at_image + images + 2)
        for at in range(tl.load(at_image + images + 1), end, BLOCK):
            i = at + tl.arange(0, BLOCK)
            mask = i < end
            total = sum_members(fine, level_bounds, members + row, i, mask, width, COLUMNS, BLOCK)
            to_row, both = row_channels(coarse_row + i, mask, width, columns)
            tl.store(r + to_row, total, mask=both)
        tl.debug_barrier()
    row = tl.load(offsets + count - 1)
    at_image = starts + (count - 1) * (images + 1) + image
    end = tl.load(at_image + 1)
    for at in range(tl.load(at_image), end, BLOCK):  # the rows of the last level have no links
        i = at + tl.arange(0, BLOCK)
        mask = i < end
        given = read_plane(r, row + i, mask, channels, k)
        solved = times(read_matrix(inverse, row + i, mask), given)
        write_plane(result, row + i, mask, channels, k, solved)
    tl.debug_barrier()
    for down in range(1, count):
        level = count - 1 - down
        row, link = tl.load(offsets + level), tl.load(link_offsets + level)
        coarse_row = tl.load(offsets + level + 1)
        at_image = starts + level * (images + 1) + image
        begin, end = tl.load(at_image), tl.load(at_image + 1)
        for at in range(begin, end, BLOCK):
            i = at + tl.arange(0, BLOCK)
            mask = i < end
            p = tl.load(parent + row + i, mask=mask, other=-1)
            above = read_plane(result, coarse_row + p, p >= 0, channels, k)
            below = lowered(lift, row + i, mask, above)
            own = read_plane(x, row + i, mask, channels, k)
            moved = (own[0] + below[0], own[1] + below[1], own[2] + below[2])
            write_plane(x, row + i, mask, channels, k, moved)
        tl.debug_barrier()
        graph = to + link, weight + link, meet + link * 4, None, None, first + row, last + row
        for at in range(begin, end, BLOCK):
            i = at + tl.arange(0, BLOCK)
            mask = i < end
            own, remaining, links = row_residual(
                graph,
                x + row * width,
                (turns + row, data + row * 6),
                r + row * width,
                i,
                mask,
                tl.load(smoothness + level),
                channels,
                0,
                STEP,
                KP,
            )
            moved = jacobi_update(own, remaining, links, inverse + row * 6, i, mask, omega)
            write_plane(result, row + i, mask, channels, k, moved)
        tl.debug_barrier()
