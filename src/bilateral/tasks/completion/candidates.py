"""Candidates for a completed map: planar solves on several grids."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral import validation
from bilateral.filters.median import median
from bilateral.grid import BilateralGrid
from bilateral.numerics import policy
from bilateral.solver import BilateralSolver
from bilateral.tasks.cell_size import cell_size
from bilateral.tasks.completion.units import Unit

Array = NDArray[Any]

_TOLERANCE, _LOOSE = 3e-3, 1e-2
"""Tolerances of solves for all points, and for those that are not held out."""
_MOST_STEPS, _STRONG_RIDGE = 25, 1e-2
"""Steps after which a solve does not converge any more, and the slope ridge that mends it."""


class Cells(NamedTuple):
    """Sizes of the finest grid cells in pixels and 8-bit levels."""

    xy: float | None = None
    luma: float = 8.0
    chroma: float = 8.0


class Recipe(NamedTuple):
    """A planar solve: cells relative to the finest ones, and the smoothness."""

    xy: float
    luma: float
    chroma: float
    smoothness: float


RECIPES = (
    Recipe(1, 1, 1, 0.03),
    Recipe(1, 2, 1.5, 0.03),
    Recipe(2, 1, 1, 0.03),
    Recipe(2, 2, 1.5, 0.1),
    Recipe(2, 2, 1.5, 2.0),
)
"""Cells of several sizes have their artefacts at different places, so that their mean has fewer.
The last recipe suits noisy points."""
PROBE = 3
"""Index of a cheap recipe, which answers questions about the points."""
_CELL, _LEAST_CELL = 4.0, 3.0
"""Size of the finest cells for an image of 0.35 megapixels, and the least, in pixels."""


class Candidates:
    """The photograph's grids; solve for points, in a unit."""

    def __init__(self, guide: validation.Reference, cells: Cells) -> None:
        shape = guide.pixels.shape
        xy = cell_size(shape, _CELL, least=_LEAST_CELL) if cells.xy is None else cells.xy
        sizes = {recipe[:3] for recipe in RECIPES}
        self._grids = {
            (s, luma, chroma): BilateralGrid(
                guide.pixels,
                xy * s,
                cells.luma * luma,
                cells.chroma * chroma,
                reference_max=guide.highest,
            )
            for s, luma, chroma in sorted(sizes)
        }

    def planar(
        self, index: int, z: Array, trust: Array, unit: Unit, *, loose: bool = False
    ) -> Array:
        """Solve by one recipe; `trust` has the weights of the points."""
        smoothness = RECIPES[index].smoothness
        tolerance = _LOOSE if loose else _TOLERANCE
        target, weights = unit.to(z), np.where(np.isnan(z), np.float32(0), trust)

        def give_up(step: int, _: float) -> bool:
            return step >= _MOST_STEPS

        solver = self.solver(index, smoothness, tolerance)
        u, info = solver.solve(target, weights, callback=give_up, return_info=True)
        if not info.converged:  # few points leave the slopes of a part undetermined
            solver = self.solver(index, smoothness, tolerance, slope_ridge=_STRONG_RIDGE)
            u = solver.solve(target, weights)
        return unit.back(median(u, 5))

    def solver(
        self,
        index: int,
        smoothness: float,
        tolerance: float = _TOLERANCE,
        slope_ridge: float = policy.SLOPE_RIDGE,
    ) -> BilateralSolver:
        """Build the solver on the grid of a recipe."""
        grid = self._grids[RECIPES[index][:3]]
        return BilateralSolver(
            grid, smoothness, model="planar", tolerance=tolerance, slope_ridge=slope_ridge
        )
