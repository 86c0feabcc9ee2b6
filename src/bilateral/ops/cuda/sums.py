"""Sums over pixels of vertices and over vertices of coarser ones, and back.

Those over coarse vertices, which are ranges, come from prefix sums in float64: each program sums
its part of an image's vertices, and what came before the parts is added where ranges end.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.ops.cuda.colours import divide, tile_bounds, tile_programs
from bilateral.ops.cuda.grid import Grid
from bilateral.ops.cuda.kernel import kernel

_BLOCK = 256


def splat(grid: Grid, pixels: Tensor) -> Tensor:
    """S pixels: (B H W, K) to (n_vertices, K)."""
    out = pixels.new_empty((grid.room, pixels.shape[1]))
    if grid.colours.local is None:
        return _sum_members(grid, pixels, out)
    _launch_splat(grid, pixels, None, out, None)
    return out


def splat_weighted(grid: Grid, pixels: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
    """S weights and S (weights pixels): (n_vertices,) and (n_vertices, K).

    Weights are (B H W, 1), or 1 everywhere.
    """
    if weights is None:
        return grid.mass.to(pixels.dtype), splat(grid, pixels)
    out = pixels.new_empty((grid.room, pixels.shape[1]))
    if grid.colours.local is None:
        own = _sum_members(grid, weights, out.new_empty((grid.room, 1)))
        return own[:, 0], _sum_members(grid, weights * pixels, out)
    weight = out.new_empty(grid.room)
    _launch_splat(grid, pixels, weights, out, weight)
    return weight, out


def _launch_splat(
    grid: Grid, pixels: Tensor, weights: Tensor | None, out: Tensor, weight: Tensor | None
) -> None:
    colours, tiles = grid.colours, grid.tiles
    images, height, width = grid.shape
    _splat[tile_programs(images * tiles.tiles)](
        pixels.contiguous(),
        weights,
        out,
        weight,
        colours.local,
        colours.first,
        grid.order.rank,
        tiles.top,
        tiles.left,
        tiles.rows,
        tiles.columns,
        images * tiles.tiles,
        height,
        width,
        pixels.shape[1],
        BLOCK=max(32, triton.next_power_of_2(tiles.most)),
        num_warps=1,
    )


def slice_(grid: Grid, vertices: Tensor) -> Tensor:
    """S^T vertices: (n_vertices, K) to (B H W, K)."""
    return vertices.index_select(0, grid.parent)


def coarse_sums(grid: Grid, values: Tensor, factors: Tensor | None = None) -> Tensor:
    """The sum of (n_vertices, K) values over each coarse vertex of the pyramid, times a factor."""
    return _coarse(grid, values, None, factors)


def over_coarse_sums(grid: Grid, values: Tensor, factors: Tensor) -> Tensor:
    """Factors over these sums, or 0 where they are not above 0."""
    return _coarse(grid, values, None, factors, over=True)


def push_pull(grid: Grid, values: Tensor) -> Tensor:
    """H v of (n_vertices, K): each one's own value and its means over ever larger surroundings."""
    return _push_pull(grid, values, None)


def push_pull_ratio(grid: Grid, values: Tensor, weight: Tensor) -> Tensor:
    """H v / H weight for (n_vertices, K) values and (n_vertices,) weights."""
    return _push_pull(grid, values, weight)


def _push_pull(grid: Grid, values: Tensor, weight: Tensor | None) -> Tensor:
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
    factors: Tensor | None,
    over: bool = False,
) -> Tensor:
    """Sums over coarse vertices, those of the weight first."""
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


def _sum_members(grid: Grid, values: Tensor, out: Tensor) -> Tensor:
    """Sums over sorted pixels, each one's members being consecutive."""
    colours = grid.colours
    assert colours.members is not None
    assert colours.first_member is not None
    ordered = values.index_select(0, colours.members).double()
    block = 1024
    parts = torch.nn.functional.pad(ordered, (0, 0, 0, -ordered.shape[0] % block))
    parts = parts.view(-1, block, values.shape[1])
    # Two levels of prefix sums, each by one thread block: the same in every run.
    inner = _running(parts)
    before = _running(inner[:, -1][None])[0] - inner[:, -1]
    sums = (inner + before[:, None]).view(-1, values.shape[1])
    sums = torch.cat([torch.zeros_like(sums[:1]), sums])
    found = sums[colours.first_member[1:].long()] - sums[colours.first_member[:-1].long()]
    out.index_copy_(0, grid.order.rank.long(), found.to(out.dtype))
    return out


