"""The last solution of a solver, to start the next solve from."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral.backends import cpu
from bilateral.grid import BilateralGrid

Array = NDArray[Any]


class Last(NamedTuple):
    """A solution on a grid. Nothing in it ever changes, so threads may share it."""

    grid: BilateralGrid
    y: Array
    """One row per vertex, in the target's own unit; NaN where nothing is known."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The grid's shape, and channels."""
        return (*self.grid.shape, self.y.shape[1])

    def on(self, grid: BilateralGrid) -> "Last":
        """The same on another grid for pictures of the same size, such as the next frame's.

        A pixel whose colour changed most likely shows something else now: it counts the less the
        more it changed, and not at all beyond three cells. Vertices with nothing else are NaN.
        For a pan by a pixel or two that leaves a tenth of the error of plain means.
        """
        if grid is self.grid:
            return self
        # It is only a start: float32 will do.
        unit = float(np.abs(self.y).max(where=np.isfinite(self.y), initial=0)) or 1.0
        pixels = cpu.slice_(self.grid._core, (self.y / unit).astype(np.float32), self.grid.shape)
        seen = cpu.splat_target(grid._core, pixels, _unchanged(self.grid, grid))
        y = np.full(seen.weighted.shape, np.nan, self.y.dtype)
        known = seen.weight > 0
        y[known] = seen.weighted[known] / seen.weight[known, np.newaxis]
        return Last(grid, y * self.y.dtype.type(unit))


def _unchanged(before: BilateralGrid, after: BilateralGrid) -> Array | None:
    """A weight per pixel that falls with the change of its features, on the scale of a cell."""
    old, new = before._features, after._features
    if old.shape != new.shape or old.dtype != new.dtype or new.shape[-1] == 0:
        return None
    return cpu.unchanged(old, new, after._change_scale)
