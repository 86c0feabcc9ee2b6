"""Find the distinct keys of each tile: each of them is a vertex of the grid.

A tile has few pixels and even fewer distinct keys. One program finds the least key of a tile, then
the next larger one, and so on, which yields them sorted. Where tiles are large, all pixels are
sorted by tile and key instead.
"""

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.grid.reference import Binning, load_affine, pixel_keys
from bilateral.backends.cuda.grid.tiles import TileLayout, divide, tile_bounds, tile_programs
from bilateral.backends.cuda.kernel import kernel

MAX_PIXELS = 1024
"""Pixels of the largest tile whose keys one program ranks."""
_BLOCK = 64
"""Pixels that a program handles at a time in larger tiles."""


class TileKeys(NamedTuple):
    """The distinct keys of all tiles of a batch, sorted by tile, then by key: N with room for more.

    Entries after the last key have no meaning.
    """

    keys: Tensor
    """(room,) int32 or int64."""
    tile: Tensor
    """(room,) int32: tile of each key, counted through the batch."""
    pixel_count: Tensor
    """(room,) int32: number of pixels with each key; 0 after the last key."""
    first_of_tile: Tensor
    """(tiles + 1,) int32: first key of each tile, then N; at most the room."""
    first_of_image: Tensor
    """(images + 1,) int32: first key of each image, then N; at most the room."""
    total: Tensor
    """(1,) int32: N."""
    out_of_range: Tensor
    """(1,) int32: whether a pixel is NaN or not from 0 to the limit of the binning."""
    ranks: Tensor | None
    """(pixels,) int16, in tile order: rank of each pixel's key among the keys of its tile."""
    sorted_pixels: Tensor | None
    """(pixels,) int32, instead of `ranks`: the pixels, sorted by tile, then by key."""
    first_pixel: Tensor | None
    """(room + 1,) int32, with `sorted_pixels`: place of the first pixel of each key in them."""


def find_keys(pixels: Tensor, tiles: TileLayout, bins: Binning, room: int | None) -> TileKeys:
    """Find the distinct keys of each tile of (B, C, H, W) pixels.

    Without `room` the host reads the number of keys from the device and allocates exactly as much.
    """
    images, channels, height, width = pixels.shape
    tile_count = images * tiles.count
    pixel_count = images * height * width
    like: dict[str, Any] = {"device": pixels.device}
    keys = torch.empty(pixel_count, dtype=bins.dtype, **like)
    counts = torch.empty(tile_count + 1, dtype=torch.int32, **like)
    if pixels.dtype == torch.uint8:  # always in range
        out_of_range = constant((0,), torch.int32, pixels.device)
    else:
        out_of_range = torch.zeros(1, dtype=torch.int32, **like)
    rank = tiles.max_pixels <= MAX_PIXELS
    sizes = torch.empty(pixel_count, dtype=torch.int16, **like) if rank else None
    of_pixel = torch.empty(pixel_count, dtype=torch.int16 if rank else torch.int32, **like)
    limit = constant((bins.limit,), torch.float64, pixels.device)
    _find_keys[tile_programs(tile_count)](
        pixels.contiguous(),
        bins.affine,
        tiles.top,
        tiles.left,
        tiles.rows,
        tiles.columns,
        tile_count,
        keys,
        sizes,
        of_pixel,
        counts,
        out_of_range,
        limit,
        height,
        width,
        (1 << bins.bits) - 1,
        C=channels,
        FIELD=bins.field,
        MIDDLE=bins.middle,
        BLOCK=max(32, triton.next_power_of_2(tiles.max_pixels)) if rank else _BLOCK,
        RANK=rank,
        num_warps=1,
    )
    if sizes is None:
        return _sort_keys(keys, of_pixel, tiles, images, out_of_range, room)
    return _gather_ranked(
        keys, sizes, of_pixel, counts, tiles, (images, height, width), out_of_range, room
    )


def _gather_ranked(
    keys: Tensor,
    sizes: Tensor,
    ranks: Tensor,
    counts: Tensor,
    tiles: TileLayout,
    shape: tuple[int, int, int],
    out_of_range: Tensor,
    room: int | None,
) -> TileKeys:
    """Move the keys of each tile and their pixel counts from tile order to consecutive places."""
    images, height, width = shape
    like: dict[str, Any] = {"device": keys.device}
    before = torch.cumsum(counts, 0, dtype=torch.int32)
    total = before[-1:]
    room = int(total) if room is None else room
    distinct = torch.empty(room, dtype=keys.dtype, **like)
    tile, pixel_count = (torch.empty(room, dtype=torch.int32, **like) for _ in range(2))
    first_of_tile = torch.empty_like(before)
    first_of_image = torch.empty(images + 1, dtype=torch.int32, **like)
    _gather_keys[tile_programs(images * tiles.count)](
        keys,
        sizes,
        before,
        distinct,
        pixel_count,
        tile,
        first_of_tile,
        first_of_image,
        tiles.top,
        tiles.left,
        tiles.rows,
        tiles.columns,
        images * tiles.count,
        room,
        height,
        width,
        BLOCK=32,
        num_warps=1,
    )
    firsts = first_of_tile, first_of_image
    return TileKeys(distinct, tile, pixel_count, *firsts, total, out_of_range, ranks, None, None)


