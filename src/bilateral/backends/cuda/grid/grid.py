"""The bilateral grids of a batch of images, and their pyramids."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.grid.colours import (
    Colours,
    Features,
    find_colours,
    tile_pixels,
    tile_programs,
)
from bilateral.backends.cuda.grid.edges import Edges
from bilateral.backends.cuda.grid.layout import Layout, layout
from bilateral.backends.cuda.grid.neighbours import find_neighbours
from bilateral.backends.cuda.grid.order import Order, sort_vertices
from bilateral.backends.cuda.grid.pyramid import Pyramid, build_pyramid
from bilateral.backends.cuda.kernel import kernel

_FIELD = 10
"""Most bits of a feature in a key of 32 bits."""
_WIDE = 21
"""Bits in one of 64: cell 0 is in the middle, so that values may be below 0 and above the limit."""
_EDGE_GUARD = 1e-9  # as in core/reference.hpp
_PROGRAMS = 512
"""Of a kernel that sums: enough to fill a device, few enough to add up their parts."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Vertices and edges of all images of a batch."""

    shape: tuple[int, int, int]
    """Images, height and width."""
    tiles: Layout
    colours: Colours
    order: Order
    parent: Tensor
    """The vertex of each pixel, which are counted through the batch."""
    mass: Tensor
    """The number of pixels of each vertex."""
    edges: Edges
    features: int
    first_vertex: Tensor
    """Of each image, and their number."""
    depth: int
    """Of the pyramid."""
    upper: Sequence[int] | None
    """The pyramid's rooms, if nothing may be read from the device."""

    @cached_property
    def pyramid(self) -> Pyramid:
        """Built when it is asked for: with multigrid only parts without data need it."""
        return build_pyramid(
            self.order, self.colours, self.first_vertex, self.depth, self.programs, self.upper
        )

    @property
    def room(self) -> int:
        """For how many vertices there is; those that are, are `total`."""
        return self.mass.shape[0]

    @property
    def total(self) -> Tensor:
        """The number of vertices, (1,), which only the device knows."""
        return self.colours.total

    @property
    def rooms(self) -> tuple[int, int, int]:
        """Of the vertices, of the pyramid's first level and of all others."""
        return self.room, *self.pyramid.rooms

    @property
    def programs(self) -> int:
        """Per image, of a kernel that sums: by pixels, so that sums do not depend on the room."""
        return max(1, min(_PROGRAMS, math.prod(self.shape) // 64) // self.shape[0])


def build_grid(
    pixels: Tensor,
    matrix: Sequence[Sequence[float]],
    offset: Sequence[float],
    sigmas: Sequence[float],
    highest: float,
    sigma_xy: float,
    rooms: Sequence[int] | None = None,
) -> Grid:
    """Vertices and edges of (B, C, H, W) pixels with the features ``matrix @ p + offset``.

    Pixels are from 0 to `highest` as a rule. Without `rooms`, as of the grid, the host waits for
    the device to tell how much it takes.
    """
    images, channels, height, width = pixels.shape
    tiles = layout(height, width, float(sigma_xy), pixels.device)
    if not pixels.dtype.is_floating_point:
        highest = max(highest, float(torch.iinfo(pixels.dtype).max))
        if pixels.dtype == torch.int32:  # made from 16 bits
            highest = min(highest, 65535.0)
    features = features_of(matrix, offset, sigmas, highest, pixels.device)
    colours = find_colours(pixels, tiles, features, None if rooms is None else rooms[0])
    unsure = pixels.dtype.is_floating_point and features.field <= _FIELD
    if rooms is None and unsure and bool(colours.strange):
        features = features_of(matrix, offset, sigmas, math.inf, pixels.device)
        colours = find_colours(pixels, tiles, features, None)
    order = sort_vertices(colours, tiles, features, images)
    parent = _assign(colours, order, tiles, (images, height, width))
    edges = find_neighbours(colours, order, tiles, features)
    first_vertex = colours.first_of_images
    depth = min(len(order.below) - 1, _depth(tiles, matrix, offset, sigmas, highest))
    return Grid(
        (images, height, width),
        tiles,
        colours,
        order,
        parent,
        order.mass,
        edges,
        channels,
        first_vertex,
        depth,
        None if rooms is None else rooms[1:],
    )


def features_of(
    matrix: Sequence[Sequence[float]],
    offset: Sequence[float],
    sigmas: Sequence[float],
    highest: float,
    device: torch.device,
) -> Features:
    """Keys of 32 bits, if cells of pixels from 0 to `highest` fit; else of 64, for any pixels."""
    rows = tuple(
        (*(value / sigma for value in row), at / sigma + _EDGE_GUARD)
        for row, at, sigma in zip(matrix, offset, sigmas, strict=True)
    )
    affine = constant(rows, torch.float64, device)
    least = min(sum(min(v, 0.0) for v in row[:-1]) * highest + row[-1] for row in rows)
    most = max(sum(max(v, 0.0) for v in row[:-1]) * highest + row[-1] for row in rows)
    if least >= 0 and most < 2**_FIELD:
        return Features(affine, max(1, int(most).bit_length()), 0, highest)
    return Features(affine, _WIDE, 1 << (_WIDE - 1), math.inf)


def _depth(
    tiles: Layout,
    matrix: Sequence[Sequence[float]],
    offset: Sequence[float],
    sigmas: Sequence[float],
    highest: float,
) -> int:
    """How often cells are halved until they are one, if pixels are from 0 to `highest`."""
    cells = max(
        abs(sum(map(abs, row)) * highest + abs(at)) / sigma
        for row, at, sigma in zip(matrix, offset, sigmas, strict=True)
    )
    return max(math.ceil(math.log2(cells + 1)) + 1, *tiles.bits, 1)


def _assign(colours: Colours, order: Order, tiles: Layout, shape: tuple[int, int, int]) -> Tensor:
    """The vertex of each pixel."""
    images, height, width = shape
    size, room = math.prod(shape), colours.keys.shape[0]
    parent = torch.empty(size, dtype=torch.int32, device=order.rank.device)
    if colours.local is None:
        assert colours.members is not None
        assert colours.first_member is not None
        at = torch.arange(size, dtype=torch.int32, device=parent.device)
        first = colours.first_member[:-1].contiguous()
        colour = torch.searchsorted(first, at, right=True) - 1
        parent[colours.members.long()] = order.rank[colour]
        return parent
    _follow[tile_programs(images * tiles.tiles)](
        colours.local,
        colours.first,
        order.rank,
        parent,
        tiles.top,
        tiles.left,
        tiles.rows,
        tiles.columns,
        images * tiles.tiles,
        room,
        height,
        width,
        BLOCK=max(32, triton.next_power_of_2(tiles.most)),
        num_warps=1,
    )
    return parent


@kernel("rows", "columns", "tiles", "room", "height", "width")
def _follow(
    local,
    first,
    rank,
    parent,
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
    """The vertices of tiles' pixels."""
    p = tl.arange(0, BLOCK)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        tables = top, left, rows, columns
        inside, pixel, begin = tile_pixels(*tables, tile, height, width, p)
        colour = tl.load(first + tile) + tl.load(local + begin + p, mask=inside, other=0)
        vertex = tl.load(rank + tl.minimum(colour, room - 1), mask=inside, other=0)
        tl.store(parent + pixel, vertex, mask=inside)
