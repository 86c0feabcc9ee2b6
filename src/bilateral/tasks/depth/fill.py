"""Fill the holes of a depth map: planes guided by the photograph, continued from its surfaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bilateral import validation
from bilateral.filters.surfaces import Growth, grow_surfaces
from bilateral.grid import BilateralGrid
from bilateral.solver import BilateralSolver
from bilateral.tasks.cell_size import cell_size
from bilateral.tasks.depth.shadows import behind_shadows
from bilateral.tasks.depth.surfaces import Surfaces

Array = NDArray[Any]

PLANES: dict[str, Any] = {
    "model": "planar",
    "smoothness": 0.03,
    "slope_smoothness": 30.0,
    "slope_ridge": 1e-2,
}
"""Options of the planar solve for large holes (docs/explanation/planar.md)."""
GROWTH = Growth(bias=12.0, drift=0.01, slope_reach=256.0)
"""A hole continues the nearer surface only if the solution is 13 times closer to it. Planes lead
further than the solution: with more drift, floors bend in wide shadows and end as flying pixels
beside the nearer surface; none keeps wrong slopes."""
SMALL_TRUST = 0.3
"""Trust in surfaces too small to be certain."""
_FARTHEST = 1.05
"""Fillings are at most this many times as far as the farthest data."""


class Cells(NamedTuple):
    """Sizes of grid cells in pixels and 8-bit levels; by default for the size of the image."""

    xy: float | None = None
    luma: float = 8.0
    chroma: float = 8.0

    @classmethod
    def checked(cls, sigma_xy: float | None, sigma_luma: float, sigma_chroma: float) -> Self:
        """Check the arguments of a task, also those of tasks that may need no grid."""
        return cls(
            None if sigma_xy is None else validation.positive("sigma_xy", sigma_xy),
            validation.positive("sigma_luma", sigma_luma),
            validation.positive("sigma_chroma", sigma_chroma),
        )

    def grid(self, guide: validation.Reference, tuned: float = 8.0) -> BilateralGrid:
        """Build the grid of a photograph. `tuned` is the default cell at 0.35 megapixels."""
        sizes: dict[str, Any] = self.sizes(guide.pixels.shape, tuned)
        return BilateralGrid(guide.pixels, **sizes, reference_max=guide.highest)

    def sizes(self, shape: Sequence[int], tuned: float = 8.0) -> dict[str, float]:
        """Return the sizes for an image of a shape, as arguments of a grid or a solve."""
        xy = cell_size(shape, tuned, least=4) if self.xy is None else self.xy
        return {"sigma_xy": xy, "sigma_luma": self.luma, "sigma_chroma": self.chroma}


class PlaneUnit(NamedTuple):
    """Unit in which planes of the world are affine: inverse depth, if all depths are positive."""

    inverse: bool
    least: float
    """Smallest inverse of a filling."""

    @classmethod
    def of(cls, z: Array, kept: NDArray[np.bool_]) -> PlaneUnit:
        """Choose the unit for the kept depths of a map."""
        low = np.min(z, initial=np.inf, where=kept)
        return cls.of_range(float(low), float(np.max(z, initial=0, where=kept)))

    @classmethod
    def of_range(cls, low: float, high: float) -> PlaneUnit:
        """Choose the unit for depths between two."""
        return cls(False, 0.0) if low <= 0 else cls(True, 1 / (_FARTHEST * high))

    def to(self, z: Array) -> Array:
        """Convert depths."""
        return 1 / z if self.inverse else z

    def back(self, u: Array) -> Array:
        """Convert to depths."""
        return 1 / np.maximum(u, np.float32(self.least)) if self.inverse else u


def fill(
    z: Array,
    surfaces: Surfaces,
    measured: Array,
    guide: validation.Reference,
    trust: Array | None,
    cells: Cells,
    tolerance: float = 1e-3,
) -> Array:
    """Replace all pixels that lie on no surface.

    Parameters
    ----------
    z : (H, W) float32 array
        NaN where there are no data.
    surfaces : Surfaces
        Pixels of kept surfaces stay. Those of small ones stay if the solution comes close to them:
        then the photograph confirms them.
    measured : (H, W) float32 array
        The map with its doubtful pixels, which stay if they lie on a surface that is continued.
    guide : Reference
    trust : (H, W) float32 array, optional
        Weights of the data.
    cells : Cells
    tolerance : float
        Of the solve.
    """
    kept, small = surfaces.kept, surfaces.small
    unit = PlaneUnit.of(z, kept)
    target = unit.to(np.where(kept | small, z, np.float32(np.nan)))
    weights = np.where(small, np.float32(SMALL_TRUST), np.float32(1))
    if trust is not None:
        weights *= trust
    x = unit.back(plane_solver(cells.grid(guide), tolerance).solve(target, weights))
    confirmed = surfaces.confirmed(x, z)
    x = np.where(confirmed, z, x)
    if unit.inverse:
        x = behind_shadows(x, confirmed, measured, surfaces.jump_at)
    return grow_surfaces(x, confirmed, measured, surfaces.jump, inverse=unit.inverse, growth=GROWTH)


def plane_solver(grid: BilateralGrid, tolerance: float = 1e-3) -> BilateralSolver:
    """Return the solver of the planar model that fills holes."""
    return BilateralSolver(grid, tolerance=tolerance, **PLANES)
