"""Colour the pixels that the grid says little about by the pixels around them in the picture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.filters.labels import find_regions
from bilateral.grid import BilateralGrid
from bilateral.numerics.system import vertices_with_data
from bilateral.tasks.colorize import policy

Array = NDArray[Any]


class Specks:
    """Finds the pixels that would show as specks, and colours them.

    Such a pixel lies in a vertex without a stroke, and is one of two kinds:

    - Its vertex has very few pixels, or the pixel and those next to it of similar luma are very
      few. Its value comes along a chain of vertices from strokes that may be far away.
    - No chain leads to a stroke, and the vertex and its neighbours have fewer pixels than a tile.
      A larger part without strokes keeps the value that the solve gives it.
    """

    def __init__(self, grid: BilateralGrid, levels: Array, cell: float) -> None:
        self._grid = grid
        clipped = np.clip(levels, 0, policy.MAX_LEVEL).astype(np.float32)
        self._luma = clipped / np.float32(policy.SIGMA)
        mass = grid.splat(np.ones(grid.shape, np.float32))
        self._few = mass <= policy.few_pixels(cell)
        self._small = grid.blur(mass) < cell * cell
        regions, _ = find_regions(clipped, np.ones(grid.shape, np.bool_), policy.SAME_LUMA)
        sizes = np.bincount(regions.reshape(-1))
        self._isolated = np.flatnonzero((sizes <= policy.small_region(cell))[regions])

    def recolor(self, chroma: Array, weights: Array) -> None:
        """Replace the chroma (H, W, 2) of specks in place; `weights` (H, W) are those of strokes.

        Each of their pixels gets the mean of the pixels around it that are no specks, with larger
        weights for similar luma. A pixel that has a chain to a stroke keeps its chroma if it looks
        like those next to it, or like the mean.
        """
        weight = self._grid.splat(weights)
        kinds = np.where(self._few, np.float32(policy.FEW), np.float32(0))
        kinds[self._small & ~vertices_with_data(self._grid, weight)] = policy.WITHOUT_DATA
        kinds[weight > 0] = policy.STROKED
        kind = self._grid.slice(kinds).reshape(-1)
        kind[self._isolated] = np.maximum(kind.take(self._isolated), policy.FEW)
        kind[kind == policy.STROKED] = 0
        pixels = np.flatnonzero(kind != 0)
        # One complex number per pixel halves the number of accesses.
        values = chroma.view(np.result_type(chroma.dtype, np.complex64)).reshape(-1)
        without_data = kind.take(pixels) == policy.WITHOUT_DATA
        changes = without_data | _stand_out(values, pixels, chroma.shape[1])
        specks = pixels[changes]
        solved = values.take(specks)
        fill_from_window(values, specks, self._luma)
        alike = np.abs(values.take(specks) - solved) <= policy.VISIBLE
        same = (kind.take(specks) == policy.FEW) & alike
        values[specks[same]] = solved[same]


def _stand_out(values: Array, pixels: NDArray[np.intp], width: int) -> NDArray[np.bool_]:
    """Whether each pixel differs visibly from one of the two next to it in any direction."""
    own = values.take(pixels)
    result = np.zeros(pixels.size, np.bool_)
    for neighbours in _neighbours(pixels, (values.size // width, width), policy.CROSS):
        result |= np.abs(values.take(neighbours) - own) > policy.VISIBLE
    return result


def fill_from_window(values: Array, unknown: NDArray[np.intp], luma: Array) -> None:
    """Give each unknown pixel a mean of the known ones in a window around it, in place.

    A difference d of luma divides the weight of a pixel by ``exp(d)``. Pixels with similar known
    ones in the window come first; the others follow when their neighbours are known. A pixel that
    no known one ever reaches keeps its value.

    Parameters
    ----------
    values : (H * W,) array
        Complex, row by row.
    unknown : (N,) array of int
        Indices into `values`.
    luma : (H, W) array
    """
    known = np.ones(values.size, np.bool_)
    known[unknown] = False
    least = policy.LEAST_MASS
    while unknown.size:
        total, mass = _sums(values, known, unknown, luma)
        found = mass > least
        if not (least or found.any()):
            return
        values[unknown[found]] = total[found] / mass[found]
        known[unknown[found]] = True
        unknown = unknown[~found]
        least = 0.0


def _sums(
    values: Array, known: NDArray[np.bool_], pixels: NDArray[np.intp], luma: Array
) -> tuple[Array, Array]:
    """Weighted sum of the known values in the window around each pixel, and sum of the weights."""
    flat = luma.reshape(-1)
    own = flat.take(pixels)
    total = np.zeros(pixels.size, values.dtype)
    mass = np.zeros(pixels.size, values.real.dtype)
    for neighbours in _neighbours(pixels, luma.shape, policy.WINDOW):
        distance = np.abs(flat.take(neighbours) - own)
        weight = np.exp(np.negative(distance, out=distance), out=distance)
        weight *= known.take(neighbours)
        total += weight * values.take(neighbours)
        mass += weight
    return total, mass


def _neighbours(
    pixels: NDArray[np.intp], shape: tuple[int, ...], offsets: list[tuple[int, int]]
) -> Iterator[NDArray[np.intp]]:
    """Indices of the pixels at each offset (y, x); beyond the border, the nearest one."""
    height, width = shape
    y, x = np.divmod(pixels, width)
    steps = range(-policy.RADIUS, policy.RADIUS + 1)
    rows = {dy: np.clip(y + dy, 0, height - 1) * width for dy in steps}
    columns = {dx: np.clip(x + dx, 0, width - 1) for dx in steps}
    for dy, dx in offsets:
        yield rows[dy] + columns[dx]
