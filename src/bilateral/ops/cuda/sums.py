"""Sums over the members of groups: pixels into vertices, vertices into coarser ones, and back."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.ops.cuda.grid import Grid
from bilateral.ops.cuda.grouping import Groups


def splat(grid: Grid, pixels: Tensor) -> Tensor:
    """S pixels: (B H W, K) to (n_vertices, K)."""
    return lift(grid.vertices, pixels)


def slice_(grid: Grid, vertices: Tensor) -> Tensor:
    """S^T vertices: (n_vertices, K) to (B H W, K)."""
    return vertices.index_select(0, grid.vertices.parent)


def mass(grid: Grid) -> Tensor:
    """The number of pixels of each vertex."""
    return grid.vertices.first_member.diff()


def lift(groups: Groups, values: Tensor, out: Tensor | None = None) -> Tensor:
    """The sum over the items of each group, of (N, K) values; 0 after the last group.

    In `out` if it is given, of which nothing changes after the last group.
    """
    channels = values.shape[1]
    if out is None:
        out = torch.zeros((groups.room, channels), dtype=values.dtype, device=values.device)
    block = max(16, 256 // triton.next_power_of_2(channels))
    _sum_members[(triton.cdiv(groups.room, block),)](
        values,
        groups.members,
        groups.first_member,
        out,
        groups.total,
        groups.room,
        channels,
        KP=triton.next_power_of_2(channels),
        BLOCK=block,
    )
    return out


def push_pull(grid: Grid, values: Tensor) -> Tensor:
    """H v of (n_vertices, K): each one's own value and its means over ever larger surroundings."""
    sums, sizes = [values], [torch.ones_like(values[:, :1])]
    for level in grid.levels:
        sums.append(lift(level, sums[-1]))
        sizes.append(lift(level, sizes[-1]))
    above: Any = 0.0
    for k in range(len(grid.levels), 0, -1):
        counts = grid.finer(k - 1).total > grid.shape[0]
        mean = torch.where(counts, sums[k] * (4.0**-k / sizes[k]), 0) + above
        above = mean.index_select(0, grid.levels[k - 1].parent)
    out: Tensor = values + above
    return out


@triton.jit
def _sum_members(
    values, members, first_member, out, total, room, channels, KP: tl.constexpr, BLOCK: tl.constexpr
):
    g = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = g < tl.minimum(tl.load(total), room)
    begin = tl.load(first_member + g, mask=inside, other=0)
    end = tl.load(first_member + g + 1, mask=inside, other=0)
    k = tl.arange(0, KP)
    sums = tl.zeros((BLOCK, KP), out.dtype.element_ty)
    for i in range(0, tl.max(end - begin, 0)):
        on = begin + i < end
        item = tl.load(members + begin + i, mask=on, other=0)
        at = item.to(tl.int64)[:, None] * channels + k[None, :]
        sums += tl.load(values + at, mask=on[:, None] & (k[None, :] < channels), other=0)
    at = g.to(tl.int64)[:, None] * channels + k[None, :]
    tl.store(out + at, sums, mask=inside[:, None] & (k[None, :] < channels))
