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
    return lift(grid.pixels, pixels, grid.slots)


def slice_(grid: Grid, vertices: Tensor) -> Tensor:
    """S^T vertices: (n_vertices, K) to (B H W, K)."""
    return vertices.index_select(0, grid.vertex)


def mass(grid: Grid) -> Tensor:
    """The number of pixels of each vertex."""
    return grid.pixels.first_member.diff()


def lift(groups: Groups, values: Tensor, slots: Tensor | None = None) -> Tensor:
    """The sum over the items of each group, of (N, K) values in the order of items or `slots`."""
    channels = values.shape[1]
    out = torch.empty((groups.count, channels), dtype=values.dtype, device=values.device)
    block = max(16, 256 // triton.next_power_of_2(channels))
    _sum_members[(triton.cdiv(groups.count, block),)](
        values,
        groups.members,
        slots,
        groups.first_member,
        out,
        groups.count,
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
        mean = sums[k] * (4.0**-k / sizes[k]) + above
        above = mean.index_select(0, grid.levels[k - 1].parent)
    out: Tensor = values + above
    return out


@triton.jit
def _sum_members(
    values, members, slots, first_member, out, n, channels, KP: tl.constexpr, BLOCK: tl.constexpr
):
    g = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = g < n
    begin = tl.load(first_member + g, mask=inside, other=0)
    end = tl.load(first_member + g + 1, mask=inside, other=0)
    k = tl.arange(0, KP)
    total = tl.zeros((BLOCK, KP), out.dtype.element_ty)
    for i in range(0, tl.max(end - begin, 0)):
        on = begin + i < end
        item = tl.load(members + begin + i, mask=on, other=0)
        if slots is not None:
            item = tl.load(slots + item, mask=on, other=0)
        at = item.to(tl.int64)[:, None] * channels + k[None, :]
        total += tl.load(values + at, mask=on[:, None] & (k[None, :] < channels), other=0)
    at = g.to(tl.int64)[:, None] * channels + k[None, :]
    tl.store(out + at, total, mask=inside[:, None] & (k[None, :] < channels))
