"""Colour the pixels that the grid says little about by the pixels around them in the picture."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.grid import BilateralGrid
from bilateral.numerics.system import vertices_with_data

Array = NDArray[Any]

_FEW_PIXELS = 0.25
"""A vertex of one pixel, or of this many per pixel of a cell's side, may be a speck."""
_VISIBLE = 12.0
"""Smallest difference of chroma that makes a speck, in 8-bit grey levels."""
_FEW, _WITHOUT_DATA = 1, 2
"""The two kinds of specks."""
_WINDOW = [(y, x) for y in range(-2, 3) for x in range(-2, 3) if 0 < y * y + x * x < 8]
"""Offsets of the pixels that colour a speck: a square of 5 x 5 without its corners."""
_SIGMA = 32.0
"""Difference of luma, in 8-bit grey levels, that divides the weight of a pixel by e."""
_MAX_LEVEL = 1024.0
"""Luma is clipped here, so that no weight vanishes in float32."""


class Specks:
    """Finds the vertices of a grid that would show as specks, and colours their pixels.

    Such a vertex has no stroke of its own, and is one of two kinds:

    - It has very few pixels. Its value comes along a chain of vertices from strokes that may be
      far away.
    - No chain leads to a stroke, and the vertex and its neighbours have fewer pixels than a tile.
      A larger part without strokes keeps the value that the solve gives it.
    """

    def __init__(self, grid: BilateralGrid, levels: Array, cell: float) -> None:
        self._grid = grid
        self._luma = (np.clip(levels, 0, _MAX_LEVEL) / _SIGMA).astype(np.float32)
        mass = grid.splat(np.ones(grid.shape, np.float32))
        self._few = mass <= max(1, _FEW_PIXELS * cell)
        self._small = grid.blur(mass) < cell * cell

    def recolor(self, chroma: Array, weights: Array) -> None:
        """Replace the chroma (H, W, 2) of specks in place; `weights` (H, W) are those of strokes.

        Each of their pixels gets the mean of the pixels around it that are no specks, with larger
        weights for similar luma. A pixel that has a chain to a stroke keeps its chroma if the mean
        is nearly the same.
        """
        weight = self._grid.splat(weights)
        without_data = self._small & ~vertices_with_data(self._grid, weight)
        few = self._few & (weight == 0) & ~without_data
        kinds = np.where(without_data, _WITHOUT_DATA, np.where(few, _FEW, 0)).astype(np.float32)
        if not kinds.any() or kinds.all():
            return
        kind = self._grid.slice(kinds).reshape(-1)
        pixels = np.flatnonzero(kind != 0)
        # One complex number per pixel halves the number of accesses.
        values = chroma.view(np.result_type(chroma.dtype, np.complex64)).reshape(-1)
        solved = values.take(pixels)
        fill_from_window(values, pixels, self._luma)
        same = (kind.take(pixels) == _FEW) & (np.abs(values.take(pixels) - solved) <= _VISIBLE)
        values[pixels[same]] = solved[same]


def fill_from_window(values: Array, unknown: NDArray[np.intp], luma: Array) -> None:
    """Give each unknown pixel a mean of the known ones in a window around it, in place.

    A difference d of luma divides the weight of a pixel by ``exp(d)``. Pixels without a known one
    in the window follow when their neighbours are known. At least one pixel must be known.

    Parameters
    ----------
    values : (H * W,) array
        Complex, row by row.
    unknown : (N,) array of int
        Indices into `values`.
    luma : (H, W) array
    """
    height, width = luma.shape
    luma = luma.reshape(-1)
    values[unknown] = 0
    known = np.ones(values.size, np.bool_)
    known[unknown] = False
    while unknown.size:
        y, x = np.divmod(unknown, width)
        rows = {dy: np.clip(y + dy, 0, height - 1) * width for dy in range(-2, 3)}
        columns = {dx: np.clip(x + dx, 0, width - 1) for dx in range(-2, 3)}
        own = luma.take(unknown)
        total = np.zeros(unknown.size, values.dtype)
        mass = np.zeros(unknown.size, values.real.dtype)
        for dy, dx in _WINDOW:
            neighbours = rows[dy] + columns[dx]
            distance = np.abs(luma.take(neighbours) - own)
            weight = np.exp(np.negative(distance, out=distance), out=distance)
            weight *= known.take(neighbours)
            total += weight * values.take(neighbours)
            mass += weight
        found = mass > 0
        values[unknown[found]] = total[found] / mass[found]
        known[unknown[found]] = True
        unknown = unknown[~found]