def _running(values: Tensor) -> Tensor:
    """Prefix sums along axis 1 of (M, N, K), by one program for each of M."""
    out = torch.empty_like(values)
    channels = values.shape[2]
    padded = triton.next_power_of_2(channels)
    _run[(values.shape[0],)](
        values, out, values.shape[1], channels, KP=padded, BLOCK=max(16, 1024 // padded)
    )
    return out


@kernel
def _run(values, out, count, channels, KP: tl.constexpr, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * count * channels
    k = tl.arange(0, KP)
    before = tl.zeros((KP,), tl.float64)
    for at in range(0, count, BLOCK):
        i = at + tl.arange(0, BLOCK)
        both = (i < count)[:, None] & (k < channels)[None, :]
        where = base + i[:, None] * channels + k[None, :]
        own = tl.load(values + where, mask=both, other=0)
        tl.store(out + where, tl.cumsum(own, 0) + before[None, :], mask=both)
        before += tl.sum(own, 0)


@kernel
def _splat(
    pixels,
    weights,
    out,
    weight,
    local,
    first,
    rank,
    top,
    left,
    rows,
    columns_of_tiles,
    tiles,
    height,
    width,
    channels,
    BLOCK: tl.constexpr,
):
    """The sums over the pixels of each vertex, tile by tile."""
    p = tl.arange(0, BLOCK)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        image, y, below, x, right = tile_bounds(top, left, rows, columns_of_tiles, tile)
        count, across = (below - y) * (right - x), right - x
        inside = p < count
        start = image.to(tl.int64) * height * width
        down, aside = divide(p, across)
        pixel = start + (y + down) * width + x + aside
        begin = start + y * width + (below - y) * x
        own = tl.load(local + begin + p, mask=inside, other=-1).to(tl.int32)
        low, high = tl.load(first + tile), tl.load(first + tile + 1)
        c = tl.zeros((BLOCK,), out.dtype.element_ty) + 1
        if weights is not None:
            c = tl.load(weights + pixel, mask=inside, other=0)
        value = c * tl.load(pixels + pixel * channels, mask=inside, other=0)
        for v in range(low, high):
            mine = own == v - low
            to = tl.load(rank + v)
            if weights is not None:
                tl.store(weight + to, tl.sum(tl.where(mine, c, 0), 0))
            tl.store(out + to.to(tl.int64) * channels, tl.sum(tl.where(mine, value, 0), 0))
        for k in range(1, channels):
            value = c * tl.load(pixels + pixel * channels + k, mask=inside, other=0)
            for v in range(low, high):
                to = tl.load(rank + v).to(tl.int64) * channels + k
                tl.store(out + to, tl.sum(tl.where(own == v - low, value, 0), 0))


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


@kernel
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
    write the same.
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
    most = tl.max(to_part - from_part, 0)
    if most == 1:
        at = from_part[:, None] * KP + k[None, :]
        total += tl.load(parts + at, mask=(to_part > from_part)[:, None], other=0)
    if most > 1:
        p = tl.arange(0, PA)
        own = tl.load(parts + p[:, None] * KP + k[None, :], mask=(p < count)[:, None], other=0)
        tl.store(before + p[:, None] * KP + k[None, :], tl.cumsum(own, 0) - own)
        tl.debug_barrier()
        total += tl.load(before + to_part[:, None] * KP + k[None, :])
        total -= tl.load(before + from_part[:, None] * KP + k[None, :])
    return total


@kernel
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
    if factors is not None:
        factor = tl.load(factors + g, mask=mask, other=0)[:, None]
        if OVER:
            total = tl.where(total > 0, factor / tl.where(total > 0, total, 1.0), 0.0)
        else:
            total *= factor
    k = tl.arange(0, KP)
    to = g.to(tl.int64)[:, None] * channels + k[None, :]
    tl.store(out + to, total.to(out.dtype.element_ty), mask=mask[:, None] & (k < channels)[None, :])


@triton.jit
def above(values, parent, ancestors, i, mask, lower, channels, LEVELS: tl.constexpr, k):
    """What the coarse vertices above each vertex have, added up."""
    both = mask[:, None] & (k < channels)[None, :]
    up = tl.load(parent + i, mask=mask, other=0)
    total = tl.load(values + up.to(tl.int64)[:, None] * channels + k[None, :], mask=both, other=0)
    for level in tl.static_range(LEVELS):
        higher = tl.load(ancestors + level * lower.to(tl.int64) + up, mask=mask, other=0)
        at = higher.to(tl.int64)[:, None] * channels + k[None, :]
        total += tl.load(values + at, mask=both, other=0)
    return total


@kernel
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
    sums += above(means, parent, ancestors, i, mask, lower, channels, LEVELS, k)
    if weight is None:
        to = i.to(tl.int64)[:, None] * channels + k[None, :]
        tl.store(out + to, sums, mask=mask[:, None] & (k < channels)[None, :])
    else:
        first = tl.sum(tl.where(k[None, :] == 0, sums, 0.0), 1)
        first = tl.where(mask, first, 1.0)[:, None]
        to = i.to(tl.int64)[:, None] * (channels - 1) + (k - 1)[None, :]
        tl.store(out + to, sums / first, mask=mask[:, None] & ((k > 0) & (k < channels))[None, :])
