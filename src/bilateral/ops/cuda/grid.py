"""The bilateral grids of a batch of images, and their pyramids."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.ops.cuda.constants import constant
from bilateral.ops.cuda.grouping import Groups, group
from bilateral.ops.cuda.layout import Layout, layout
from bilateral.ops.cuda.neighbours import find_neighbours

_FIELD: tl.constexpr = tl.constexpr(21)
"""Bits of a key for each feature, so that three fit."""
_MIDDLE = 2**20
"""Cell 0 in a field: so many times it can be halved."""
_HALF = sum((2**20 - 1) << (21 * k) for k in range(3))
_EDGE_GUARD = 1e-9  # as in core/reference.hpp


class Grid(NamedTuple):
    """Vertices and edges of all images of a batch."""

    shape: tuple[int, int, int]
    """Images, height and width."""
    vertices: Groups
    """Of pixels, which are counted through the batch."""
    neighbours: Tensor
    """(2 d, vertices): next and previous along x, y, then the features; -1 for none."""
    features: int
    first_vertex: Tensor
    """Of each image, and their number."""
    levels: tuple[Groups, ...]
    """The pyramid, finest first; the items of the first one are the vertices."""

    @property
    def room(self) -> int:
        """For how many vertices there is; those that are, are `vertices.total`."""
        return self.vertices.room

    def finer(self, k: int) -> Groups:
        """What level k is made of. With one vertex per image, the level is one too many."""
        return self.levels[k - 1] if k > 0 else self.vertices

    @property
    def rooms(self) -> tuple[int, ...]:
        """Of the vertices and of all levels."""
        return tuple(groups.room for groups in (self.vertices, *self.levels))

    @property
    def overflow(self) -> Tensor:
        """Whether there was too little room anywhere, or too few levels."""
        totals = torch.cat([groups.total for groups in (self.vertices, *self.levels)])
        limits = constant((*self.rooms[:-1], self.shape[0]), torch.int32, totals.device)
        return (totals > limits).any()


def build_grid(
    pixels: Tensor,
    matrix: Sequence[Sequence[float]],
    offset: Sequence[float],
    sigmas: Sequence[float],
    highest: float,
    sigma_xy: float,
    rooms: Sequence[int] | None = None,
) -> Grid:
    """Vertices, edges and pyramid of (B, C, H, W) pixels with the features ``matrix @ p + offset``.

    Pixels are from 0 to `highest` as a rule. Without `rooms`, for the vertices and for each level,
    the host waits for the device to tell how much it takes.
    """
    images, channels, height, width = pixels.shape
    tiles = layout(height, width, float(sigma_xy), pixels.device)
    keys, slots = _pixel_keys(pixels, tiles, matrix, offset, sigmas)
    counted = tiles.first_pixel[:-1]
    first_pixel = _batch(counted, height * width, images)
    vertices = group(keys, first_pixel, None if rooms is None else rooms[0], slots)
    units = [1 << (21 * k) for k in range(channels)]
    right = _batch_tiles(tiles.right, tiles.tiles, images)
    below = _batch_tiles(tiles.below, tiles.tiles, images)
    neighbours = find_neighbours(vertices, right, below, units)
    first_vertex = vertices.first[:: tiles.tiles].contiguous()
    cells = max(
        abs(sum(map(abs, row)) * highest + abs(at)) / sigma
        for row, at, sigma in zip(matrix, offset, sigmas, strict=True)
    )
    depth = math.ceil(math.log2(cells + 1)) + 1
    depth = max(depth, len(tiles.finer)) if rooms is None else len(rooms) - 1
    levels = _pyramid(vertices, tiles, images, depth, rooms)
    return Grid((images, height, width), vertices, neighbours, channels, first_vertex, levels)


def _pyramid(
    vertices: Groups, tiles: Layout, images: int, depth: int, rooms: Sequence[int] | None
) -> tuple[Groups, ...]:
    """Halve all coordinates until there is one vertex per image, or all cells are one.

    With `rooms` there are as many levels, whether it takes them or not.
    """
    levels: list[Groups] = []
    below, count = vertices, tiles.tiles
    for k in range(depth):
        if rooms is None and below.room <= images:
            break
        keys = (below.keys >> 1) & _HALF
        if k < len(tiles.finer):
            finer = tiles.finer[k]
        else:
            finer = constant((0, 1), torch.int32, keys.device)
        starts = _batch(finer[:-1], count, images)
        first_item = below.first[starts.long()]
        below = group(keys, first_item, None if rooms is None else rooms[k + 1])
        levels.append(below)
        count = finer.shape[0] - 1
    return tuple(levels)


def _batch(first: Tensor, size: int, images: int) -> Tensor:
    """First things of the tiles of one image, of all images one after another, and the total."""
    starts = torch.arange(images, dtype=torch.int32, device=first.device) * size
    many = (starts[:, None] + first[None, :]).reshape(-1)
    end = torch.full((1,), images * size, dtype=torch.int32, device=first.device)
    return torch.cat([many, end])


def _batch_tiles(tile: Tensor, tiles: int, images: int) -> Tensor:
    """Numbers of tiles in all images, -1 where there is none."""
    starts = torch.arange(images, dtype=torch.int32, device=tile.device) * tiles
    many = torch.where(tile >= 0, tile + starts[:, None], -1)
    return many.reshape(-1).to(torch.int32)


def _pixel_keys(
    pixels: Tensor,
    tiles: Layout,
    matrix: Sequence[Sequence[float]],
    offset: Sequence[float],
    sigmas: Sequence[float],
) -> tuple[Tensor, Tensor]:
    """The keys of all pixels in the order of tiles, and which pixels they are."""
    images, channels, height, width = pixels.shape
    count = images * height * width
    keys = torch.empty(count, dtype=torch.int64, device=pixels.device)
    slots = torch.empty(count, dtype=torch.int32, device=pixels.device)
    rows = [[value / sigma for value in row] for row, sigma in zip(matrix, sigmas, strict=True)]
    shift = [at / sigma + _EDGE_GUARD + _MIDDLE for at, sigma in zip(offset, sigmas, strict=True)]
    table = tuple((*row, at) for row, at in zip(rows, shift, strict=True))
    affine = constant(table, torch.float64, pixels.device)
    block = 1024
    _find_keys[(triton.cdiv(count, block),)](
        pixels.contiguous(),
        affine,
        tiles.column,
        tiles.left,
        tiles.width,
        tiles.row,
        tiles.top,
        tiles.number,
        tiles.first_pixel,
        keys,
        slots,
        count,
        height,
        width,
        tiles.columns,
        C=channels,
        BLOCK=block,
    )
    return keys, slots


@triton.jit
def _find_keys(
    pixels,
    affine,
    column,
    left,
    widths,
    row,
    top,
    number,
    first_pixel,
    keys,
    slots,
    n,
    height,
    width,
    columns,
    C: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Cells of a pixel's features, packed into a key, and its place among the tiles' pixels."""
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = p < n
    size = height * width
    image, at = p // size, p % size
    y, x = at // width, at % width
    base = image.to(tl.int64) * size * C + at
    key = tl.zeros((BLOCK,), tl.int64)
    for k in tl.static_range(C):
        value = tl.load(affine + k * (C + 1) + C)
        cell = tl.zeros((BLOCK,), tl.float64) + value
        for c in tl.static_range(C):
            channel = tl.load(pixels + base + c * size, mask=mask, other=0).to(tl.float64)
            cell += tl.load(affine + k * (C + 1) + c) * channel
        cell = tl.minimum(tl.maximum(cell, 1.0), 2097150.0)
        key |= cell.to(tl.int64) << (k * _FIELD)
    tile_column, tile_row = (
        tl.load(column + x, mask=mask, other=0),
        tl.load(row + y, mask=mask, other=0),
    )
    tile = tl.load(number + tile_row * columns + tile_column, mask=mask, other=0)
    inside = (y - tl.load(top + y, mask=mask, other=0)) * tl.load(
        widths + x, mask=mask, other=0
    ) + (x - tl.load(left + x, mask=mask, other=0))
    slot = image * size + tl.load(first_pixel + tile, mask=mask, other=0) + inside
    tl.store(keys + slot, key, mask=mask)
    tl.store(slots + slot, p, mask=mask)
