"""The distinct colours of each tile, which are its vertices.

A tile of an image has few pixels, and of fewer colours: a program finds the least key of a tile,
then the next, and so on, which come sorted. Where tiles are large, all pixels are sorted instead.
"""

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.grid.layout import Layout
from bilateral.backends.cuda.kernel import kernel

_MOST_PIXELS = 1024
"""Of a tile whose colours are found one by one."""
_BLOCK = 64
"""Of the pixels of larger ones."""
_MOST_PROGRAMS = 8192
"""Of a kernel that goes from tile to tile: to start one takes longer than most tiles."""


class Features(NamedTuple):
    """What is packed into a pixel's key: the cells of its features."""

    affine: Tensor
    """(C, C + 1): cells are the floor of ``affine @ (pixel, 1)``."""
    field: int
    """Bits of a key for each."""
    middle: int
    """Cell 0."""
    limit: float
    """Pixels must be from 0 to this, or they are reported."""

    @property
    def dtype(self) -> torch.dtype:
        """Of keys."""
        return torch.int32 if self.field * self.affine.shape[0] < 32 else torch.int64


class Colours(NamedTuple):
    """The colours of the tiles of a batch, sorted by tile, then by key.

    There may be room for more than there are: what comes after the last is of no meaning.
    """

    keys: Tensor
    tile: Tensor
    """Of each colour."""
    size: Tensor
    """The number of pixels of each; 0 after the last."""
    first: Tensor
    """The first colour of each tile, and their number, as far as there is room."""
    first_of_images: Tensor
    """The first colour of each image, and their number, likewise."""
    total: Tensor
    """Their number, (1,)."""
    strange: Tensor
    """(1,): whether a pixel is not from 0 to the limit, or not a number."""
    local: Tensor | None
    """The colour of each pixel of a tile, counted from the tile's first; tile by tile."""
    members: Tensor | None
    """Instead of `local`: the pixels, sorted by colour; and the first one of each colour."""
    first_member: Tensor | None


def find_colours(pixels: Tensor, tiles: Layout, features: Features, room: int | None) -> Colours:
    """The colours of (B, C, H, W) pixels.

    Without `room` their number is read from the device, and there is just as much.
    """
    images, channels, height, width = pixels.shape
    count = images * tiles.tiles
    size = images * height * width
    like: dict[str, Any] = {"device": pixels.device}
    keys = torch.empty(size, dtype=features.dtype, **like)
    counts = torch.empty(count + 1, dtype=torch.int32, **like)
    if pixels.dtype == torch.uint8:  # in range, always
        strange = constant((0,), torch.int32, pixels.device)
    else:
        strange = torch.zeros(1, dtype=torch.int32, **like)
    few = tiles.most <= _MOST_PIXELS
    sizes = torch.empty(size, dtype=torch.int16, **like) if few else None
    local = torch.empty(size, dtype=torch.int16 if few else torch.int32, **like)
    numbers = constant((features.limit,), torch.float64, pixels.device)
    tables = tiles.top, tiles.left, tiles.rows, tiles.columns
    programs = tile_programs(count)
    _find_keys[programs](
        pixels.contiguous(),
        features.affine,
        *tables,
        count,
        keys,
        sizes,
        local,
        counts,
        strange,
        numbers,
        height,
        width,
        C=channels,
        FIELD=features.field,
        MIDDLE=features.middle,
        BLOCK=max(32, triton.next_power_of_2(tiles.most)) if few else _BLOCK,
        RANK=few,
        num_warps=1,
    )
    if not few:
        return _sorted_colours(keys, local, tiles, images, strange, room)
    before = torch.cumsum(counts, 0, dtype=torch.int32)
    total = before[-1:]
    found = int(total) if room is None else room
    own_keys = torch.empty(found, dtype=keys.dtype, **like)
    tile, own_size = (torch.empty(found, dtype=torch.int32, **like) for _ in range(2))
    first = torch.empty_like(before)
    first_of_images = torch.empty(images + 1, dtype=torch.int32, **like)
    _gather_keys[programs](
        keys,
        sizes,
        before,
        own_keys,
        own_size,
        tile,
        first,
        first_of_images,
        *tables,
        count,
        found,
        height,
        width,
        BLOCK=32,
        num_warps=1,
    )
    firsts = first, first_of_images
    return Colours(own_keys, tile, own_size, *firsts, total, strange, local, None, None)


