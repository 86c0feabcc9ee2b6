"""The planar model on the CPU: splat to planes, solve, slice planes to pixels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral import _core
from bilateral.backends.cpu.grid import Array, Grid
from bilateral.backends.cpu.solve import Outcome
from bilateral.threads import get_num_threads


@dataclass(frozen=True, slots=True)
class Planes:
    """The planar model of a grid. Planes are arrays (K, n_vertices, axes + 1): value, slopes.

    The axes are x, y and t. Slopes are per cell.
    """

    core: _core.Planes
    n_vertices: int
    axes: int

    def __deepcopy__(self, memo: dict[int, Any]) -> "Planes":
        return self


def planes_of(grid: Grid, sigma_space: Sequence[float]) -> Planes:
    """Set up the planar model of a grid; `sigma_space` is in the order of the pixels' axes."""
    cells = [1 / sigma for sigma in reversed(sigma_space)]
    core = _core.Planes(grid.core, cells, get_num_threads())
    return Planes(core, grid.n_vertices, len(cells))


def centres(planes: Planes) -> NDArray[np.float64]:
    """Return the centre of each vertex, one row of x, y and t in cells per vertex."""
    out = np.empty((planes.n_vertices, planes.axes))
    planes.core.centres(out)
    return out


class PlaneObservation(NamedTuple):
    """A target and its confidence, splatted to planes."""

    moments: Array
    """Sums of c e e^T with e = (1, offset): the lower triangle by rows, one row per vertex."""
    weighted: Array
    """Sums of c e (t - origin), as planes."""
    origin: list[float]
    """Per channel: subtracted from the values."""
    known: int
    """Number of pixels with data."""
    confidence: float
    """Sum of their confidences."""
    low: NDArray[np.float64]
    """Lowest value per channel."""
    high: NDArray[np.float64]
    invalid: int | None
    """The first pixel whose confidence is negative or not finite."""


def splat_planes(
    planes: Planes, target: Array, confidence: Array | None, *, centred: bool = True
) -> PlaneObservation:
    """Splat a (..., K) target with its confidence. Pixels with non-finite values have no data.

    `centred` subtracts the middle of the known values: float32 resolves differences better.
    """
    unknowns = planes.axes + 1
    moments = np.empty((planes.n_vertices, unknowns * (unknowns + 1) // 2), target.dtype)
    weighted = np.empty((target.shape[-1], planes.n_vertices, unknowns), target.dtype)
    known, total, low, high, origin, invalid = planes.core.splat(
        target, confidence, centred, moments, weighted, get_num_threads()
    )
    return PlaneObservation(
        moments, weighted, origin, known, total, np.array(low), np.array(high), invalid
    )


def slice_planes(
    planes: Planes,
    x: Array,
    shape: tuple[int, ...],
    origin: Sequence[float] | None = None,
    bounds: tuple[Sequence[float], Sequence[float]] | None = None,
) -> Array:
    """Evaluate planes at the pixels (*shape, K), add an origin, and clamp to bounds."""
    channels = len(x)
    low, high = bounds or ([-np.inf] * channels, [np.inf] * channels)
    out = np.empty((*shape, channels), x.dtype)
    planes.core.slice(
        x, list(origin or [0.0] * channels), list(low), list(high), out, get_num_threads()
    )
    return out


def fit_planes(planes: Planes, moments: Array, weighted: Array, ridge: float) -> Array:
    """Fit the plane of each vertex to its own data, with a ridge relative to its confidence."""
    x = np.empty_like(weighted)
    planes.core.fit(moments, weighted, ridge, x)
    return x


def fill_transposed(planes: Planes, active: NDArray[np.bool_], x: Array) -> None:
    """Add the transpose of the fill of parts without data to the others, and clear these parts."""
    planes.core.fill_transposed(active, x)


def draw_plane_probes(
    planes: Planes,
    moments: Array,
    smoothness: float,
    slopes: tuple[float, float],
    seed: int,
    probes: int,
) -> Array:
    """Draw at most 64 right-hand sides with the covariance of the planar matrix."""
    b = np.empty((probes, planes.n_vertices, planes.axes + 1), moments.dtype)
    planes.core.draw_probes(moments, smoothness, *slopes, seed, b, get_num_threads())
    return b


@dataclass(slots=True)
class PlaneSolver:
    """Memory and matrices for planar solves with the same slope weights and dtype."""

    planes: Planes
    core: _core.PlaneSolver32 | _core.PlaneSolver64

    @classmethod
    def make(
        cls,
        planes: Planes,
        slopes: tuple[float, float],
        dtype: np.dtype[Any],
        *,
        all_levels: bool = True,
    ) -> "PlaneSolver":
        """Make a solver for slope weights (smoothness, ridge).

        It uses all multigrid levels, or sweeps over the grid alone.
        """
        kind = _core.PlaneSolver32 if dtype == np.float32 else _core.PlaneSolver64
        return cls(planes, kind(planes.core, *slopes, all_levels, get_num_threads()))

    def vertices_with_data(self) -> NDArray[np.bool_]:
        """Return whether each vertex was connected to data in the last solve."""
        out = np.empty(self.planes.n_vertices, np.bool_)
        self.core.with_data(out)
        return out

    def solve(
        self,
        moments: Array,
        weighted: Array,
        x: Array,
        scale: Sequence[float],
        *,
        nested: bool,
        smoothness: float,
        min_iterations: int,
        max_iterations: int,
        tolerance: float,
        movement_fraction: float,
        step_noise: float,
        error_window: int,
        callback: Callable[[int, float], Any] | None,
    ) -> Outcome:
        """Improve planes in place by preconditioned conjugate gradients.

        Parameters
        ----------
        moments, weighted : arrays
            As `splat_planes` returns them.
        x : (K, n_vertices, axes + 1) array
            The start, unless `nested`, then the solution. Parts without data are filled.
        scale : K floats
            Size of the solution, to which error estimates are relative.
        nested : bool
            Start from the solutions of coarser multigrid levels, or from sweeps over the grid.
        smoothness, min_iterations, max_iterations, tolerance, movement_fraction, step_noise, \
error_window, callback
            As for `pcg`.
        """
        return Outcome(
            *self.core.solve(
                moments,
                weighted,
                x,
                list(scale),
                nested,
                smoothness,
                min_iterations,
                max_iterations,
                tolerance,
                movement_fraction,
                step_noise,
                error_window,
                callback,
            )
        )
