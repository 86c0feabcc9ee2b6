"""Candidates for a completed map: planar solves on several grids."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
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
MEDIAN_SIZE = 5
"""Side of the windows in which solutions are smoothed, in pixels."""
_PROBES = 8
"""Random right-hand sides of the variance."""
_SMOOTHNESS = 0.03
"""Smoothness of the solution whose variance is estimated."""


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


class Candidates(ABC):
    """Solve for points on several grids of a photograph, in a unit.

    Subclasses know where the solves run. All arrays are on the host.
    """

    def __init__(self, shape: Sequence[int], cells: Cells) -> None:
        self._shape, self._cells = shape, cells

    def sigmas(self, index: int) -> tuple[float, float, float]:
        """Return the sizes of the grid cells of a recipe, in pixels and 8-bit levels."""
        xy, luma, chroma = self._cells
        if xy is None:
            xy = cell_size(self._shape, _CELL, least=_LEAST_CELL)
        recipe = RECIPES[index]
        return xy * recipe.xy, luma * recipe.luma, chroma * recipe.chroma

    def planar(
        self, index: int, z: Array, trust: Array, unit: Unit, *, loose: bool = False
    ) -> Array:
        """Solve by one recipe; `trust` has the weights of the points."""
        tolerance = _LOOSE if loose else _TOLERANCE
        points = unit.to(z), np.where(np.isnan(z), np.float32(0), trust)
        u, converged = self.solve(index, points, tolerance, policy.SLOPE_RIDGE, _MOST_STEPS)
        if not converged:  # few points leave the slopes of a part undetermined
            u, _ = self.solve(index, points, tolerance, _STRONG_RIDGE, None)
        return unit.back(self.smooth(u))

    @abstractmethod
    def solve(
        self,
        index: int,
        points: tuple[Array, Array],
        tolerance: float,
        slope_ridge: float,
        most_steps: int | None,
    ) -> tuple[Any, bool]:
        """Solve for values and weights by a recipe; return the solution and whether it converged.

        It ends without a warning after `most_steps`.
        """

    @abstractmethod
    def smooth(self, u: Any) -> Array:
        """Return the median of a solution in small windows."""

    @abstractmethod
    def variance(self, weights: Array) -> Array:
        """Estimate the variance of the cheap recipe's solution."""


class HostCandidates(Candidates):
    """Candidates whose solves run on the CPU."""

    def __init__(self, guide: validation.Reference, cells: Cells) -> None:
        super().__init__(guide.pixels.shape, cells)
        self._guide = guide
        self._grids: dict[tuple[float, float, float], BilateralGrid] = {}

    def solve(
        self,
        index: int,
        points: tuple[Array, Array],
        tolerance: float,
        slope_ridge: float,
        most_steps: int | None,
    ) -> tuple[Array, bool]:
        """Solve on the CPU."""

        def give_up(step: int, _: float) -> bool:
            return most_steps is not None and step >= most_steps

        solver = self._solver(index, RECIPES[index].smoothness, tolerance, slope_ridge)
        u, info = solver.solve(*points, callback=give_up, return_info=True)
        return u, info.converged

    def smooth(self, u: Array) -> Array:
        """Return the median in small windows."""
        return median(u, MEDIAN_SIZE)

    def variance(self, weights: Array) -> Array:
        """Estimate the variance of the cheap recipe's solution."""
        solver = self._solver(PROBE, _SMOOTHNESS, _TOLERANCE, policy.SLOPE_RIDGE)
        return solver.variance(weights, probes=_PROBES)

    def _solver(
        self, index: int, smoothness: float, tolerance: float, slope_ridge: float
    ) -> BilateralSolver:
        sigmas = self.sigmas(index)
        if sigmas not in self._grids:
            self._grids[sigmas] = BilateralGrid(
                self._guide.pixels, *sigmas, reference_max=self._guide.highest
            )
        return BilateralSolver(
            self._grids[sigmas],
            smoothness,
            model="planar",
            tolerance=tolerance,
            slope_ridge=slope_ridge,
        )