def _sort_keys(
    keys: Tensor,
    pixels: Tensor,
    tiles: TileLayout,
    images: int,
    out_of_range: Tensor,
    room: int | None,
) -> TileKeys:
    """Find the distinct keys by sorting; `keys` and `pixels` are in tile order."""
    heights, widths = tiles.top.diff(), tiles.left.diff()
    area = (heights[:, None] * widths[None, :]).reshape(-1).repeat(images)
    ends = torch.cumsum(area, 0)
    places = torch.arange(keys.shape[0], dtype=ends.dtype, device=keys.device)
    tile = torch.searchsorted(ends, places, right=True, out_int32=True)
    order = torch.argsort(keys, stable=True)
    order = order[torch.argsort(tile[order], stable=True)]
    keys, tile = keys[order], tile[order]
    is_first = torch.ones_like(tile)
    is_first[1:] = (keys.diff() != 0) | (tile.diff() != 0)
    number = torch.cumsum(is_first, 0, dtype=torch.int32) - 1
    total = number[-1:] + 1
    room = int(total) if room is None else room
    numbers = torch.arange(room + 1, dtype=torch.int32, device=keys.device)
    first_pixel = torch.searchsorted(number, numbers, out_int32=True)
    first_pixel[-1:].fill_(keys.shape[0])
    place = first_pixel[:-1].clamp(max=keys.shape[0] - 1)
    first_of_tile = torch.cat([number.index_select(0, ends - area), total]).clamp(max=room)
    return TileKeys(
        keys.index_select(0, place),
        tile.index_select(0, place),
        first_pixel.diff(),
        first_of_tile,
        first_of_tile[:: tiles.count].contiguous(),
        total,
        out_of_range,
        None,
        pixels.index_select(0, order),
        first_pixel,
    )


@kernel()
def _find_keys(
    pixels,
    affine,
    top,
    left,
    rows,
    columns,
    tiles,
    keys,
    sizes,
    of_pixel,
    counts,
    out_of_range,
    limit,
    height,
    width,
    last_cell,
    C: tl.constexpr,
    FIELD: tl.constexpr,
    MIDDLE: tl.constexpr,
    BLOCK: tl.constexpr,
    RANK: tl.constexpr,
):
    """Compute keys tile by tile.

    With RANK, a tile fits in one block: store its distinct keys and the rank of each pixel's key.
    Without RANK, store the key of each pixel and its place in the batch, in tile order.
    """
    plane = height * width
    most = tl.load(limit)
    if tl.program_id(0) == 0:
        tl.store(counts, 0)  # prefix sums of the counts begin with 0
    matrix = load_affine(affine, C)
    lane = tl.arange(0, BLOCK)
    largest: tl.constexpr = (1 << (FIELD * C)) - 1
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        image, y, below, x, right = tile_bounds(top, left, rows, columns, tile)
        count = (below - y) * (right - x)
        tile_width = tl.maximum(right - x, 1)  # a tile may be empty
        begin = image.to(tl.int64) * plane + y * width + (below - y) * x
        for first in range(0, 1 if RANK else count, BLOCK):
            p = first + lane
            inside = p < count
            dy, dx = divide(p, tile_width)
            pixel = (y + dy) * width + x + dx
            at = image.to(tl.int64) * plane * C + pixel
            bounds = plane, most, last_cell
            key, odd = pixel_keys(pixels, matrix, at, inside, *bounds, C, FIELD, MIDDLE, keys)
            tl.store(out_of_range + lane * 0, 1, mask=odd)
            if RANK:
                into = keys + begin, sizes + begin, of_pixel + begin, counts + tile + 1
                _rank_keys(*into, key, lane, count, largest)
            else:
                tl.store(keys + begin + p, key, mask=inside)
                tl.store(of_pixel + begin + p, (image * plane + pixel).to(tl.int32), mask=inside)


@triton.jit
def _rank_keys(distinct, sizes, ranks, number, key, lane, count, largest: tl.constexpr):
    """Store the distinct keys of a tile in order, their pixel counts, their number, all ranks."""
    inside = lane < count
    key = tl.where(inside, key, largest)
    least = tl.min(key, 0)
    rank = lane * 0
    next_rank, done = tl.zeros((), tl.int32), tl.zeros((), tl.int32)
    while done < count:
        equal = inside & (key == least)
        size = tl.sum(equal.to(tl.int32), 0)
        tl.store(distinct + next_rank, least)
        tl.store(sizes + next_rank, size.to(tl.int16))
        rank = tl.where(equal, next_rank, rank)
        least = tl.min(tl.where(key > least, key, largest), 0)
        next_rank += 1
        done += size
    tl.store(number, next_rank)
    tl.store(ranks + lane, rank.to(tl.int16), mask=inside)


@kernel()
def _gather_keys(
    keys,
    sizes,
    before,
    distinct,
    pixel_count,
    tile_of_key,
    first_of_tile,
    first_of_image,
    top,
    left,
    rows,
    columns,
    tiles,
    room,
    height,
    width,
    BLOCK: tl.constexpr,
):
    """Copy the keys and sizes of each tile from tile order to where its first key belongs."""
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        image, y, below, x, _ = tile_bounds(top, left, rows, columns, tile)
        begin = image.to(tl.int64) * height * width + y * width + (below - y) * x
        low, high = tl.load(before + tile), tl.load(before + tile + 1)
        tl.store(first_of_tile + tile, tl.minimum(low, room))
        if tile == image * rows * columns:
            tl.store(first_of_image + image, tl.minimum(low, room))
        if tile == tiles - 1:
            tl.store(first_of_tile + tiles, tl.minimum(high, room))
            tl.store(first_of_image + image + 1, tl.minimum(high, room))
        for block in range(low, high, BLOCK):
            v = block + tl.arange(0, BLOCK)
            mask = (v < high) & (v < room)
            source = begin + v - low
            tl.store(distinct + v, tl.load(keys + source, mask=mask, other=0), mask=mask)
            size = tl.load(sizes + source, mask=mask, other=0)
            tl.store(pixel_count + v, size.to(tl.int32), mask=mask)
            tl.store(tile_of_key + v, tile, mask=mask)
