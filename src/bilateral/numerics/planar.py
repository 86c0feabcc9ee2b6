"""Solve with one plane per vertex instead of one value: the planar model.

The planes of neighbours should meet midway between their vertices, and be parallel. With the value
a and the slopes g of each vertex at its centre p, both in cells, d = p_v - p_u, and the weights
w_uv = n_u B_uv n_v of the ordinary model, a solve minimizes

    smoothness sum_uv w_uv ((a_u + g_u d / 2 - a_v + g_v d / 2)^2 + slope_smoothness |g_u - g_v|^2)
    + smoothness slope_ridge sum_v m_v |g_v|^2 + sum_i c_i (a_v + g_v (p_i - p_v) - t_i)^2.

A large ridge gives the ordinary model; without a ridge, an affine target comes back unchanged.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral import losses, validation
from bilateral.backends import cpu
from bilateral.grid import BilateralGrid, core_of, planes_of
from bilateral.numerics import pcg, policy, robust, slope_rule, system
from bilateral.numerics.options import SolveOptions
from bilateral.numerics.problem import set_up
from bilateral.numerics.problem import start as start_of
from bilateral.numerics.warm_start import WarmStart
from bilateral.numerics.warm_start import to_start as constant_start

Array = NDArray[Any]


class PlaneSystem(NamedTuple):
    """One planar system. Its values may have other units than the caller's, to stay moderate."""

    sums: cpu.PlaneObservation
    smoothness: float
    """lambda, in the unit of the confidences."""
    scale: Array
    """Range of the known values per channel, in the system's unit."""
    unit: Array
    """The caller's value of 1, per channel."""
    confidence_unit: float
    """The caller's confidence of 1."""

    @property
    def has_gaps(self) -> bool:
        """Whether some vertex has no data."""
        return bool(self.sums.moments[:, 0].min() <= 0)

    @property
    def origin(self) -> Array:
        """What to add to the system's values, per channel, in the caller's unit."""
        return np.array(self.sums.origin) * self.unit

    @property
    def bounds(self) -> tuple[list[float], list[float]]:
        """The range of the known values per channel, a little wider, in the caller's unit."""
        low, high = self.sums.low * self.unit, self.sums.high * self.unit
        margin = policy.CLAMP_MARGIN * (high - low)
        return (low - margin).tolist(), (high + margin).tolist()


def observe(
    grid: BilateralGrid,
    target: Array,
    confidence: Array | None,
    smoothness: float,
    slope_ridge: float | None,
) -> PlaneSystem | None:
    """Splat a target and its confidence to planes; None if no pixel is known.

    A float32 problem becomes a float64 one if numbers exceed float32, or if the ridge (None: chosen
    by `slope_weights`) is too small beside the confidences. A float64 problem whose numbers exceed
    float64 gets other units.
    """
    sums = cpu.splat_planes(planes_of(grid), target, confidence)
    validation.confidence_value(confidence, sums.invalid)
    if sums.known == 0:
        return None
    size = np.maximum(np.abs(sums.low), np.abs(sums.high))
    span = sums.high - sums.low
    scale = np.where(span > 0, span, np.where(size > 0, size, 1.0))
    unit, confidence_unit = np.ones(len(size)), 1.0
    ridge = policy.SLOPE_RIDGE if slope_ridge is None else slope_ridge
    least_ridge = policy.FLOAT32_PLANE_RIDGE * sums.confidence / math.prod(grid.shape)
    is_hidden = smoothness * ridge < least_ridge
    if (is_hidden and target.dtype == np.float32) or not system.dtype_is_enough(
        grid, target.dtype, size, sums.known, sums.confidence, smoothness
    ):
        if target.dtype == np.float32:
            confidence = None if confidence is None else confidence.astype(np.float64)
            return observe(grid, target.astype(np.float64), confidence, smoothness, slope_ridge)
        unit = np.where(size > 0, size, 1.0)
        known = np.asarray(np.isfinite(target).all(axis=-1))
        if confidence is not None:
            confidence_unit = float(confidence[known].max())
            confidence = np.where(known, confidence, 0) / confidence_unit
        with np.errstate(over="ignore", under="ignore"):
            smoothness = float(np.clip(np.float64(smoothness) / confidence_unit, 1e-30, 1e30))
        values = np.where(known[..., np.newaxis], target, np.nan) / unit
        sums = cpu.splat_planes(planes_of(grid), values, confidence)
        scale = scale / unit
    return PlaneSystem(sums, smoothness, scale, unit, confidence_unit)


