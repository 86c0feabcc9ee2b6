"""Sums over the vertices of coarser ones, and back.

Coarse vertices are ranges, whose sums come from prefix sums in float64: each program sums its part
of an image's vertices, and what came before the parts is added where ranges end.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.grid.grid import Grid
from bilateral.backends.cuda.kernel import kernel

_BLOCK = 256


def over_coarse_sums(grid: Grid, values: Tensor, factors: Tensor) -> Tensor:
    """Factors over the sums of (n_vertices, K) values of coarse vertices; 0 where those are 0."""
    return _coarse(grid, values, None, factors, over=True)


def push_pull(grid: Grid, values: Tensor, weight: Tensor | None = None) -> Tensor:
    """H v of (n_vertices, K): each one's own value and its means over ever larger surroundings.

    With weights (n_vertices,) it is H v / H weight.
    """
    values = values.contiguous()
    columns = values.shape[1] + (weight is not None)
    means = _coarse(grid, values, weight, grid.pyramid.pull)
    out = torch.empty_like(values)
    padded = triton.next_power_of_2(columns)
    block = max(16, _BLOCK // padded)
    _add_above[(triton.cdiv(grid.room, block),)](
        values,
        weight,
        means,
        grid.pyramid.parent,
        grid.pyramid.ancestors,
        out,
        grid.total,
        grid.room,
        grid.pyramid.rooms[0],
        columns,
        LEVELS=grid.pyramid.ancestors.shape[0],
        KP=padded,
        BLOCK=block,
    )
    return out


def _coarse(
    grid: Grid,
    values: Tensor,
    weight: Tensor | None,
    factors: Tensor,
    over: bool = False,
) -> Tensor:
    """Sums over coarse vertices, those of the weight first, times factors, or factors over them."""
    columns = values.shape[1] + (weight is not None)
    prefix = Prefix(grid, values, columns)
    size = {"KP": prefix.padded, "BLOCK": prefix.block, "num_warps": 8}
    _sum_parts_of_images[(grid.programs, grid.shape[0])](
        values, weight, grid.first_vertex, prefix.sums, prefix.parts, columns, **size
    )
    pyramid = grid.pyramid
    count = pyramid.begin.shape[0]
    out = values.new_empty((count, columns))
    _sum_ranges[(triton.cdiv(count, prefix.range_block),)](
        *pyramid.ranges,
        *prefix.arguments,
        factors,
        out,
        count,
        columns,
        OVER=over,
        KP=prefix.padded,
        PA=prefix.padded_parts,
        BLOCK=prefix.range_block,
    )
    return out


class Prefix:
    """Memory for prefix sums of vectors in so many columns, by the programs of each image."""

    def __init__(self, grid: Grid, like: Tensor, columns: int) -> None:
        self.padded = triton.next_power_of_2(columns)
        self.block = max(16, 512 // self.padded)
        self.sums = torch.empty((grid.room, columns), dtype=torch.float64, device=like.device)
        shape = grid.shape[0], grid.programs, self.padded
        self.parts = torch.empty(shape, dtype=torch.float64, device=like.device)
        parts = grid.shape[0] * grid.programs
        self.padded_parts = triton.next_power_of_2(parts)
        self.range_block = max(16, _BLOCK // self.padded)
        before = torch.empty(
            (self.padded_parts, self.padded), dtype=torch.float64, device=like.device
        )
        self.arguments = self.sums, self.parts, before, parts
        """Of kernels that call `range_sums`."""


@triton.jit
def part_of_image(first_vertex, image, program, programs):
    """The vertices of a program's part of an image."""
    begin, end = tl.load(first_vertex + image), tl.load(first_vertex + image + 1)
    size = (end - begin + programs - 1) // programs
    low = tl.minimum(begin + program * size, end)
    return low, tl.minimum(low + size, end)


@triton.jit
def _read(values, weight, i, mask, columns, k):
    """The columns of vertices i, of which the first may be their weight."""
    if weight is None:
        both = mask[:, None] & (k < columns)[None, :]
        at = i.to(tl.int64)[:, None] * columns + k[None, :]
        own = tl.load(values + at, mask=both, other=0)
    else:
        both = mask[:, None] & ((k > 0) & (k < columns))[None, :]
        at = i.to(tl.int64)[:, None] * (columns - 1) + (k - 1)[None, :]
        first = tl.load(weight + i, mask=mask, other=0)[:, None]
        own = tl.where(k[None, :] == 0, first, tl.load(values + at, mask=both, other=0))
    return own


@kernel()
def _sum_parts_of_images(
    values, weight, first_vertex, sums, parts, channels, KP: tl.constexpr, BLOCK: tl.constexpr
):
    """Prefix sums within the parts, and their totals."""
    program, image = tl.program_id(0), tl.program_id(1)
    programs = tl.num_programs(0)
    begin, end = part_of_image(first_vertex, image, program, programs)
    k = tl.arange(0, KP)
    before = tl.zeros((KP,), tl.float64)
    for at in range(begin, end, BLOCK):
        i = at + tl.arange(0, BLOCK)
        both = (i < end)[:, None] & (k < channels)[None, :]
        where = i.to(tl.int64)[:, None] * channels + k[None, :]
        own = _read(values, weight, i, i < end, channels, k).to(tl.float64)
        tl.store(sums + where, tl.cumsum(own, 0) + before[None, :], mask=both)
        before += tl.sum(own, 0)
    tl.store(parts + (image * programs + program) * KP + k, before)