def tile_programs(tiles: int) -> tuple[int]:
    """How many programs share so many tiles."""
    return (min(tiles, _MOST_PROGRAMS),)


def _sorted_colours(
    keys: Tensor,
    pixels: Tensor,
    tiles: Layout,
    images: int,
    strange: Tensor,
    room: int | None,
) -> Colours:
    """The same from keys and pixels in the order of tiles, by sorting."""
    heights, widths = tiles.top.diff(), tiles.left.diff()
    area = (heights[:, None] * widths[None, :]).reshape(-1).repeat(images)
    ends = torch.cumsum(area, 0)
    at = torch.arange(keys.shape[0], dtype=ends.dtype, device=keys.device)
    tile = torch.searchsorted(ends, at, right=True, out_int32=True)
    order = torch.argsort(keys, stable=True)
    order = order[torch.argsort(tile[order], stable=True)]
    keys, tile = keys[order], tile[order]
    new = torch.ones_like(tile)
    new[1:] = (keys.diff() != 0) | (tile.diff() != 0)
    number = torch.cumsum(new, 0, dtype=torch.int32) - 1
    total = number[-1:] + 1
    found = int(total) if room is None else room
    every = torch.arange(found + 1, dtype=torch.int32, device=keys.device)
    first_member = torch.searchsorted(number, every, out_int32=True)
    first_member[-1:].fill_(keys.shape[0])
    own = first_member[:-1].clamp(max=keys.shape[0] - 1)
    first = torch.cat([number.index_select(0, ends - area), total]).clamp(max=found)
    return Colours(
        keys.index_select(0, own),
        tile.index_select(0, own),
        first_member.diff(),
        first,
        first[:: tiles.tiles].contiguous(),
        total,
        strange,
        None,
        pixels.index_select(0, order),
        first_member,
    )


@triton.jit
def divide(a, b):
    """Quotient and rest of numbers that are not below 0: knowing that saves instructions."""
    whole = (tl.cast(a, tl.uint32) // tl.cast(b, tl.uint32)).to(tl.int32)
    return whole, a - whole * b


@triton.jit
def tile_bounds(top, left, rows, columns, tile):
    """Image, first and last row and column of a tile."""
    image, within = divide(tile, rows * columns)
    row, column = divide(within, columns)
    y, below = tl.load(top + row), tl.load(top + row + 1)
    x, right = tl.load(left + column), tl.load(left + column + 1)
    return image, y, below, x, right


@triton.jit
def tile_pixels(top, left, rows, columns, tile, height, width, p):
    """Which p are pixels of a tile, where they are in the batch, and where the tile's own begin.

    The latter in the order of tiles.
    """
    image, y, below, x, right = tile_bounds(top, left, rows, columns, tile)
    down, aside = divide(p, right - x)
    start = image.to(tl.int64) * height * width
    pixel = start + (y + down) * width + x + aside
    return p < (below - y) * (right - x), pixel, start + y * width + (below - y) * x


@triton.jit
def _key(
    pixels,
    affine,
    at,
    inside,
    size,
    limit,
    C: tl.constexpr,
    FIELD: tl.constexpr,
    MIDDLE: tl.constexpr,
    keys,
):
    """Cells of a pixel's features, packed, and whether one of its channels is out of range."""
    key = tl.zeros_like(at).to(keys.dtype.element_ty)
    zero = tl.zeros_like(at).to(tl.float64)
    BYTES: tl.constexpr = pixels.dtype.element_ty == tl.uint8
    strange = inside & (zero > 0)
    for k in tl.static_range(C):
        cell = affine[k * (C + 1) + C] + MIDDLE + zero
        for c in tl.static_range(C):
            value = tl.load(pixels + at + c * size, mask=inside, other=0).to(tl.float64)
            cell += affine[k * (C + 1) + c] * value
            if not BYTES:
                strange = strange | (inside & ((value >= 0) & (value <= limit) == 0))
        if BYTES and MIDDLE == 0:  # cells fit, but for rounding
            cell = tl.minimum(cell.to(keys.dtype.element_ty), (1 << FIELD) - 1)
        else:
            cell = tl.minimum(tl.maximum(cell, 0.0), (1 << FIELD) - 1.0).to(keys.dtype.element_ty)
        key |= cell << (k * FIELD)
    return key, strange


@kernel("rows", "columns", "tiles", "height", "width")
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
    local,
    counts,
    strange,
    numbers,
    height,
    width,
    C: tl.constexpr,
    FIELD: tl.constexpr,
    MIDDLE: tl.constexpr,
    BLOCK: tl.constexpr,
    RANK: tl.constexpr,
):
    """The keys of tiles, and the pixels beside them.

    To rank takes tiles of one block: the distinct keys, sorted, and each pixel's place among them.
    """
    size = height * width
    limit = tl.load(numbers)
    if tl.program_id(0) == 0:
        tl.store(counts, 0)  # before the first
    matrix = ()
    for k in tl.static_range(C * (C + 1)):
        matrix += (tl.load(affine + k),)  # type: ignore[assignment]
    lane = tl.arange(0, BLOCK)
    most: tl.constexpr = (1 << (FIELD * C)) - 1  # of a key
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        image, y, below, x, right = tile_bounds(top, left, rows, columns, tile)
        count, across = (below - y) * (right - x), right - x
        begin = image.to(tl.int64) * size + y * width + (below - y) * x
        for first in range(0, 1 if RANK else count, BLOCK):
            p = first + lane
            inside = p < count
            down, aside = divide(p, across)
            pixel = (y + down) * width + x + aside
            at = image.to(tl.int64) * size * C + pixel
            key, odd = _key(pixels, matrix, at, inside, size, limit, C, FIELD, MIDDLE, keys)
            tl.store(strange + lane * 0, 1, mask=odd)
            if RANK:
                into = keys + begin, sizes + begin, local + begin, counts + tile + 1
                _rank_block(*into, key, lane, count, most)
            else:
                tl.store(keys + begin + p, key, mask=inside)
                tl.store(local + begin + p, (image * size + pixel).to(tl.int32), mask=inside)


