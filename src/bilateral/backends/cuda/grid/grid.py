"""Build the bilateral grids of a batch of images."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.grid.edges import Edges
from bilateral.backends.cuda.grid.image_parts import MAX_PROGRAMS
from bilateral.backends.cuda.grid.keys import TileKeys, find_keys
from bilateral.backends.cuda.grid.neighbours import find_neighbours
from bilateral.backends.cuda.grid.order import Order, sort_vertices
from bilateral.backends.cuda.grid.pyramid import Pyramid, build_pyramid
from bilateral.backends.cuda.grid.reference import NARROW_FIELD, make_binning
from bilateral.backends.cuda.grid.tiles import TileLayout, tile_layout, tile_pixels, tile_programs
from bilateral.backends.cuda.kernel import kernel


@dataclass(frozen=True, eq=False)
class Grid:
    """Vertices and edges of all images of a batch."""

    shape: tuple[int, int, int]
    """Images, height and width."""
    tiles: TileLayout
    tile_keys: TileKeys
    order: Order
    parent: Tensor
    """(pixels,) int32: vertex of each pixel, counted through the batch."""
    mass: Tensor
    """(room,) int32: number of pixels of each vertex."""
    edges: Edges
    features: int
    """Number of range features."""
    first_vertex: Tensor
    """(images + 1,) int32: first vertex of each image, then the number of vertices."""
    depth: int
    """Number of levels of the pyramid above the grid."""
    pyramid_rooms: Sequence[int] | None
    """Room of the pyramid's first level and of all others; None: read it from the device."""
    image_pixels: Tensor | None = None
    """(1,) float64: number of pixels of an image, known to the device only; None: as `shape`."""

    @cached_property
    def pyramid(self) -> Pyramid:
        """The pyramid, built on first use: multigrid needs it only where there are no data."""
        return build_pyramid(
            self.order,
            self.tile_keys,
            self.first_vertex,
            self.depth,
            self.programs,
            self.pyramid_rooms,
        )

    @property
    def room(self) -> int:
        """Number of vertices that there is memory for; `total` of them exist."""
        return self.mass.shape[0]

    @property
    def total(self) -> Tensor:
        """(1,) int32: number of vertices, known to the device only."""
        return self.tile_keys.total

    @property
    def rooms(self) -> tuple[int, int, int]:
        """Rooms of the vertices, of the pyramid's first level and of all its other levels."""
        return self.room, *self.pyramid.rooms

    @property
    def programs(self) -> int:
        """Programs per image of a kernel that sums.

        Their number depends on the pixels only, so that sums do not depend on the room.
        """
        return max(1, min(MAX_PROGRAMS, math.prod(self.shape) // 64) // self.shape[0])


def build_grid(
    pixels: Tensor,
    matrix: Sequence[Sequence[float]],
    offset: Sequence[float],
    sigmas: Sequence[float],
    highest: float,
    sigma_xy: float,
    rooms: Sequence[int] | None = None,
    *,
    edge_guard: float,
    largest: float = sys.float_info.max,
    tiles: TileLayout | None = None,
    image_pixels: Tensor | None = None,
) -> Grid:
    """Build the grids of a batch of images.

    Parameters
    ----------
    pixels : Tensor
        Reference images (B, C, H, W).
    matrix, offset : sequences of float
        The features of a pixel p are ``matrix @ p + offset``.
    sigmas : sequence of float
        Size of a cell along each feature.
    highest : float
        Pixels are usually from 0 to this value.
    sigma_xy : float
        Size of a cell in x and y, in pixels.
    rooms : sequence of int, optional
        As `Grid.rooms`. Without them, the host waits for the device to learn the sizes.
    edge_guard : float
        Added to each coordinate, in cells, before it is rounded down.
    largest : float
        Largest valid pixel. Larger ones are reported, even if keys can hold their cells.
    tiles : TileLayout, optional
        Default: those of images of this size.
    image_pixels : Tensor, optional
        As `Grid.image_pixels`.
    """
    images, channels, height, width = pixels.shape
    tiles = tiles or tile_layout(height, width, float(sigma_xy), edge_guard, pixels.device)
    if not pixels.dtype.is_floating_point:
        highest = max(highest, float(torch.iinfo(pixels.dtype).max))
        if pixels.dtype == torch.int32:  # converted from 16 bits
            highest = min(highest, 65535.0)
    bins = make_binning(matrix, offset, sigmas, highest, edge_guard, pixels.device, largest)
    tile_keys = find_keys(pixels, tiles, bins, None if rooms is None else rooms[0])
    may_exceed = pixels.dtype.is_floating_point and bins.field <= NARROW_FIELD
    if rooms is None and may_exceed and bool(tile_keys.out_of_range):
        bins = make_binning(matrix, offset, sigmas, math.inf, edge_guard, pixels.device, largest)
        tile_keys = find_keys(pixels, tiles, bins, None)
    order = sort_vertices(tile_keys, tiles, bins, images)
    parent = assign_pixels(
        tile_keys, order, tiles, (images, height, width), all_in_tiles=image_pixels is None
    )
    edges = find_neighbours(tile_keys, order, tiles, bins)
    depth = min(len(order.lost_bits) - 1, _depth(tiles, matrix, offset, sigmas, highest))
    return Grid(
        (images, height, width),
        tiles,
        tile_keys,
        order,
        parent,
        order.mass,
        edges,
        channels,
        tile_keys.first_of_image,
        depth,
        None if rooms is None else rooms[1:],
        image_pixels,
    )


def _depth(
    tiles: TileLayout,
    matrix: Sequence[Sequence[float]],
    offset: Sequence[float],
    sigmas: Sequence[float],
    highest: float,
) -> int:
    """Return how often coordinates must be halved until one cell is left."""
    cells = max(
        abs(sum(map(abs, row)) * highest + abs(shift)) / sigma
        for row, shift, sigma in zip(matrix, offset, sigmas, strict=True)
    )
    return max(math.ceil(math.log2(cells + 1)) + 1, *tiles.bits, 1)


def assign_pixels(
    tile_keys: TileKeys,
    order: Order,
    tiles: TileLayout,
    shape: tuple[int, int, int],
    *,
    all_in_tiles: bool,
) -> Tensor:
    """Return the vertex of each pixel, (pixels,) int32; the first one for pixels in no tile."""
    images, height, width = shape
    pixel_count, room = math.prod(shape), tile_keys.keys.shape[0]
    new = torch.empty if all_in_tiles else torch.zeros
    parent = new(pixel_count, dtype=torch.int32, device=order.vertex_of_key.device)
    if tile_keys.ranks is None:
        assert tile_keys.sorted_pixels is not None
        assert tile_keys.first_pixel is not None
        places = torch.arange(pixel_count, dtype=torch.int32, device=parent.device)
        first = tile_keys.first_pixel[:-1].contiguous()
        key = torch.searchsorted(first, places, right=True) - 1
        parent[tile_keys.sorted_pixels.long()] = order.vertex_of_key[key]
        return parent
    _assign_pixels[tile_programs(images * tiles.count)](
        tile_keys.ranks,
        tile_keys.first_of_tile,
        order.vertex_of_key,
        parent,
        tiles.top,
        tiles.left,
        tiles.rows,
        tiles.columns,
        images * tiles.count,
        room,
        height,
        width,
        BLOCK=max(32, triton.next_power_of_2(tiles.max_pixels)),
        num_warps=1,
    )
    return parent


@kernel()
def _assign_pixels(
    ranks,
    first_of_tile,
    vertex_of_key,
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
    """Store the vertex of each pixel, tile by tile."""
    p = tl.arange(0, BLOCK)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        tables = top, left, rows, columns
        inside, pixel, begin = tile_pixels(*tables, tile, height, width, p)
        key = tl.load(first_of_tile + tile) + tl.load(ranks + begin + p, mask=inside, other=0)
        vertex = tl.load(vertex_of_key + tl.minimum(key, room - 1), mask=inside, other=0)
        tl.store(parent + pixel, vertex, mask=inside)