class Solution(NamedTuple):
    """The planes of a solve."""

    system: PlaneSystem
    x: Array
    """Planes in the system's unit."""
    outcome: pcg.Outcome

    def pixels(self, grid: BilateralGrid, bounds: tuple[list[float], list[float]] | None) -> Array:
        """Evaluate the planes at the pixels (..., K), clamped to bounds, in the caller's unit."""
        x = self.x * self.system.unit[:, np.newaxis, np.newaxis].astype(self.x.dtype)
        return cpu.slice_planes(planes_of(grid), x, grid.shape, self.system.origin.tolist(), bounds)

    def warm_start(self, grid: BilateralGrid) -> WarmStart:
        """Return the same solution for the next solve."""
        x = self.x * self.system.unit[:, np.newaxis, np.newaxis].astype(self.x.dtype)
        y = x[:, :, 0].T + self.system.origin.astype(x.dtype)
        return WarmStart(grid, np.ascontiguousarray(y), np.ascontiguousarray(x[:, :, 1:]))


class PlaneSolver:
    """Solves planar systems on one grid, one after another, in memory that they share."""

    def __init__(
        self, grid: BilateralGrid, slopes: tuple[float, float], options: SolveOptions
    ) -> None:
        self._grid = grid
        self._slopes = slopes
        self._options = options
        self._solver: tuple[np.dtype[Any], bool, cpu.PlaneSolver] | None = None

    def solve(
        self,
        observed: PlaneSystem,
        start: Array | None,
        callback: pcg.Callback | None = None,
        *,
        movement_fraction: float = 0.0,
        tolerance: float | None = None,
        scale: Array | None = None,
        steps: int | None = None,
        all_levels: bool = True,
    ) -> Solution:
        """Solve from a start, or from the solutions of coarser levels.

        `tolerance`, `scale` and the largest number of `steps` replace those of the options and of
        the system. Without `all_levels`, sweeps over the grid replace multigrid: see `is_easy`.
        """
        weighted, options = observed.sums.weighted, self._options
        if self._solver is None or self._solver[:2] != (weighted.dtype, all_levels):
            solver = cpu.PlaneSolver.make(
                planes_of(self._grid), self._slopes, weighted.dtype, all_levels=all_levels
            )
            self._solver = weighted.dtype, all_levels, solver
        x = np.empty_like(weighted) if start is None else start.astype(weighted.dtype)
        outcome = self._solver[2].solve(
            observed.sums.moments,
            weighted,
            x,
            (observed.scale if scale is None else scale).tolist(),
            nested=start is None,
            smoothness=observed.smoothness,
            # Gaps in the data may hide slow errors from the first step.
            min_iterations=2 if start is None and observed.has_gaps else 1,
            max_iterations=min(
                options.max_iterations if steps is None else steps, np.iinfo(np.int32).max
            ),
            tolerance=options.stop_tolerance if tolerance is None else tolerance,
            movement_fraction=movement_fraction,
            step_noise=policy.STEP_NOISE,
            error_window=policy.ERROR_WINDOW,
            callback=callback,
        )
        return Solution(observed, x, outcome)

    def is_easy(self, observed: PlaneSystem) -> bool:
        """Whether a solve without a start needs no multigrid, by `policy.sweeps_are_enough`."""
        grid, sums, options = self._grid, observed.sums, self._options
        confidence = np.ascontiguousarray(sums.moments[:, 0])
        least = observed.smoothness / policy.SWEEP_LOOSE_SMOOTHNESS
        return policy.sweeps_are_enough(
            smoothness=observed.smoothness,
            slope_ridge=self._slopes[1],
            pixels=math.prod(grid.shape),
            confidence=sums.confidence,
            every_vertex_has_data=bool(confidence.min() > 0),
            tolerance=options.stop_tolerance,
            loose_fraction=lambda: (
                cpu.count_loose(core_of(grid), confidence, least) / math.prod(grid.shape)
            ),
        )

    def start_from(self, observed: PlaneSystem, earlier: WarmStart) -> Array:
        """Convert an earlier solution, constant or planar, to a start for a system."""
        y = earlier.y.T - observed.origin[:, np.newaxis]
        axes = observed.sums.weighted.shape[2] - 1
        slopes = np.zeros((*y.shape, axes)) if earlier.slopes is None else earlier.slopes
        # A far-off start costs steps, and nothing else.
        limit = 1e3 * observed.scale[:, np.newaxis, np.newaxis]
        with np.errstate(over="ignore"):
            x = np.concatenate([y[:, :, np.newaxis], slopes], axis=2)
            x = np.clip(x / observed.unit[:, np.newaxis, np.newaxis], -limit, limit)
        unknown = np.isnan(x).any(axis=(0, 2))
        if unknown.any():
            fresh = self.solve(observed, None, steps=0).x
            x[:, unknown] = fresh[:, unknown]
        return x

    def vertices_with_data(self) -> NDArray[np.bool_]:
        """Return whether each vertex was connected to data in the last solve."""
        if self._solver is None:
            raise ValueError("solver: expected one that has solved a system, got a new one.")
        return self._solver[2].vertices_with_data()


