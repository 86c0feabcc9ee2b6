"""Start a solve from an earlier solution: the caller's pixels, or the solver's last solution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral import validation
from bilateral.backends import cpu
from bilateral.grid import BilateralGrid, core_of, frame_change, planes_of
from bilateral.numerics.system import System, slice_vertices

Array = NDArray[Any]

_FIT_RIDGE = 1e-3
"""Of planes fitted to pixels, relative to their number and a cell: a vertex of few pixels stays
flat."""


class WarmStart(NamedTuple):
    """A solution on a grid. It is never changed, so threads may share it."""

    grid: BilateralGrid
    y: Array
    """One row per vertex, in the target's own unit; NaN where unknown."""
    slopes: Array | None = None
    """Slopes of planes (K, n_vertices, axes); None: the vertices have constant values."""

    @classmethod
    def from_state(cls, state: object) -> WarmStart:
        """Restore a solution from ``(grid, y, slopes)``; a damaged one raises ValueError."""
        name = "warm start"
        if (
            not isinstance(state, tuple)
            or len(state) != 3
            or not isinstance(state[0], BilateralGrid)
        ):
            raise validation.damaged_state(name, "expected a grid and its solution")
        grid = state[0]
        y = validation.state_array(name, state[1], (np.float32, np.float64), axes=2)
        if y.shape[0] != grid.n_vertices or y.shape[1] == 0:
            expected = f"({grid.n_vertices}, K)"
            raise validation.damaged_state(name, f"expected shape {expected}, got {y.shape}")
        slopes = state[2]
        if slopes is not None:
            slopes = validation.state_array(name, slopes, (np.float32, np.float64), axes=3)
            shape = (y.shape[1], grid.n_vertices, len(grid.shape))
            if slopes.shape != shape:
                raise validation.damaged_state(name, f"expected shape {shape}, got {slopes.shape}")
        return cls(grid, y, slopes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the grid, and number of channels."""
        return (*self.grid.shape, self.y.shape[1])

    def channels(self, part: slice) -> WarmStart:
        """Take some of the channels."""
        slopes = None if self.slopes is None else self.slopes[part]
        return WarmStart(self.grid, self.y[:, part], slopes)

    @classmethod
    def join(cls, parts: Sequence[WarmStart]) -> WarmStart:
        """Put the channels of several planar solutions side by side."""
        slopes = [part.slopes for part in parts if part.slopes is not None]
        y = np.concatenate([part.y for part in parts], axis=1)
        return cls(parts[0].grid, y, np.concatenate(slopes))

    def on(self, grid: BilateralGrid) -> WarmStart:
        """Transfer the solution to another grid of the same shape, such as the next frame's.

        A pixel whose colour changed probably shows something else, so its weight falls with the
        change and is 0 from three cells on. Vertices without any weight become NaN. For a pan by a
        pixel or two, this leaves a tenth of the error of unweighted means.
        """
        if grid is self.grid:
            return self
        # float32 is enough for a start.
        unit = float(np.abs(self.y).max(where=np.isfinite(self.y), initial=0)) or 1.0
        if self.slopes is not None:
            x = np.concatenate([self.y.T[:, :, np.newaxis], self.slopes], axis=2) / unit
            pixels = cpu.slice_planes(planes_of(self.grid), x.astype(np.float32), grid.shape)
            return fitted_planes(grid, pixels, frame_change(self.grid, grid), unit)
        pixels = slice_vertices(self.grid, (self.y / unit).astype(np.float32))
        sums = cpu.splat_target(core_of(grid), pixels, frame_change(self.grid, grid))
        y = np.full(sums.weighted.shape, np.nan, self.y.dtype)
        known = sums.weight > 0
        y[known] = sums.weighted[known] / sums.weight[known, np.newaxis]
        return WarmStart(grid, y * self.y.dtype.type(unit))


def fitted_planes(
    grid: BilateralGrid, pixels: Array, weights: Array | None = None, unit: float = 1.0
) -> WarmStart:
    """Fit a plane to the (..., K) pixels of each vertex, times a unit; NaN without weight."""
    planes = planes_of(grid)
    sums = cpu.splat_planes(planes, pixels, weights)
    x = cpu.fit_planes(planes, sums.moments, sums.weighted, _FIT_RIDGE)
    y = x[:, :, 0].T + np.array(sums.origin, x.dtype)
    y[sums.moments[:, 0] <= 0] = np.nan
    return WarmStart(grid, y * x.dtype.type(unit), x[:, :, 1:] * x.dtype.type(unit))


def vertex_means(grid: BilateralGrid, pixels: Array) -> Array:
    """Compute the mean of (..., K) pixels at each vertex."""
    core, ones = core_of(grid), np.ones(grid.shape, pixels.dtype)
    mass = cpu.splat(core, ones, grid.shape)[:, np.newaxis]
    mean: Array = cpu.splat(core, pixels, grid.shape) / mass
    return mean


def to_start(system: System, y: Array) -> Array:
    """Convert an earlier solution from the target's unit to a start for a system.

    A solution is never larger than the largest mean, so larger values are clipped.
    """
    known = system.weight > 0
    largest = np.abs(system.weighted[known] / system.weight[known, np.newaxis]).max(axis=0)
    limit = 1e3 * (largest + system.scale)
    with np.errstate(over="ignore"):
        start = y if system.unit is None else y / system.unit
    clipped: Array = np.clip(start, -limit, limit).astype(system.weight.dtype)
    return clipped
