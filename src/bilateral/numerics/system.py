"""The linear system A y = b of one target on a grid (Eq. 6 of the paper)."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral import validation as checks
from bilateral.backends import cpu
from bilateral.grid import BilateralGrid

Array = NDArray[Any]
Callback = Callable[[int, float], Any]


class System(NamedTuple):
    """A = lambda (D_m - D_n B-bar D_n) + diag(weight) and b = weighted.

    Values and confidences may be in units of their own, so that numbers stay moderate.
    """

    weight: Array
    """S c, one number per vertex."""
    weighted: Array
    """S (c t), one row per vertex."""
    smoothness: float
    """lambda, in the confidences' unit."""
    scale: Array
    """Range of the known values of each channel: what error estimates are relative to."""
    unit: Array | None = None
    """What a value of 1 means, for each channel; None: itself."""
    confidence_unit: float = 1.0
    """What a confidence of 1 means."""


def observe(
    grid: BilateralGrid, target: Array, confidence: Array | None, smoothness: float
) -> System | None:
    """Sum a target and its confidence over the grid's vertices; None if nothing is known.

    A float32 problem with numbers that float32 cannot serve becomes one of float64, and a float64
    problem with extreme numbers one in other units.
    """
    seen = cpu.splat_target(grid._core, target, confidence)
    checks.confidence_value(confidence, seen.invalid)
    if seen.known == 0:
        return None
    dtype = seen.weight.dtype
    if not _serves(grid, dtype, _size(seen), seen.known, seen.confidence, smoothness):
        if target.dtype == np.float64:
            return _in_other_units(grid, target, confidence, smoothness, seen)
        wide = None if confidence is None else confidence.astype(np.float64)
        return observe(grid, target.astype(np.float64), wide, smoothness)
    return System(seen.weight, seen.weighted, smoothness, _scale(seen))


def reweigh(
    grid: BilateralGrid, system: System, samples: cpu.Samples, y: Array, loss: cpu.Loss
) -> System | None:
    """The system with confidences from the residuals of its solution `y`, in the same arrays.

    None if the dtype does not serve it.
    """
    total = cpu.splat_robust(samples, loss, y, system.weight, system.weighted)
    size = np.array(samples.size)
    serves = _serves(grid, y.dtype, size, samples.known, total, system.smoothness)
    return system if serves else None


def _serves(
    grid: BilateralGrid,
    dtype: np.dtype[Any],
    size: Array,
    known: int,
    confidence: float,
    smoothness: float,
) -> bool:
    """Whether numbers of these magnitudes are safe: of values, of confidences, and smoothness."""
    limit = 1e100 if dtype == np.float64 else 1e12
    # Together these bound the ratios of the numbers that meet in a solve.
    numbers = np.array([*size[size > 0], confidence / known, smoothness])
    moderate = bool((numbers < limit).all() and (numbers > 1 / limit).all())
    if dtype == np.float64 or not moderate:
        return moderate
    # float32's rounding of the smoothness term, summed over the vertices, against the data term
    stiffness = smoothness * math.prod(grid.shape) / confidence
    return bool(stiffness <= 100 * np.sqrt(grid.n_vertices))


def _size(seen: cpu.Observation) -> Array:
    size: Array = np.maximum(np.abs(seen.low), np.abs(seen.high))
    return size


def _scale(seen: cpu.Observation) -> Array:
    scale = np.where(seen.high > seen.low, seen.high - seen.low, _size(seen))
    return np.where(scale > 0, scale, 1.0)


def _in_other_units(
    grid: BilateralGrid,
    target: Array,
    confidence: Array | None,
    smoothness: float,
    seen: cpu.Observation,
) -> System:
    size = _size(seen)
    unit = np.where(size > 0, size, 1.0)
    known = np.asarray(np.isfinite(target).all(axis=-1))
    largest = 1.0
    if confidence is not None:
        largest = float(confidence[known].max())
        confidence = np.where(known, confidence, 0) / largest
    values = np.divide(target, unit, where=known[..., np.newaxis], out=np.full_like(target, np.nan))
    seen = cpu.splat_target(grid._core, values, confidence)
    # Beyond these, more or less smoothness changes nothing that float64 could show.
    with np.errstate(over="ignore", under="ignore"):
        relative = float(np.clip(np.float64(smoothness) / largest, 1e-30, 1e30))
    return System(seen.weight, seen.weighted, relative, _scale(seen), unit, largest)


def values(system: System, y: Array) -> Array:
    """A solution of the system in the target's own unit."""
    return y if system.unit is None else y * system.unit


def carry(y: Array, old: System, new: System) -> Array:
    """A solution of one system in the unit and dtype of another; itself if they are the same."""
    if old.unit is None and new.unit is None:
        return y.astype(new.weight.dtype, copy=False)
    carried: Array = values(old, y).astype(np.float64)
    return carried if new.unit is None else carried / new.unit


