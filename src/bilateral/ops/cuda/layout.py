"""How the pixels of an image lie in tiles, at all levels: tables that only its size decides.

Tiles are numbered in Morton order of their cells. So the tiles below a coarser one are
consecutive, at every level.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_EDGE_GUARD = 1e-9  # as in core/reference.hpp
_MOST_CELLS = 2.0**20
"""Along an axis; more have no use, since pixels are fewer."""

Table = NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """Tables on a device for images of one size; those of tiles are in Morton order."""

    tiles: int
    """Per image."""
    columns: int
    column: Tensor
    """Of tiles, for each x; with `left`, the tile's first x, and `width`, its number of pixels."""
    left: Tensor
    width: Tensor
    row: Tensor
    """Of tiles, for each y; with `top`, the tile's first y."""
    top: Tensor
    number: Tensor
    """The number of the tile at (row, column)."""
    first_pixel: Tensor
    """Of each tile, and their sum, counting pixels tile by tile."""
    right: Tensor
    """The number of the tile at the next cell in x, and -1 if there is none; `below` in y."""
    below: Tensor
    finer: tuple[Tensor, ...]
    """For each level: the first tile, of the level below, of each tile, and their sum."""


@lru_cache(maxsize=32)
def layout(height: int, width: int, sigma: float, device: torch.device) -> Layout:
    """The layout for images of a size with cells of `sigma` pixels."""
    x, y = _cells(width, sigma), _cells(height, sigma)
    columns, rows = np.unique(x), np.unique(y)
    column, row = np.searchsorted(columns, x), np.searchsorted(rows, y)
    left = np.searchsorted(x, columns)
    top = np.searchsorted(y, rows)
    widths, heights = np.diff([*left, width]), np.diff([*top, height])
    order = np.argsort(_morton(rows[:, np.newaxis], columns[np.newaxis]).ravel(), kind="stable")
    number = np.empty(order.size, np.int64)
    number[order] = np.arange(order.size)
    pixels = (heights[:, np.newaxis] * widths[np.newaxis]).ravel()[order]
    at = number.reshape(rows.size, columns.size)
    right, below = np.full(at.shape, -1), np.full(at.shape, -1)
    right[:, :-1] = np.where(np.diff(columns) == 1, at[:, 1:], -1)
    below[:-1] = np.where(np.diff(rows)[:, np.newaxis] == 1, at[1:], -1)

    def table(values: Table) -> Tensor:
        return torch.from_numpy(values.astype(np.int32)).to(device)

    return Layout(
        order.size,
        columns.size,
        table(column),
        table(left[column]),
        table(widths[column]),
        table(row),
        table(top[row]),
        table(number),
        table(_sums(pixels)),
        table(right.ravel()[order]),
        table(below.ravel()[order]),
        tuple(table(t) for t in _finer(rows[order // columns.size], columns[order % columns.size])),
    )


def _cells(length: int, sigma: float) -> Table:
    inverse = min(1 / sigma, _MOST_CELLS / length)
    return (np.arange(length) * inverse + _EDGE_GUARD).astype(np.int64)


def _morton(row: Table, column: Table) -> Table:
    """The bits of both numbers, interleaved."""
    code = np.zeros(np.broadcast_shapes(row.shape, column.shape), np.int64)
    for bit in range(21):
        code |= ((row >> bit) & 1) << (2 * bit + 1) | ((column >> bit) & 1) << (2 * bit)
    return code


def _finer(rows: Table, columns: Table) -> list[Table]:
    """Halve the cells until one tile is left."""
    out = []
    while rows.size > 1:
        rows, columns = rows >> 1, columns >> 1
        new = np.r_[True, (np.diff(rows) != 0) | (np.diff(columns) != 0)]
        out.append(np.r_[np.flatnonzero(new), rows.size])
        rows, columns = rows[new], columns[new]
    return out


def _sums(counts: Table) -> Table:
    out: Table = np.concatenate([[0], np.cumsum(counts)])
    return out
