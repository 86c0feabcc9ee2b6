"""Splat pixels to vertices (S), and slice vertices to pixels (S^T)."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.blocks import row_channels
from bilateral.backends.cuda.grid.grid import Grid
from bilateral.backends.cuda.grid.tiles import tile_pixels, tile_programs
from bilateral.backends.cuda.kernel import kernel

_PART = 1024
"""Sorted pixels are summed in parts of this many."""


def splat(grid: Grid, pixels: Tensor) -> Tensor:
    """Return S pixels: (B H W, K) to (room, K)."""
    out = pixels.new_empty((grid.room, pixels.shape[1]))
    if grid.tile_keys.ranks is None:
        return _splat_sorted(grid, pixels, out)
    _splat_tiles(grid, pixels, None, out, None)
    return out


def splat_weighted(grid: Grid, pixels: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return S weights and S (weights pixels): (room,) and (room, K).

    Weights are (B H W, 1); None: 1 everywhere.
    """
    if weights is None:
        return grid.mass.to(pixels.dtype), splat(grid, pixels)
    out = pixels.new_empty((grid.room, pixels.shape[1]))
    if grid.tile_keys.ranks is None:
        column = _splat_sorted(grid, weights, out.new_empty((grid.room, 1)))
        return column[:, 0], _splat_sorted(grid, weights * pixels, out)
    weight = out.new_empty(grid.room)
    _splat_tiles(grid, pixels, weights, out, weight)
    return weight, out


