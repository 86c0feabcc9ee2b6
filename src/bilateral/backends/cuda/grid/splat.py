"""Sums over the pixels of vertices, and back."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.grid.colours import tile_pixels, tile_programs
from bilateral.backends.cuda.grid.grid import Grid
from bilateral.backends.cuda.kernel import kernel

_PART = 1024
"""Sorted pixels are summed up in parts of so many."""


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
    pixels, channels = grid.parent.shape[0], vertices.shape[1]
    out = vertices.new_empty((pixels, channels))
    padded = triton.next_power_of_2(channels)
    block = max(16, 1024 // padded)
    _slice[(triton.cdiv(pixels, block),)](
        vertices.contiguous(), grid.parent, out, pixels, channels, KP=padded, BLOCK=block
    )
    return out


def slice_gradients(
    grid: Grid,
    z: Tensor,
    y: Tensor,
    extra: Tensor | None,
    target: Tensor,
    weights: Tensor | None,
    of_target: bool,
    of_weights: bool,
) -> tuple[Tensor, Tensor]:
    """Weights S^T z, (B H W, K); and the sum over channels of S^T z (target - S^T y), S^T extra.

    Weights are (B H W, 1), or 1 everywhere, `extra` (n_vertices,), or 0; empty what is not wanted.
    """
    pixels, channels = target.shape
    first = torch.empty_like(target) if of_target else target.new_empty(0)
    second = target.new_empty((pixels, 1) if of_weights else 0)
    padded = triton.next_power_of_2(channels)
    block = max(16, 512 // padded)
    _slice_gradients[(triton.cdiv(pixels, block),)](
        z.contiguous(),
        y,
        extra,
        target,
        weights,
        grid.parent,
        first if of_target else None,
        second if of_weights else None,
        pixels,
        channels,
        KP=padded,
        BLOCK=block,
    )
    return first, second


def _sum_members(grid: Grid, values: Tensor, out: Tensor) -> Tensor:
    """Sums over sorted pixels, each one's members being consecutive."""
    colours = grid.colours
    assert colours.members is not None
    assert colours.first_member is not None
    ordered = values.index_select(0, colours.members).double()
    parts = torch.nn.functional.pad(ordered, (0, 0, 0, -ordered.shape[0] % _PART))
    parts = parts.view(-1, _PART, values.shape[1])
    # Two levels of prefix sums, each by one thread block: the same in every run.
    inner = _running(parts)
    last = inner[:, -1].contiguous()
    before = _running(last[None])[0] - last
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


@kernel("count")
def _slice(vertices, parent, out, count, channels, KP: tl.constexpr, BLOCK: tl.constexpr):
    begin = tl.program_id(0).to(tl.int64) * BLOCK
    p = begin + tl.arange(0, BLOCK)
    if (KP == 1) & (begin + BLOCK <= count):  # without masks, several at a time
        tl.store(out + p, tl.load(vertices + tl.load(parent + p)))
    else:
        k = tl.arange(0, KP)
        both = (p < count)[:, None] & (k < channels)[None, :]
        v = tl.load(parent + p, mask=p < count, other=0).to(tl.int64)
        own = tl.load(vertices + v[:, None] * channels + k[None, :], mask=both, other=0)
        tl.store(out + p[:, None] * channels + k[None, :], own, mask=both)


@kernel("count")
def _slice_gradients(
    z,
    y,
    extra,
    target,
    weights,
    parent,
    of_target,
    of_weights,
    count,
    channels,
    KP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    p = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, KP)
    mask = p < count
    both = mask[:, None] & (k < channels)[None, :]
    v = tl.load(parent + p, mask=mask, other=0).to(tl.int64)
    at, to = v[:, None] * channels + k[None, :], p[:, None] * channels + k[None, :]
    own = tl.load(z + at, mask=both, other=0)
    if of_weights is not None:
        rest = tl.load(target + to, mask=both, other=0) - tl.load(y + at, mask=both, other=0)
        sums = tl.sum(own * rest, 1)
        if extra is not None:
            sums += tl.load(extra + v, mask=mask, other=0)
        tl.store(of_weights + p, sums, mask=mask)
    if of_target is not None:
        if weights is not None:
            own *= tl.load(weights + p, mask=mask, other=0)[:, None]
        tl.store(of_target + to, own, mask=both)


@kernel("count")
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


@kernel("rows", "columns", "tiles", "height", "width")
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
    columns,
    tiles,
    height,
    width,
    channels,
    BLOCK: tl.constexpr,
):
    """The sums over the pixels of each vertex, tile by tile."""
    p = tl.arange(0, BLOCK)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        tables = top, left, rows, columns
        inside, pixel, begin = tile_pixels(*tables, tile, height, width, p)
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
