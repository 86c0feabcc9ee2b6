"""Move vectors up and down the pyramid: P sums over coarse vertices, P^T spreads their values.

A coarse vertex is a range of vertices. Its sum comes from prefix sums in float64: each program
computes those of its part of an image, and the sums of whole parts are added where a range spans
several.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.blocks import row_channels
from bilateral.backends.cuda.grid.grid import Grid
from bilateral.backends.cuda.grid.image_parts import MAX_PROGRAMS, part_of_image
from bilateral.backends.cuda.kernel import kernel

_BLOCK = 256


def over_coarse_sums(grid: Grid, values: Tensor, factors: Tensor) -> Tensor:
    """Return factors / P values for (room, K) values, or 0 where P values is 0."""
    return _coarse(grid, values, None, factors, over=True)


def coarse_sums(grid: Grid, values: Tensor) -> Tensor:
    """Return P values for (room, K) values: the sums over the vertices below coarse vertices."""
    ones = torch.ones_like(grid.pyramid.pull)
    return _coarse(grid, values.contiguous(), None, ones)


def push_pull(grid: Grid, values: Tensor, weight: Tensor | None = None) -> Tensor:
    """Return H v of (room, K): the value of each vertex plus its means over all coarser levels.

    With a weight, (room,), return H v / H weight instead.
    """
    values = values.contiguous()
    columns = values.shape[1] + (weight is not None)
    means = _coarse(grid, values, weight, grid.pyramid.pull)
    out = torch.empty_like(values)
    padded = triton.next_power_of_2(columns)
    block = max(16, _BLOCK // padded)
    _add_ancestors[(triton.cdiv(grid.room, block),)](
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
    """Return factors * P values, or factors / P values if `over`; a weight is the first column."""
    columns = values.shape[1] + (weight is not None)
    prefix = PrefixSums(grid, values, columns)
    size = {"KP": prefix.padded, "BLOCK": prefix.block, "num_warps": 8}
    _prefix_sum_parts[(grid.programs, grid.shape[0])](
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


class PrefixSums:
    """Memory for the prefix sums of vectors with K columns, by the programs of each image."""

    def __init__(self, grid: Grid, like: Tensor, columns: int) -> None:
        self.padded = triton.next_power_of_2(columns)
        """KP of kernels."""
        self.block = max(16, 512 // self.padded)
        """BLOCK of kernels that compute prefix sums."""
        self.sums = torch.empty((grid.room, columns), dtype=torch.float64, device=like.device)
        """(room, K): prefix sums within each part of an image."""
        shape = grid.shape[0], grid.programs, self.padded
        self.parts = torch.empty(shape, dtype=torch.float64, device=like.device)
        """(images, programs, KP): sums over whole parts."""
        parts = grid.shape[0] * grid.programs
        self.padded_parts = max(MAX_PROGRAMS, triton.next_power_of_2(parts))
        """PA of kernels that call `range_sums`."""
        self.range_block = max(16, _BLOCK // self.padded)
        """BLOCK of kernels that call `range_sums`."""
        before = torch.empty(
            (self.padded_parts, self.padded), dtype=torch.float64, device=like.device
        )
        self.arguments = self.sums, self.parts, before, parts
        """Arguments of `range_sums`, after the ranges."""


@triton.jit
def _load_columns(values, weight, i, mask, columns, k):
    """Load all columns of vertices i; with a weight, it is the first column."""
    if weight is None:
        both = mask[:, None] & (k < columns)[None, :]
        at = i.to(tl.int64)[:, None] * columns + k[None, :]
        value = tl.load(values + at, mask=both, other=0)
    else:
        both = mask[:, None] & ((k > 0) & (k < columns))[None, :]
        at = i.to(tl.int64)[:, None] * (columns - 1) + (k - 1)[None, :]
        first = tl.load(weight + i, mask=mask, other=0)[:, None]
        value = tl.where(k[None, :] == 0, first, tl.load(values + at, mask=both, other=0))
    return value


@kernel(ones=("channels",))
def _prefix_sum_parts(
    values, weight, first_vertex, sums, parts, channels, KP: tl.constexpr, BLOCK: tl.constexpr
):
    """Store the prefix sums within one part of an image, and the sum of the part."""
    program, image = tl.program_id(0), tl.program_id(1)
    programs = tl.num_programs(0)
    begin, end = part_of_image(first_vertex, image, program, programs)
    k = tl.arange(0, KP)
    before = tl.zeros((KP,), tl.float64)
    for block in range(begin, end, BLOCK):
        i = block + tl.arange(0, BLOCK)
        where, both = row_channels(i, i < end, channels, tl.arange(0, KP))
        value = _load_columns(values, weight, i, i < end, channels, k).to(tl.float64)
        tl.store(sums + where, tl.cumsum(value, 0) + before[None, :], mask=both)
        before += tl.sum(value, 0)
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
    """Return the sums over the ranges [begin, end) of coarse vertices g, (BLOCK, KP) float64.

    A sum is the difference of the prefix sums at both ends, plus the `count` parts in between.
    Where a range spans several parts, each program that needs them computes the prefix sums of all
    parts in `before`: all programs write the same numbers. A range's sum does not depend on the
    other ranges of a program, which depend on the room.
    """
    k = tl.arange(0, KP)
    low = tl.load(begin + g, mask=mask, other=0) - 1
    high = tl.load(end + g, mask=mask, other=0) - 1
    at_low, on_low = row_channels(low, mask & (low >= 0), channels, tl.arange(0, KP))
    at_high, on_high = row_channels(high, mask & (high >= 0), channels, tl.arange(0, KP))
    total = tl.load(sums + at_high, mask=on_high, other=0)
    total -= tl.load(sums + at_low, mask=on_low, other=0)
    from_part = tl.load(part_before + g, mask=mask, other=0)
    to_part = tl.load(part_last + g, mask=mask, other=0)
    spanned = to_part - from_part
    most = tl.max(spanned, 0)
    if most > 0:
        at = from_part[:, None] * KP + k[None, :]
        total += tl.load(parts + at, mask=(spanned == 1)[:, None], other=0)
    if most > 1:
        p = tl.arange(0, PA)
        part = tl.load(parts + p[:, None] * KP + k[None, :], mask=(p < count)[:, None], other=0)
        tl.store(before + p[:, None] * KP + k[None, :], tl.cumsum(part, 0) - part)
        tl.debug_barrier()
        several = (spanned > 1)[:, None]
        between = tl.load(before + to_part[:, None] * KP + k[None, :], mask=several, other=0)
        at = from_part[:, None] * KP + k[None, :]
        total += between - tl.load(before + at, mask=several, other=0)
    return total


@kernel(ones=("channels",))
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
    """Store the sums over coarse vertices times factors, or factors over the sums if OVER."""
    g = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = g < room
    ranges = begin, end, part_before, part_last
    total = range_sums(*ranges, sums, parts, before, count, g, mask, channels, KP, PA)
    factor = tl.load(factors + g, mask=mask, other=0)[:, None]
    if OVER:
        total = tl.where(total > 0, factor / tl.where(total > 0, total, 1.0), 0.0)
    else:
        total *= factor
    to, both = row_channels(g, mask, channels, tl.arange(0, KP))
    tl.store(out + to, total.to(out.dtype.element_ty), mask=both)


@triton.jit
def sum_ancestors(values, ancestors, up, mask, lower, channels, LEVELS: tl.constexpr, k):
    """Add up the values of coarse vertices `up` of the first level and of all their ancestors."""
    both = mask[:, None] & (k < channels)[None, :]
    chain = (up,)
    for level in tl.static_range(LEVELS):
        ancestor = tl.load(ancestors + level * lower.to(tl.int64) + up, mask=mask, other=0)
        chain += (ancestor,)  # type: ignore[assignment]
    total = tl.zeros((up.shape[0], k.shape[0]), values.dtype.element_ty)
    for level in tl.static_range(LEVELS + 1):
        at = chain[level].to(tl.int64)[:, None] * channels + k[None, :]
        total += tl.load(values + at, mask=both, other=0)
    return total


@kernel(ones=("channels",))
def _add_ancestors(
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
    """Add the means of all ancestors to each vertex; with a weight, divide by the first column."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < tl.minimum(tl.load(total), room)
    k = tl.arange(0, KP)
    sums = _load_columns(values, weight, i, mask, channels, k)
    up = tl.load(parent + i, mask=mask, other=0)
    sums += sum_ancestors(means, ancestors, up, mask, lower, channels, LEVELS, k)
    if weight is None:
        to, both = row_channels(i, mask, channels, tl.arange(0, KP))
        tl.store(out + to, sums, mask=both)
    else:
        first = tl.sum(tl.where(k[None, :] == 0, sums, 0.0), 1)
        first = tl.where(mask, first, 1.0)[:, None]
        to = i.to(tl.int64)[:, None] * (channels - 1) + (k - 1)[None, :]
        tl.store(out + to, sums / first, mask=mask[:, None] & ((k > 0) & (k < channels))[None, :])