def slice_(
    grid: Grid, vertices: Tensor, low: Tensor | None = None, high: Tensor | None = None
) -> Tensor:
    """Return S^T vertices: (room, K) to (B H W, K), clipped to the bounds (B, K) of each image.

    Both bounds have the same strides.
    """
    pixels, channels = grid.parent.shape[0], vertices.shape[1]
    out = vertices.new_empty((pixels, channels))
    padded = triton.next_power_of_2(channels)
    block = max(16, 1024 // padded)
    _slice[(triton.cdiv(pixels, block),)](
        *(vertices.contiguous(), grid.parent, out, low, high),
        *(0 if low is None else low.stride(0), pixels // grid.shape[0], pixels, channels),
        KP=padded,
        BLOCK=block,
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
    """Return the gradients of the target and of the weights; empty those that are not asked for.

    The gradient of the target is weights S^T z, (B H W, K). The gradient of the weights is the sum
    over channels of S^T z (target - S^T y), plus S^T extra, (B H W, 1).

    Parameters
    ----------
    grid : Grid
    z, y : Tensor
        Adjoint and solution, (room, K).
    extra : Tensor or None
        (room,); None: 0 everywhere.
    target : Tensor
        (B H W, K).
    weights : Tensor or None
        (B H W, 1); None: 1 everywhere.
    of_target, of_weights : bool
        Which gradients to compute.
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


def _splat_tiles(
    grid: Grid, pixels: Tensor, weights: Tensor | None, out: Tensor, weight: Tensor | None
) -> None:
    """Splat tile by tile, where the keys of tiles were ranked."""
    tile_keys, tiles = grid.tile_keys, grid.tiles
    images, height, width = grid.shape
    _splat[tile_programs(images * tiles.count)](
        pixels.contiguous(),
        weights,
        out,
        weight,
        tile_keys.ranks,
        tile_keys.first_of_tile,
        grid.order.vertex_of_key,
        tiles.top,
        tiles.left,
        tiles.rows,
        tiles.columns,
        images * tiles.count,
        height,
        width,
        pixels.shape[1],
        BLOCK=max(32, triton.next_power_of_2(tiles.max_pixels)),
        num_warps=1,
    )


def _splat_sorted(grid: Grid, values: Tensor, out: Tensor) -> Tensor:
    """Splat by prefix sums over sorted pixels, where the pixels of each vertex are consecutive."""
    tile_keys = grid.tile_keys
    assert tile_keys.sorted_pixels is not None
    assert tile_keys.first_pixel is not None
    ordered = values.index_select(0, tile_keys.sorted_pixels).double()
    parts = torch.nn.functional.pad(ordered, (0, 0, 0, -ordered.shape[0] % _PART))
    parts = parts.view(-1, _PART, values.shape[1])
    # Two levels of prefix sums, each by one program: the same in every run.
    inner = _prefix_sums(parts)
    last = inner[:, -1].contiguous()
    before = _prefix_sums(last[None])[0] - last
    sums = (inner + before[:, None]).view(-1, values.shape[1])
    sums = torch.cat([torch.zeros_like(sums[:1]), sums])
    first = tile_keys.first_pixel.long()
    of_key = sums[first[1:]] - sums[first[:-1]]
    out.index_copy_(0, grid.order.vertex_of_key.long(), of_key.to(out.dtype))
    return out


def _prefix_sums(values: Tensor) -> Tensor:
    """Return prefix sums along axis 1 of (M, N, K) in float64, by one program for each of M."""
    out = torch.empty_like(values)
    channels = values.shape[2]
    padded = triton.next_power_of_2(channels)
    _prefix_sum_rows[(values.shape[0],)](
        values, out, values.shape[1], channels, KP=padded, BLOCK=max(16, 1024 // padded)
    )
    return out


@kernel(ones=("channels",))
def _slice(
    vertices,
    parent,
    out,
    low,
    high,
    stride,
    image_pixels,
    pixels,
    channels,
    KP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    begin = tl.program_id(0).to(tl.int64) * BLOCK
    p = begin + tl.arange(0, BLOCK)
    first = begin // image_pixels * stride
    one_image = (begin + BLOCK - 1) // image_pixels * stride == first
    if (KP == 1) & (begin + BLOCK <= pixels) & one_image:  # no masks: loads are vectorised
        value = tl.load(vertices + tl.load(parent + p))
        if low is not None:
            value = tl.maximum(value, tl.load(low + first).to(value.dtype))
            value = tl.minimum(value, tl.load(high + first).to(value.dtype))
        tl.store(out + p, value)
    else:
        k = tl.arange(0, KP)
        v = tl.load(parent + p, mask=p < pixels, other=0)
        at, both = row_channels(v, p < pixels, channels, k)
        to, _ = row_channels(p, p < pixels, channels, k)
        values = tl.load(vertices + at, mask=both, other=0)
        if low is not None:
            bound = (p // image_pixels * stride)[:, None] + k[None, :]
            values = tl.maximum(values, tl.load(low + bound, mask=both, other=0).to(values.dtype))
            values = tl.minimum(values, tl.load(high + bound, mask=both, other=0).to(values.dtype))
        tl.store(out + to, values, mask=both)


@kernel(ones=("channels",))
def _slice_gradients(
    z,
    y,
    extra,
    target,
    weights,
    parent,
    of_target,
    of_weights,
    pixels,
    channels,
    KP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    p = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = p < pixels
    v = tl.load(parent + p, mask=mask, other=0).to(tl.int64)
    at, both = row_channels(v, mask, channels, tl.arange(0, KP))
    to, _ = row_channels(p, mask, channels, tl.arange(0, KP))
    z_p = tl.load(z + at, mask=both, other=0)
    if of_weights is not None:
        rest = tl.load(target + to, mask=both, other=0) - tl.load(y + at, mask=both, other=0)
        sums = tl.sum(z_p * rest, 1)
        if extra is not None:
            sums += tl.load(extra + v, mask=mask, other=0)
        tl.store(of_weights + p, sums, mask=mask)
    if of_target is not None:
        if weights is not None:
            z_p *= tl.load(weights + p, mask=mask, other=0)[:, None]
        tl.store(of_target + to, z_p, mask=both)


@kernel(ones=("channels",))
def _prefix_sum_rows(values, out, count, channels, KP: tl.constexpr, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * count * channels
    before = tl.zeros((KP,), tl.float64)
    for begin in range(0, count, BLOCK):
        i = begin + tl.arange(0, BLOCK)
        where, both = row_channels(i, i < count, channels, tl.arange(0, KP))
        value = tl.load(values + base + where, mask=both, other=0)
        tl.store(out + base + where, tl.cumsum(value, 0) + before[None, :], mask=both)
        before += tl.sum(value, 0)


@kernel()
def _splat(
    pixels,
    weights,
    out,
    weight,
    ranks,
    first_of_tile,
    vertex_of_key,
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
    """Sum the values and weights of the pixels of each vertex, tile by tile."""
    p = tl.arange(0, BLOCK)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        tables = top, left, rows, columns
        inside, pixel, begin = tile_pixels(*tables, tile, height, width, p)
        rank = tl.load(ranks + begin + p, mask=inside, other=-1).to(tl.int32)
        low, high = tl.load(first_of_tile + tile), tl.load(first_of_tile + tile + 1)
        c = tl.zeros((BLOCK,), out.dtype.element_ty) + 1
        if weights is not None:
            c = tl.load(weights + pixel, mask=inside, other=0)
        value = c * tl.load(pixels + pixel * channels, mask=inside, other=0)
        for key in range(low, high):
            equal = rank == key - low
            to = tl.load(vertex_of_key + key)
            if weights is not None:
                tl.store(weight + to, tl.sum(tl.where(equal, c, 0), 0))
            tl.store(out + to.to(tl.int64) * channels, tl.sum(tl.where(equal, value, 0), 0))
        for k in range(1, channels):
            value = c * tl.load(pixels + pixel * channels + k, mask=inside, other=0)
            for key in range(low, high):
                to = tl.load(vertex_of_key + key).to(tl.int64) * channels + k
                tl.store(out + to, tl.sum(tl.where(rank == key - low, value, 0), 0))
