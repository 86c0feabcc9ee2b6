"""Divide images into tiles, the cells of the grid in x and y."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from bilateral.backends.cuda.constants import hold

_MAX_CELLS = 2.0**20
"""Most cells along an axis. Smaller cells have no use, since images have fewer pixels."""
_MAX_PROGRAMS = 8192
"""Most programs of a kernel that loops over tiles: to start one takes longer than most tiles."""

Table = NDArray[np.int64]


@dataclass(frozen=True)
class TileLayout:
    """The tiles of all images of one size, row by row. Tables are on a device."""

    rows: int
    columns: int
    top: Tensor
    """(rows + 1,) int32: first y of each row of tiles, then the image's height."""
    left: Tensor
    """(columns + 1,) int32: first x of each column of tiles, then the image's width."""
    row_cell: Tensor
    """(rows,) int32: coordinate of each row. Where cells are below a pixel, it skips numbers."""
    column_cell: Tensor
    """(columns,) int32: coordinate of each column, likewise."""
    bits: tuple[int, int]
    """Bits of the largest coordinate in x and in y."""
    max_pixels: int
    """Pixels of the largest tile."""

    @property
    def count(self) -> int:
        """Tiles per image."""
        return self.rows * self.columns


def tile_layout(
    height: int, width: int, sigma: float, edge_guard: float, device: torch.device
) -> TileLayout:
    """Return the layout of images of a size, for cells of `sigma` pixels."""
    return hold(_cached_layout(height, width, sigma, edge_guard, device))


@lru_cache(maxsize=32)
def _cached_layout(
    height: int, width: int, sigma: float, edge_guard: float, device: torch.device
) -> TileLayout:
    left, column_cell = _divide_axis(width, sigma, edge_guard)
    top, row_cell = _divide_axis(height, sigma, edge_guard)

    def table(values: Table) -> Tensor:
        return torch.from_numpy(values.astype(np.int32)).to(device)

    return TileLayout(
        row_cell.size,
        column_cell.size,
        table(top),
        table(left),
        table(row_cell),
        table(column_cell),
        (int(column_cell[-1]).bit_length(), int(row_cell[-1]).bit_length()),
        int(np.diff(left).max() * np.diff(top).max()),
    )


def tile_count(length: int, sigma: float, edge_guard: float) -> int:
    """Return the number of tiles along an axis of so many pixels, for cells of a pixel or more."""
    return int((length - 1) * (1 / sigma) + edge_guard) + 1


def tile_length(count: int, sigma: float, edge_guard: float) -> int:
    """Return the most pixels along an axis that have this many tiles, likewise."""
    length = math.ceil(count * sigma) + 1
    while tile_count(length, sigma, edge_guard) > count:
        length -= 1
    return length


def _divide_axis(length: int, sigma: float, edge_guard: float) -> tuple[Table, Table]:
    """Return the first pixel of each tile followed by `length`, and the coordinate of each tile."""
    inverse = min(1 / sigma, _MAX_CELLS / length)
    cell = (np.arange(length) * inverse + edge_guard).astype(np.int64)
    cells, first = np.unique(cell, return_index=True)
    return np.append(first, length), cells


def tile_programs(tiles: int) -> tuple[int]:
    """Return the launch grid of a kernel that loops over this many tiles."""
    return (min(tiles, _MAX_PROGRAMS),)


@triton.jit
def divide(a, b):
    """Return quotient and remainder of non-negative integers: unsigned division is faster."""
    quotient = (tl.cast(a, tl.uint32) // tl.cast(b, tl.uint32)).to(tl.int32)
    return quotient, a - quotient * b


@triton.jit
def tile_bounds(top, left, rows, columns, tile):
    """Return the image of a tile, its first y, the y after its last, and the same for x."""
    image, within = divide(tile, rows * columns)
    row, column = divide(within, columns)
    y, below = tl.load(top + row), tl.load(top + row + 1)
    x, right = tl.load(left + column), tl.load(left + column + 1)
    return image, y, below, x, right


@triton.jit
def tile_pixels(top, left, rows, columns, tile, height, width, p):
    """Locate the pixels number p of a tile.

    Returns whether the tile has such pixels, their places in the batch, and the place of the tile's
    first pixel in tile order, where the pixels of each tile are consecutive.
    """
    image, y, below, x, right = tile_bounds(top, left, rows, columns, tile)
    dy, dx = divide(p, tl.maximum(right - x, 1))  # a tile may be empty
    start = image.to(tl.int64) * height * width
    pixel = start + (y + dy) * width + x + dx
    return p < (below - y) * (right - x), pixel, start + y * width + (below - y) * x