@triton.jit
def _rank_block(keys, sizes, local, counts, key, lane, count, most: tl.constexpr):
    """The distinct ones of a block of keys, sorted, how many have each, and each one's place."""
    inside = lane < count
    key = tl.where(inside, key, most)
    least = tl.min(key, 0)
    rank = lane * 0
    found, done = tl.zeros((), tl.int32), tl.zeros((), tl.int32)
    while done < count:
        mine = inside & (key == least)
        number = tl.sum(mine.to(tl.int32), 0)
        tl.store(keys + found, least)
        tl.store(sizes + found, number.to(tl.int16))
        rank = tl.where(mine, found, rank)
        least = tl.min(tl.where(key > least, key, most), 0)
        found += 1
        done += number
    tl.store(counts, found)
    tl.store(local + lane, rank.to(tl.int16), mask=inside)


@kernel("rows", "columns", "tiles", "room", "height", "width")
def _gather_keys(
    keys,
    sizes,
    before,
    own_keys,
    own_size,
    own_tile,
    first,
    first_of_images,
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
    """The distinct keys of tiles and their sizes, to where they belong."""
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        image, y, below, x, _ = tile_bounds(top, left, rows, columns, tile)
        begin = image.to(tl.int64) * height * width + y * width + (below - y) * x
        low, high = tl.load(before + tile), tl.load(before + tile + 1)
        tl.store(first + tile, tl.minimum(low, room))
        if tile == image * rows * columns:
            tl.store(first_of_images + image, tl.minimum(low, room))
        if tile == tiles - 1:
            tl.store(first + tiles, tl.minimum(high, room))
            tl.store(first_of_images + image + 1, tl.minimum(high, room))
        for at in range(low, high, BLOCK):
            v = at + tl.arange(0, BLOCK)
            mask = (v < high) & (v < room)
            at_v = begin + v - low
            tl.store(own_keys + v, tl.load(keys + at_v, mask=mask, other=0), mask=mask)
            size = tl.load(sizes + at_v, mask=mask, other=0)
            tl.store(own_size + v, size.to(tl.int32), mask=mask)
            tl.store(own_tile + v, tile, mask=mask)
