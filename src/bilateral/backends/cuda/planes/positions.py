"""Locate vertices: the mean position of their pixels, and the spread of the pixels around it.

Positions are x and y of pixels, each divided by the size of a cell.
"""

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.grid.grid import Grid
from bilateral.backends.cuda.grid.splat import splat
from bilateral.backends.cuda.grid.tiles import tile_pixels, tile_programs
from bilateral.backends.cuda.kernel import kernel


@dataclass(frozen=True)
class Positions:
    """Positions of the vertices of a batch."""

    cell: Tensor
    """() float64: cells per pixel."""
    centre: Tensor
    """(room, 2) float64: mean position of each vertex's pixels."""
    pixel_moments: Tensor
    """(room, 4) float64: number of pixels, and the sums of their products of offsets from the
    centre: x x, x y and y y."""


def find_positions(grid: Grid, sigma_xy: float) -> Positions:
    """Find the positions of all vertices."""
    like: dict[str, Any] = {"dtype": torch.float64, "device": grid.mass.device}
    cell = constant(1 / sigma_xy, torch.float64, grid.mass.device)
    centre = torch.empty((grid.room, 2), **like)
    moments = torch.empty((grid.room, 4), **like)
    if grid.tile_keys.ranks is None:
        mass = grid.mass[:, None].to(torch.float64)
        at = pixel_positions(grid, cell)
        centre = splat(grid, at) / mass
        at = at - centre.index_select(0, grid.parent)
        x, y = at[:, :1], at[:, 1:]
        spread = [splat(grid, product) for product in (x * x, x * y, y * y)]
        return Positions(cell, centre, torch.cat([mass, *spread], 1))
    images, height, width = grid.shape
    tiles = grid.tiles
    _find_positions[tile_programs(images * tiles.count)](
        *(cell, centre, moments),
        *(grid.tile_keys.ranks, grid.tile_keys.first_of_tile, grid.order.vertex_of_key),
        *(tiles.top, tiles.left, tiles.rows, tiles.columns),
        *(images * tiles.count, height, width),
        BLOCK=max(32, triton.next_power_of_2(tiles.max_pixels)),
        num_warps=1,
    )
    return Positions(cell, centre, moments)


def pixel_positions(grid: Grid, cell: Tensor) -> Tensor:
    """Return the position of each pixel of a batch, (B H W, 2) float64."""
    images, height, width = grid.shape
    like: dict[str, Any] = {"dtype": torch.float64, "device": cell.device}
    x = (torch.arange(width, **like) * cell).expand(images, height, width)
    y = (torch.arange(height, **like) * cell)[:, None].expand(images, height, width)
    return torch.stack([x, y], 3).view(-1, 2)


@triton.jit
def coordinates(pixel, height, width):
    """Return column and row of pixels of a batch, and their images."""
    line = pixel // width
    return pixel - line * width, line % height, line // height


@kernel()
def _find_positions(
    cell,
    centre,
    moments,
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
    BLOCK: tl.constexpr,
):
    """Store centre and moments of each vertex, tile by tile."""
    p = tl.arange(0, BLOCK)
    size = tl.load(cell)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        tables = top, left, rows, columns
        inside, pixel, begin = tile_pixels(*tables, tile, height, width, p)
        rank = tl.load(ranks + begin + p, mask=inside, other=-1).to(tl.int32)
        column, row, _ = coordinates(pixel, height, width)
        x, y = column.to(tl.float64), row.to(tl.float64)
        low, high = tl.load(first_of_tile + tile), tl.load(first_of_tile + tile + 1)
        for key in range(low, high):
            equal = rank == key - low
            mass = tl.sum(tl.where(equal, 1.0, 0.0).to(tl.float64), 0)
            mean_x = tl.sum(tl.where(equal, x, 0.0), 0) / mass
            mean_y = tl.sum(tl.where(equal, y, 0.0), 0) / mass
            dx = tl.where(equal, (x - mean_x) * size, 0.0)
            dy = tl.where(equal, (y - mean_y) * size, 0.0)
            v = tl.load(vertex_of_key + key).to(tl.int64)
            tl.store(centre + v * 2, mean_x * size)
            tl.store(centre + v * 2 + 1, mean_y * size)
            tl.store(moments + v * 4, mass)
            tl.store(moments + v * 4 + 1, tl.sum(dx * dx, 0))
            tl.store(moments + v * 4 + 2, tl.sum(dx * dy, 0))
            tl.store(moments + v * 4 + 3, tl.sum(dy * dy, 0))
