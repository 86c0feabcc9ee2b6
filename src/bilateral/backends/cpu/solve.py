"""Set up and solve linear systems on a grid."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral import _core
from bilateral.backends.cpu.grid import Grid
from bilateral.threads import get_num_threads

Array = NDArray[Any]
Loss = _core.Loss
Samples = _core.Samples32 | _core.Samples64


class Observation(NamedTuple):
    """S c and S (c t), with statistics of the target and its confidence."""

    weight: Array
    weighted: Array
    known: int
    """Number of pixels with data."""
    low: Array
    """Lowest value of each channel among them."""
    high: Array
    invalid: int | None
    """The first pixel whose confidence is negative or not finite."""

    @property
    def confidence(self) -> float:
        """Sum of the confidences of the pixels with data."""
        return total_weight(self.weight)


def total_weight(weight: Array) -> float:
    """Sum the weights of all vertices in float64, always in the same order."""
    return float(weight.sum(dtype=np.float64))


def splat_target(grid: Grid, target: Array, confidence: Array | None) -> Observation:
    """Splat a (..., K) target with its confidence. Pixels with non-finite values have no data."""
    weight = np.empty(grid.n_vertices, target.dtype)
    weighted = np.empty((grid.n_vertices, target.shape[-1]), target.dtype)
    known, low, high, invalid = grid.core.splat_target(
        target, confidence, weight, weighted, get_num_threads()
    )
    return Observation(weight, weighted, known, *bounds(low, high), invalid)


def bounds(low: list[float], high: list[float]) -> tuple[Array, Array]:
    """Return bounds as arrays, with 0 for -0, which depends on the order of the pixels."""
    return np.array(low) + 0.0, np.array(high) + 0.0


def samples(grid: Grid, target: Array) -> Samples:
    """Collect the known pixels of a (..., K) target in the order that `splat_robust` needs."""
    kind = _core.Samples32 if target.dtype == np.float32 else _core.Samples64
    return kind(grid.core, target, get_num_threads())


def splat_robust(samples: Samples, loss: Loss, y: Array, weight: Array, weighted: Array) -> None:
    """Splat a target with the weights of a loss at its distance from y as confidence.

    Writes the sums to `weight` and `weighted`.
    """
    samples.splat(loss, y, weight, weighted, get_num_threads())


def covariance(weight: Array, weighted: Array) -> tuple[Array, Array]:
    """Compute the weighted mean of the channels and the lower triangle of their covariance."""
    channels = weighted.shape[1]
    mean, products = np.empty(channels), np.empty((channels, channels))
    _core.covariance(weight, weighted, mean, products, get_num_threads())
    return mean, products


def project(weight: Array, weighted: Array, mean: Array, basis: Array) -> Array:
    """Compute ``(weighted - weight * mean) @ basis.T``: the channels in terms of a basis."""
    reduced = np.empty((len(weight), len(basis)), weight.dtype)
    _core.project(weight, weighted, mean, basis, reduced, get_num_threads())
    return reduced


def expand(reduced: Array, mean: Array, basis: Array) -> Array:
    """Compute ``reduced @ basis + mean``: all channels from their projection."""
    full = np.empty((len(reduced), len(mean)), reduced.dtype)
    _core.expand(reduced, mean, basis, full, get_num_threads())
    return full


def start(grid: Grid, weight: Array, weighted: Array, initial: str, smoothness: float) -> Array:
    """Compute the paper's start, "pyramid" or "flat", or the start of multigrid, "nested".

    The nested start is 0 where there is no data.
    """
    x, threads = np.empty_like(weighted), get_num_threads()
    if initial == "nested":
        grid.core.nested_start(weight, weighted, smoothness, x, threads)
    elif initial == "pyramid":
        grid.core.pyramid_start(weight, weighted, x, threads)
    else:
        grid.core.flat_start(weight, weighted, x, threads)
    return x


def draw_probes(grid: Grid, weight: Array, smoothness: float, seed: int, probes: int) -> Array:
    """Draw at most 64 right-hand sides (n_vertices, probes) with covariance A; a 64-bit seed."""
    b = np.empty((grid.n_vertices, probes), weight.dtype)
    grid.core.draw_probes(weight, smoothness, seed, b, get_num_threads())
    return b


@dataclass(slots=True)
class Solver:
    """Memory and matrices for solves on one grid in one dtype; not for two threads at once."""

    grid: Grid
    preconditioner: str
    core: _core.Solver | None = None
    """The first solve creates it."""


def was_with_data(solver: Solver, n_vertices: int) -> NDArray[np.bool_]:
    """Return `with_data` of the last system of a solver that has solved one."""
    if solver.core is None:
        raise ValueError("solver: expected one that has solved a system, got a new one.")
    out = np.empty(n_vertices, np.bool_)
    solver.core.with_data(out)
    return out


class Outcome(NamedTuple):
    """Result of PCG."""

    residuals: list[float]
    """The error estimate after each step."""
    converged: bool
    """Whether all channels converged."""
    diverged: bool
    """Whether rounding errors grew in a channel; x is the best of its steps."""
    moved: float
    """Upper bound of the distance that x moved, RMS over the pixels and relative to the scale."""


def pcg(
    solver: Solver,
    weight: Array,
    weighted: Array,
    x: Array,
    scale: Array,
    *,
    fill: bool,
    smoothness: float,
    min_iterations: int,
    max_iterations: int,
    tolerance: float,
    movement_fraction: float,
    step_noise: float,
    error_window: int,
    callback: Callable[[int, float], Any] | None,
) -> Outcome:
    """Improve x in place by preconditioned conjugate gradients.

    Parameters
    ----------
    solver : Solver
    weight, weighted : arrays
        S c and S (c t).
    x : (n_vertices, K) array
        The start, then the solution.
    scale : (K,) array
        Size of the solution, to which error estimates are relative.
    fill : bool
        Give components without data the pyramid start; else they keep x.
    smoothness : float
    min_iterations, max_iterations : int
    tolerance : float
        Stop at this error; negative: after `max_iterations`.
    movement_fraction : float
        Also stop when the error falls below this fraction of the distance moved.
    step_noise : float
        See `bilateral.numerics.policy.STEP_NOISE`.
    error_window : int
        See `bilateral.numerics.policy.ERROR_WINDOW`.
    callback : function of (step, residual), optional
    """
    solver.core, residuals, converged, diverged, moved = _core.solve(
        solver.core,
        solver.grid.core,
        solver.preconditioner,
        weight,
        weighted,
        x,
        scale.tolist(),
        fill,
        smoothness,
        min_iterations,
        max_iterations,
        tolerance,
        movement_fraction,
        step_noise,
        error_window,
        callback,
        get_num_threads(),
    )
    return Outcome(residuals, converged, diverged, moved)