def vertex_means(grid: BilateralGrid, pixels: Array) -> Array:
    """Each vertex's mean of (..., K) pixels."""
    ones = np.ones(grid.shape, pixels.dtype)
    mass = cpu.splat(grid._core, ones, grid.shape)[:, np.newaxis]
    mean: Array = cpu.splat(grid._core, pixels, grid.shape) / mass
    return mean


def start_at(system: System, y: Array) -> Array:
    """Where PCG starts from an earlier solution, one row per vertex in the target's own unit."""
    known = system.weight > 0
    largest = np.abs(system.weighted[known] / system.weight[known, np.newaxis]).max(axis=0)
    limit = 1e3 * (largest + system.scale)  # the solution is no larger than the largest mean
    with np.errstate(over="ignore"):
        start = y if system.unit is None else y / system.unit
    clipped: Array = np.clip(start, -limit, limit).astype(system.weight.dtype)
    return clipped


class Options(NamedTuple):
    """How to solve a system."""

    preconditioner: str
    initial: str | None
    """None: what suits the preconditioner."""
    most_steps: int
    tolerance: float
    """Where to stop; negative: after exactly `most_steps`."""


_EASY = 100
"""Up to this smoothness, relative to the confidence, the pyramid converges fast enough."""
_FAINT = 1e-3
"""The part of the pixels that may have less confidence than that."""


def preconditioner(grid: BilateralGrid, system: System, options: Options) -> str:
    """The one that `options` mean for a system: multigrid, unless the pyramid will do.

    It will where every vertex has data of its own, and all but a few have enough of it, so that no
    value has far to travel.
    """
    if options.preconditioner != "multigrid":
        return options.preconditioner
    weight, mass, pixels = system.weight, grid._core.mass(), math.prod(grid.shape)
    if not weight.min() > 0 or system.smoothness * pixels > _EASY * weight.sum(dtype=np.float64):
        return "multigrid"
    enough = np.float64(system.smoothness / _EASY) * mass  # float64 holds any of them
    faint = mass[weight < enough].sum(dtype=np.float64)
    return "pyramid" if faint <= _FAINT * pixels else "multigrid"


def start(grid: BilateralGrid, system: System, options: Options) -> Array:
    """Where PCG starts, without an earlier solution."""
    initial = options.initial
    if initial is None:
        nested = preconditioner(grid, system, options) == "multigrid"
        initial = "nested" if nested else "pyramid"
    return cpu.start(grid._core, system.weight, system.weighted, initial, system.smoothness)


class Solver:
    """Solves systems on one grid, one after another, in memory that they share."""

    def __init__(self, grid: BilateralGrid, options: Options) -> None:
        self._grid = grid
        self._options = options
        self._made: dict[tuple[np.dtype[Any], str], cpu.Solver] = {}

    def solve(
        self,
        system: System,
        x: Array,
        callback: Callback | None = None,
        *,
        warm: bool = False,
        fill: bool = True,
        tolerance: float | None = None,
    ) -> cpu.Outcome:
        """Improve the start `x` in place to the solution; a warm one may be there in one step.

        Parts of the grid without data get the pyramid start if `fill`, else they keep x. A
        `tolerance` takes the place of the usual one.
        """
        kind = preconditioner(self._grid, system, self._options)
        least = 1 if warm and kind == "multigrid" else 2
        return self._run(
            kind,
            system,
            x,
            callback,
            fill=fill,
            least_steps=least,
            of_movement=0.0,
            tolerance=tolerance,
        )

    def with_data(self) -> NDArray[np.bool_]:
        """Whether each vertex was connected to data in the last problem."""
        (made,) = self._made.values()
        return cpu.was_with_data(made, self._grid.n_vertices)

    def follow(self, system: System, x: Array, of_movement: float) -> cpu.Outcome:
        """Improve in place what solved a system much like this one.

        The error left is the tolerance, or `of_movement` of the way that x went.
        """
        kind = self._options.preconditioner
        return self._run(kind, system, x, None, fill=False, least_steps=1, of_movement=of_movement)

    def _run(
        self,
        kind: str,
        system: System,
        x: Array,
        callback: Callback | None,
        *,
        fill: bool,
        least_steps: int,
        of_movement: float,
        tolerance: float | None = None,
    ) -> cpu.Outcome:
        options = self._options
        if (x.dtype, kind) not in self._made:
            self._made = {(x.dtype, kind): cpu.solver(self._grid._core, x.dtype, kind)}
        return cpu.pcg(
            self._made[x.dtype, kind],
            system.weight,
            system.weighted,
            x,
            system.scale,
            fill=fill,
            smoothness=system.smoothness,
            least_steps=least_steps,
            most_steps=min(options.most_steps, np.iinfo(np.int32).max),
            tolerance=options.tolerance if tolerance is None else tolerance,
            of_movement=of_movement,
            callback=callback,
        )
