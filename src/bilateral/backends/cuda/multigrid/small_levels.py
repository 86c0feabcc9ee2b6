"""Process the small levels of a hierarchy in one kernel, with one program per image.

Launching a kernel takes longer than the work on such a level. All levels share one set of tensors,
one level after another.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.blocks import program_rows, row_channels
from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.multigrid.coarsening import Transfer
from bilateral.backends.cuda.multigrid.graph import Graph
from bilateral.backends.cuda.multigrid.levels import (
    block_constants,
    jacobi_update,
    row_residual,
    sum_members,
)

_BLOCK = 256
_OMEGA = 0.9
"""Damping of the Jacobi steps."""


class SmallLevels:
    """The levels from `graphs[0]` to the last one of a hierarchy.

    `recorded`: a CUDA graph is recorded for these rooms, so that the tables of offsets are cached.
    Exact rooms differ for each image, and their tables are not worth caching.
    """

    def __init__(self, graphs: list[Graph], transfers: list[Transfer], *, recorded: bool) -> None:
        device = graphs[0].to.device
        self._first_graph = graphs[0]
        self.count = len(graphs)
        """Number of levels."""
        rooms = [graph.room for graph in graphs]
        self.rows = sum(rooms)
        """Room of all levels together."""
        self.offsets = _offsets(rooms, device, recorded)
        """First row of each level."""
        self._link_offsets = _offsets([graph.to.shape[0] for graph in graphs], device, recorded)
        self.starts = torch.stack([graph.starts for graph in graphs])
        """(count, images + 1): first row of each image, relative to its level."""
        self._to = torch.cat([graph.to for graph in graphs])
        self._weight, self._first, self._last = (
            torch.cat([part for graph in graphs if (part := getattr(graph, name)) is not None])
            for name in ("weight", "first", "last")
        )
        self.degree = torch.cat([graph.degree for graph in graphs])
        """Degree of each row."""
        # The rows of the last level have no parents.
        no_parents = torch.full((rooms[-1],), -1, dtype=torch.int32, device=device)
        self._parent = torch.cat([*(transfer.parent for transfer in transfers), no_parents])
        self.members = torch.cat([*(transfer.members for transfer in transfers), no_parents])
        """Members of the aggregates, in the rows of the finer level."""
        self.bounds = torch.cat(
            [no_parents.long()[:0], *(transfer.bounds for transfer in transfers)]
        )
        """`Transfer.bounds` of each level but the first."""

    def vectors(self, like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Allocate r, x and the residual of all levels, with as many channels as `like`."""
        rows = self.rows + -self.rows % 4  # each vector begins at a multiple of 16 bytes
        shape = (3, rows, like.shape[1])
        r, x, residual = torch.empty(shape, dtype=like.dtype, device=like.device)
        return r, x, residual

    def vcycle(
        self,
        vectors: tuple[Tensor, Tensor, Tensor],
        c: Tensor,
        inverse: Tensor,
        smoothness: Tensor,
    ) -> Tensor:
        """Run one V-cycle from 0 for r of the first level, and return x of all levels.

        The V-cycle makes one Jacobi step on each level before and after the coarser levels.
        """
        r, x, residual = vectors
        _vcycle[(self.starts.shape[1] - 1,)](
            *(r, x, residual, c, inverse, smoothness),
            *(self._to, self._weight, self._first, self._last, self._parent),
            *(self.bounds, self.members, self.offsets, self._link_offsets, self.starts),
            self.count,
            r.shape[1],
            OMEGA=_OMEGA,
            STEP=4,
            **block_constants(r.shape[1], 512),
            num_warps=16,
        )
        return x

    def with_data(self, c: Tensor) -> Tensor:
        """Return 1 for rows of the first level that are connected to a weight above 0, else 0."""
        room = self._first_graph.room
        marks = torch.empty(room, dtype=torch.int32, device=c.device)
        tensors = c, self._parent, self.offsets, marks, self._first_graph.total
        _mark[(triton.cdiv(room, _BLOCK),)](*tensors, room, self.count, BLOCK=_BLOCK)
        return marks


def _offsets(sizes: list[int], device: torch.device, cached: bool) -> Tensor:
    offsets = tuple(sum(sizes[:k]) for k in range(len(sizes)))
    if cached:
        return constant(offsets, torch.int32, device)
    return torch.tensor(offsets, dtype=torch.int32, device=device)


@kernel(ones=("channels",))
def _vcycle(
    r,
    x,
    residual,
    c,
    inverse,
    smoothness,
    to,
    weight,
    first,
    last,
    parent,
    bounds,
    members,
    offsets,
    link_offsets,
    starts,
    count,
    channels,
    OMEGA: tl.constexpr,
    STEP: tl.constexpr,
    KP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Run a V-cycle: down to the last level with residuals, and up again with corrections.

    One loop does both, so that its code, which is long, is compiled once.
    """
    image, images = tl.program_id(0), tl.num_programs(0)
    k = tl.arange(0, KP)
    for phase in range(0, 2 * count - 1):
        up = phase - (count - 1)  # negative on the way down
        level = tl.minimum(phase, 2 * count - 2 - phase)
        row, link = tl.load(offsets + level), tl.load(link_offsets + level)
        coarse_row = tl.load(offsets + tl.minimum(level + 1, count - 1))
        at_image = starts + level * (images + 1) + image
        lambda_k = tl.load(smoothness + level)
        graph = to + link, weight + link, None, None, first + row, last + row
        above = x + coarse_row * channels
        iterate = r + row * channels, None, inverse + row, above, parent + row, up
        end = tl.load(at_image + 1)
        for at in range(tl.load(at_image), end, BLOCK):
            i = at + tl.arange(0, BLOCK)
            mask = i < end
            value, remaining, links = row_residual(
                graph, iterate, c + row, lambda_k, i, mask, channels, OMEGA, 0, STEP, KP
            )
            stepped = jacobi_update(value, remaining, links, inverse + row, i, mask, OMEGA)
            goes_up = i * 0 + up >= 0
            to_row, both = row_channels(row + i, mask & (goes_up == 0), channels, k)
            tl.store(residual + to_row, remaining, mask=both)
            to_row, both = row_channels(row + i, mask & goes_up, channels, k)
            tl.store(x + to_row, stepped, mask=both)
        tl.debug_barrier()
        if up < 0:
            # Each level but the first has one bound more than rows.
            level_bounds = bounds + (coarse_row - tl.load(offsets + 1) + level)
            fine = residual + row * channels
            end = tl.load(at_image + images + 2)
            for at in range(tl.load(at_image + images + 1), end, BLOCK):
                i = at + tl.arange(0, BLOCK)
                mask = i < end
                total = sum_members(fine, level_bounds, members + row, i, mask, channels, KP, BLOCK)
                to_row, both = row_channels(coarse_row + i, mask, channels, k)
                tl.store(r + to_row, total, mask=both)
            tl.debug_barrier()


@kernel()
def _mark(c, parent, offsets, marks, total, room, count, BLOCK: tl.constexpr):
    """Mark rows whose last ancestor has a weight above 0."""
    i, mask = program_rows(total, room, BLOCK)
    row, has_parent = i, mask
    for level in range(1, count):
        p = tl.load(parent + row, mask=has_parent, other=-1)
        has_parent = p >= 0
        row = tl.where(has_parent, tl.load(offsets + level) + p, row)
    has_weight = tl.load(c + row, mask=mask, other=0) > 0
    tl.store(marks + i, has_weight.to(tl.int32), mask=i < room)