def slope_weights(
    grid: BilateralGrid,
    target: Array,
    confidence: Array | None,
    observed: PlaneSystem,
    options: SolveOptions,
) -> tuple[float, float]:
    """Return slope smoothness and ridge: the caller's, or those of the rule."""
    if options.slope_ridge is not None:
        return options.slope_smoothness, options.slope_ridge
    factor = slope_rule.factor(grid, target / observed.unit, confidence, observed.smoothness)
    return options.slope_smoothness * factor, policy.SLOPE_RIDGE * factor


class Rounds(NamedTuple):
    """Result of robust rounds."""

    solution: Solution
    movements: list[float]
    """Distance each round moved the solution: RMS over pixels, relative to the target's range."""
    bounds: tuple[list[float], list[float]]
    """Range of the values that the last round trusts, a little wider."""


def solve_robust(
    grid: BilateralGrid,
    target: Array,
    confidence: Array | None,
    earlier: WarmStart | None,
    loss: losses.Loss,
    max_rounds: int,
    min_change: float,
    smoothness: float,
    options: SolveOptions,
    callback: pcg.Callback | None,
) -> Rounds:
    """Alternate between solving and reweighting, first with constants, then with planes.

    Arguments as for `robust.solve`, with an earlier solution as the start.
    """
    ridge = options.slope_ridge
    first = validation.some_data(observe(grid, target, confidence, smoothness, ridge))
    slopes = slope_weights(grid, target, confidence, first, options)
    solver = PlaneSolver(grid, slopes, options)
    movements: list[float] = []
    ended = False

    def after_round(_: int, movement: float) -> bool:
        nonlocal ended
        movements.append(movement)
        ended = callback is not None and bool(callback(len(movements), movement))
        return ended

    def weigh(x: Array) -> Array:
        weights: Array = robust.pixel_weights(x, target, loss).astype(target.dtype)
        return weights

    weights, start = confidence, earlier
    constant_rounds = max_rounds - max(1, int(policy.PLANE_ROUNDS * max_rounds))
    if constant_rounds > 0:
        plain = replace(options, model="constant")
        problem = set_up(grid, target, confidence, smoothness, plain)
        y = None if earlier is None else constant_start(problem.system, earlier.y)
        y = start_of(grid, problem, plain, y)
        rounds = robust.solve(
            grid,
            target,
            problem,
            y,
            loss,
            constant_rounds,
            min_change,
            smoothness,
            plain,
            after_round,
        )
        y = system.values(rounds.system, rounds.y)
        start = None
        weights = weigh(system.slice_vertices(grid, y))
    fraction = min(policy.ROUND_FRACTION, 500 * max(options.stop_tolerance, 0.0))
    solution: Solution | None = None
    trusted = weights
    while True:
        observed = observe(grid, target, weights, smoothness, ridge)
        if observed is None:  # every weight is 0
            break
        is_first = solution is None
        x = None if start is None else solver.start_from(observed, start)
        solution = solver.solve(observed, x, movement_fraction=0.0 if is_first else fraction)
        trusted, start = weights, solution.warm_start(grid)
        if ended or after_round(0, solution.outcome.moved) or len(movements) >= max_rounds:
            break
        if not is_first and movements[-1] <= min_change:
            break
        weights = weigh(solution.pixels(grid, None))
    if solution is None:  # the loss trusts no pixel at all
        solution = solver.solve(first, None)
        trusted = confidence
    return Rounds(solution, movements, inlier_bounds(target, trusted))


def inlier_bounds(target: Array, weights: Array | None) -> tuple[list[float], list[float]]:
    """Return the range of the values that the last round trusts, a little wider."""
    trusted = np.isfinite(target).all(axis=-1)
    if weights is not None:
        largest = weights.max(where=trusted, initial=0.0)
        trusted &= (weights > 0) & (weights >= policy.TRUSTED_WEIGHT * largest)
    values = target[trusted].astype(np.float64)
    low, high = values.min(axis=0), values.max(axis=0)
    margin = policy.CLAMP_MARGIN * (high - low)
    return (low - margin).tolist(), (high + margin).tolist()


def pixel_sums(grid: BilateralGrid, values: Array) -> Array:
    """Sum pixels (..., K) to planes by the transpose of the slicing; NaN if one is not finite."""
    sums = cpu.splat_planes(planes_of(grid), values, None, centred=False)
    if sums.known < math.prod(grid.shape):
        sums.weighted.fill(np.nan)
    return sums.weighted


def fill_transposed(grid: BilateralGrid, with_data: NDArray[np.bool_], x: Array) -> None:
    """Apply the transpose of the fill of parts without data to planes, in place."""
    cpu.fill_transposed(planes_of(grid), with_data, x)