@triton.jit
def range_sums(
    begin,
    end,
    part_before,
    part_last,
    sums,
    parts,
    before,
    count,
    g,
    mask,
    channels,
    KP: tl.constexpr,
    PA: tl.constexpr,
):
    """Sums over [begin, end): from the prefix sums at both ends, and the parts in between.

    Where there are several, they are added up in `before`, by each program that needs them: all
    write the same. A range's sum does not depend on what others a program has, as room decides.
    """
    k = tl.arange(0, KP)
    low = tl.load(begin + g, mask=mask, other=0) - 1
    high = tl.load(end + g, mask=mask, other=0) - 1
    columns = (k < channels)[None, :]
    at_low = low.to(tl.int64)[:, None] * channels + k[None, :]
    at_high = high.to(tl.int64)[:, None] * channels + k[None, :]
    total = tl.load(sums + at_high, mask=(mask & (high >= 0))[:, None] & columns, other=0)
    total -= tl.load(sums + at_low, mask=(mask & (low >= 0))[:, None] & columns, other=0)
    from_part = tl.load(part_before + g, mask=mask, other=0)
    to_part = tl.load(part_last + g, mask=mask, other=0)
    apart = to_part - from_part
    most = tl.max(apart, 0)
    if most > 0:
        at = from_part[:, None] * KP + k[None, :]
        total += tl.load(parts + at, mask=(apart == 1)[:, None], other=0)
    if most > 1:
        p = tl.arange(0, PA)
        own = tl.load(parts + p[:, None] * KP + k[None, :], mask=(p < count)[:, None], other=0)
        tl.store(before + p[:, None] * KP + k[None, :], tl.cumsum(own, 0) - own)
        tl.debug_barrier()
        several = (apart > 1)[:, None]
        between = tl.load(before + to_part[:, None] * KP + k[None, :], mask=several, other=0)
        at = from_part[:, None] * KP + k[None, :]
        total += between - tl.load(before + at, mask=several, other=0)
    return total


@kernel("count", "room")
def _sum_ranges(
    begin,
    end,
    part_before,
    part_last,
    sums,
    parts,
    before,
    count,
    factors,
    out,
    room,
    channels,
    OVER: tl.constexpr,
    KP: tl.constexpr,
    PA: tl.constexpr,
    BLOCK: tl.constexpr,
):
    g = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = g < room
    ranges = begin, end, part_before, part_last
    total = range_sums(*ranges, sums, parts, before, count, g, mask, channels, KP, PA)
    factor = tl.load(factors + g, mask=mask, other=0)[:, None]
    if OVER:
        total = tl.where(total > 0, factor / tl.where(total > 0, total, 1.0), 0.0)
    else:
        total *= factor
    k = tl.arange(0, KP)
    to = g.to(tl.int64)[:, None] * channels + k[None, :]
    tl.store(out + to, total.to(out.dtype.element_ty), mask=mask[:, None] & (k < channels)[None, :])


@triton.jit
def above(values, ancestors, up, mask, lower, channels, LEVELS: tl.constexpr, k):
    """What coarse vertices of the first level have, and those above, added up."""
    both = mask[:, None] & (k < channels)[None, :]
    higher = (up,)
    for level in tl.static_range(LEVELS):
        own = tl.load(ancestors + level * lower.to(tl.int64) + up, mask=mask, other=0)
        higher += (own,)  # type: ignore[assignment]
    total = tl.zeros((up.shape[0], k.shape[0]), values.dtype.element_ty)
    for level in tl.static_range(LEVELS + 1):
        at = higher[level].to(tl.int64)[:, None] * channels + k[None, :]
        total += tl.load(values + at, mask=both, other=0)
    return total


@kernel("room", "lower")
def _add_above(
    values,
    weight,
    means,
    parent,
    ancestors,
    out,
    total,
    room,
    lower,
    channels,
    LEVELS: tl.constexpr,
    KP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """A vertex's own values and what is above; with weights, the others over the first column."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < tl.minimum(tl.load(total), room)
    k = tl.arange(0, KP)
    sums = _read(values, weight, i, mask, channels, k)
    up = tl.load(parent + i, mask=mask, other=0)
    sums += above(means, ancestors, up, mask, lower, channels, LEVELS, k)
    if weight is None:
        to = i.to(tl.int64)[:, None] * channels + k[None, :]
        tl.store(out + to, sums, mask=mask[:, None] & (k < channels)[None, :])
    else:
        first = tl.sum(tl.where(k[None, :] == 0, sums, 0.0), 1)
        first = tl.where(mask, first, 1.0)[:, None]
        to = i.to(tl.int64)[:, None] * (channels - 1) + (k - 1)[None, :]
        tl.store(out + to, sums / first, mask=mask[:, None] & ((k > 0) & (k < channels))[None, :])
