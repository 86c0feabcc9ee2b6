"""How an image divides into tiles, the cells in x and y: tables that only its size decides."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bilateral.backends.cuda.constants import hold

_EDGE_GUARD = 1e-9  # as in core/reference.hpp
_MOST_CELLS = 2.0**20
"""Along an axis; more have no use, since pixels are fewer."""

Table = NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """The tiles of images of one size, row by row; tables are on a device."""

    rows: int
    columns: int
    top: Tensor
    """The first y of each row of tiles, and the height."""
    left: Tensor
    """The first x of each column of tiles, and the width."""
    row_cell: Tensor
    """Of each row of tiles: its coordinate, which skips numbers if cells are below a pixel."""
    column_cell: Tensor
    bits: tuple[int, int]
    """How many it takes for the coordinates in x and in y."""
    most: int
    """Pixels of the largest tile."""

    @property
    def tiles(self) -> int:
        """Per image."""
        return self.rows * self.columns


def layout(height: int, width: int, sigma: float, device: torch.device) -> Layout:
    """The layout for images of a size with cells of `sigma` pixels."""
    return hold(_layout(height, width, sigma, device))


@lru_cache(maxsize=32)
def _layout(height: int, width: int, sigma: float, device: torch.device) -> Layout:
    left, column_cell = _tiles(width, sigma)
    top, row_cell = _tiles(height, sigma)

    def table(values: Table) -> Tensor:
        return torch.from_numpy(values.astype(np.int32)).to(device)

    return Layout(
        row_cell.size,
        column_cell.size,
        table(top),
        table(left),
        table(row_cell),
        table(column_cell),
        (int(column_cell[-1]).bit_length(), int(row_cell[-1]).bit_length()),
        int(np.diff(left).max() * np.diff(top).max()),
    )


def _tiles(length: int, sigma: float) -> tuple[Table, Table]:
    """Along an axis: the first pixel of each tile, then the length; and the tiles' cells."""
    inverse = min(1 / sigma, _MOST_CELLS / length)
    cell = (np.arange(length) * inverse + _EDGE_GUARD).astype(np.int64)
    cells, first = np.unique(cell, return_index=True)
    return np.append(first, length), cells
