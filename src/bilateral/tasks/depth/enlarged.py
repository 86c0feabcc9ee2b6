"""Refine maps of a low resolution that were enlarged by repeating pixels, as phones deliver them.

Their edges are uncertain by a block, and the blocks are no noise. So the map is enlarged again, by
super-resolution, and then refined: no pixel leaves the range of the enlarged map beside it, and of
the input around it, but by a few times the noise.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral import validation
from bilateral.tasks.depth.annealed import edge_size, refine_whole
from bilateral.tasks.depth.fill import Cells
from bilateral.tasks.depth.noise import Noise
from bilateral.tasks.depth.polish_noise import polish_noise
from bilateral.tasks.depth.windows import contrast, extreme
from bilateral.tasks.superres import superres_depth

Array = NDArray[Any]

_LEAST_FACTOR = 1.5
"""Rounded maps repeat some whole rows and columns by chance: up to 1.11 in those measured."""
_LEAST_BLOCKS = 8
"""Along each side. Two or three edges of any scene are at equal distances, too."""
LEAST_KNOWN = 0.98
"""Maps with holes are refined as others are."""
_LEVELS = 2
"""Grid cells have so many times the usual levels: texture is finer than the map's blocks."""
_FINE_RADIUS, _CONTRAST = 2, 16.0
"""The enlarged map knows edges to two pixels. Where the photograph's range within them is less than
so many 8-bit levels, it cannot tell better: to one pixel."""
_MOST_RADIUS = 4
"""Pixels this far from any edge keep their value, up to the differences around them."""


class Blocks(NamedTuple):
    """The first row and column of each block of an enlarged map."""

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    factor: float

    @classmethod
    def of(cls, z: Array) -> Blocks | None:
        """Find the blocks of an (H, W) map; None if it was not enlarged by repeating pixels."""
        return cls.beginning_at(_changes(z), _changes(z.T))

    @classmethod
    def beginning_at(
        cls, changed_rows: NDArray[np.bool_], changed_columns: NDArray[np.bool_]
    ) -> Blocks | None:
        """Find the blocks by the rows and columns that differ from the one before."""
        height, width = changed_rows.size, changed_columns.size
        rows, columns = np.flatnonzero(changed_rows), np.flatnonzero(changed_columns)
        if not (_regular(rows, height) and _regular(columns, width)):
            return None
        factor = min(height / rows.size, width / columns.size)
        return cls(rows, columns, factor) if factor >= _LEAST_FACTOR else None


def refine_enlarged(
    z: Array, guide: validation.Reference, noise: Noise, cells: Cells
) -> Array | None:
    """Refine an (H, W) float32 map that was enlarged; None if it was not."""
    if np.count_nonzero(np.isfinite(z)) < LEAST_KNOWN * z.size:
        return None
    blocks = Blocks.of(z)
    if blocks is None:
        return None
    small = z[np.ix_(blocks.rows, blocks.columns)]
    fine = superres_depth(small, guide.pixels, reference_max=guide.highest).astype(np.float64)
    every = np.ones(z.shape, np.float32)
    unit = edge_size(fine, every > 0, 0.0)
    if unit == 0:
        return None
    grid = Cells(cells.xy, _LEVELS * cells.luma, _LEVELS * cells.chroma).grid(guide)
    x = refine_whole(fine, every, guide, grid, unit, stereo=False)
    slack = noise(np.abs(x))
    flat = contrast(guide.pixels, _FINE_RADIUS) < _CONTRAST / 255 * guide.highest
    for values, radius, where in (
        (fine, 1, flat),
        (fine, _FINE_RADIUS, ~flat),
        (z, _radius(blocks.factor), every > 0),
    ):
        low, high = (extreme(values, radius, choose) for choose in (np.fmin, np.fmax))
        x = np.where(where & ~np.isnan(low), np.clip(x, low - slack, high + slack), x)
    return polish_noise(x.astype(np.float32), guide, every > 0, noise)


def _changes(z: Array) -> NDArray[np.bool_]:
    """Whether each row of a map differs from the row above; True for the first."""
    above, below = z[:-1], z[1:]
    same = (above == below) | (np.isnan(above) & np.isnan(below))
    return np.concatenate([[True], ~same.all(axis=1)])


def _regular(starts: NDArray[np.intp], size: int) -> bool:
    """Whether blocks have equal sizes, up to rounding. The flat parts of a clean map have not."""
    if starts.size < _LEAST_BLOCKS:
        return False
    inner = starts[1:]  # a cropped map begins and ends within a block
    even, block = np.linspace(inner[0], inner[-1], inner.size, retstep=True)
    longest = max(inner[0], size - inner[-1])
    return bool(np.abs(inner - even).max() <= 1 and longest <= block + 1)


def _radius(factor: float) -> int:
    """Pixels by which edges of the input may move: a block and one more."""
    return min(_MOST_RADIUS, math.ceil(factor) + 1)
