"""Solve a target on a grid, from the caller's arrays to pixels: plainly or robustly."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bilateral import losses, validation
from bilateral.filters.domain_transform import domain_transform
from bilateral.grid import BilateralGrid, reference_of
from bilateral.info import SolveInfo
from bilateral.numerics import lowrank, pcg, planar, robust, smoothness_rule, system
from bilateral.numerics.options import SolveOptions
from bilateral.numerics.problem import Problem, check_inputs, set_up, start
from bilateral.numerics.warm_start import WarmStart, fitted_planes, to_start, vertex_means

Array = NDArray[Any]

WEIGHTS = ("joint", "channel")


class Solution(NamedTuple):
    """The result of a solve."""

    x: Array
    """Pixels, in the target's shape and dtype."""
    info: SolveInfo
    warm_start: WarmStart
    """The same solution for the next solve."""


class Solve(NamedTuple):
    """One solve: the grid, the options, and the arguments common to all methods."""

    grid: BilateralGrid
    smoothness: float | str
    """A number, or "auto"."""
    options: SolveOptions
    target: ArrayLike
    confidence: ArrayLike | None
    smooth: tuple[float, float] | None = None
    warm_start: ArrayLike | None = None
    last: WarmStart | None = None
    """The solution that ``warm_start="last"`` means."""
    callback: pcg.Callback | None = None
    dtype: DTypeLike | None = None

    def plain(self, rank_tolerance: float | None, stacklevel: int) -> Solution:
        """Solve once. A warning points `stacklevel` frames up, where 1 is the caller of this."""
        began, grid, options = time.perf_counter(), self.grid, self.options
        checked, weights = check_inputs(grid, self.target, self.confidence, options, self.dtype)
        sigmas = validation.smooth(self.smooth, reference_of(grid))
        if rank_tolerance is not None:
            validation.fraction("rank_tolerance", rank_tolerance)
        if options.planar:
            validation.none_with("rank_tolerance", rank_tolerance, "model='planar'")
            validation.callback(self.callback)
            return self._plain_planes(checked, weights, sigmas, began, stacklevel + 1)
        earlier = self._earlier(checked)
        validation.callback(self.callback)
        smoothness = self._smoothness(checked, weights)
        problem = set_up(grid, checked.values, weights, smoothness, options)
        y = None if earlier is None else to_start(problem.system, earlier.y)
        vertices, info = solve_vertices(
            grid, problem, y, smoothness, options, rank_tolerance, self.callback, stacklevel + 1
        )
        x = _finish(grid, system.slice_vertices(grid, vertices), checked, sigmas)
        return Solution(x, _timed(info, began), WarmStart(grid, vertices))

    def robust(
        self,
        loss: losses.Loss,
        max_rounds: int,
        weights: str,
        min_change: float,
        stacklevel: int,
    ) -> Solution:
        """Solve by reweighted rounds. A warning points `stacklevel` frames up, as for `plain`."""
        began, grid, options = time.perf_counter(), self.grid, self.options
        checked, confidence = check_inputs(grid, self.target, self.confidence, options, self.dtype)
        sigmas = validation.smooth(self.smooth, reference_of(grid))
        earlier = self._earlier(checked)
        validation.loss(loss)
        validation.count("iterations", max_rounds, 1)
        validation.choice("weights", weights, WEIGHTS)
        validation.not_negative("min_change", min_change)
        validation.callback(self.callback)
        if options.planar:
            return self._robust_planes(
                checked,
                confidence,
                sigmas,
                earlier,
                loss,
                max_rounds,
                weights,
                min_change,
                began,
            )
        channels = checked.values.shape[-1]
        smoothness = self._smoothness(checked, confidence)
        parts = [slice(None)] if weights == "joint" else [slice(k, k + 1) for k in range(channels)]
        solutions, movements, converged = [], np.zeros(0), True
        for part in parts:
            values = np.ascontiguousarray(checked.values[..., part])
            problem = set_up(grid, values, confidence, smoothness, options)
            y = None if earlier is None else to_start(problem.system, earlier.y[:, part])
            rounds = robust.solve(
                grid,
                values,
                problem,
                start(grid, problem, options, y),
                loss,
                max_rounds,
                min_change,
                smoothness,
                options,
                self.callback,
            )
            pcg.warn_if_not_converged(rounds.outcome, options, smoothness, stacklevel + 2)
            # Later rounds weigh all finite values, with and without confidence.
            solutions.append(system.solution(rounds.system, rounds.y, _finite_range(values)))
            converged = converged and not rounds.outcome.diverged
            converged = converged and pcg.estimate_holds(
                grid, rounds.system, options.preconditioner, options.tolerance
            )
            movements = _elementwise_max(movements, np.array(rounds.movements))
        vertices = solutions[0] if len(solutions) == 1 else np.concatenate(solutions, axis=1)
        x = _finish(grid, system.slice_vertices(grid, vertices), checked, sigmas)
        converged = converged and bool(movements[-1] <= options.tolerance)
        info = _info(grid, movements.tolist(), converged, began, channels, smoothness)
        return Solution(x, info, WarmStart(grid, vertices))

    def _plain_planes(
        self,
        checked: validation.Target,
        confidence: Array | None,
        sigmas: tuple[float, float] | None,
        began: float,
        stacklevel: int,
    ) -> Solution:
        grid, options = self.grid, self.options
        earlier = self._earlier(checked)
        smoothness = self._smoothness(checked, confidence)
        observed = planar.observe(grid, checked.values, confidence, smoothness, options.slope_ridge)
        problem = validation.some_data(observed)
        slopes = planar.slope_weights(grid, checked.values, confidence, problem, options)
        solver = planar.PlaneSolver(grid, slopes, options)
        start = None if earlier is None else solver.start_from(problem, earlier)
        all_levels = start is not None or not solver.is_easy(problem)
        solution = solver.solve(problem, start, self.callback, all_levels=all_levels)
        outcome = solution.outcome
        pcg.warn_if_not_converged(outcome, options, smoothness, stacklevel + 2)
        converged = outcome.converged and bool(outcome.residuals)
        pixels = solution.pixels(grid, problem.bounds if options.clamp else None)
        x = _finish(grid, pixels, checked, sigmas)
        info = _info(grid, outcome.residuals, converged, began, len(solution.x), smoothness)
        return Solution(x, info, solution.warm_start(grid))

    def _robust_planes(
        self,
        checked: validation.Target,
        confidence: Array | None,
        sigmas: tuple[float, float] | None,
        earlier: WarmStart | None,
        loss: losses.Loss,
        max_rounds: int,
        weights: str,
        min_change: float,
        began: float,
    ) -> Solution:
        grid, channels = self.grid, checked.values.shape[-1]
        parts = [slice(None)] if weights == "joint" else [slice(k, k + 1) for k in range(channels)]
        pixels, starts, movements = [], [], np.zeros(0)
        smoothness = self._smoothness(checked, confidence)
        for part in parts:
            values = np.ascontiguousarray(checked.values[..., part])
            start = None if earlier is None else earlier.channels(part)
            rounds = planar.solve_robust(
                grid,
                values,
                confidence,
                start,
                loss,
                max_rounds,
                min_change,
                smoothness,
                self.options,
                self.callback,
            )
            bounds = rounds.bounds if self.options.clamp else None
            pixels.append(rounds.solution.pixels(grid, bounds))
            starts.append(rounds.solution.warm_start(grid))
            movements = _elementwise_max(movements, np.array(rounds.movements))
        x = _finish(grid, np.concatenate(pixels, axis=-1), checked, sigmas)
        converged = bool(movements[-1] <= self.options.tolerance)
        info = _info(grid, movements.tolist(), converged, began, channels, smoothness)
        return Solution(x, info, WarmStart.join(starts))

    def _smoothness(self, checked: validation.Target, confidence: Array | None) -> float:
        planar = self.options.planar
        return smoothness_rule.resolve(
            self.smoothness, self.grid, checked.values, confidence, planar
        )

    def _earlier(self, checked: validation.Target) -> WarmStart | None:
        """Return an earlier solution on the grid, in the target's own unit."""
        if self.warm_start is None:
            return None
        if not isinstance(self.warm_start, str) or self.warm_start != "last":
            pixels = validation.warm_start(self.warm_start, checked)
            if self.options.planar:
                return fitted_planes(self.grid, pixels)
            return WarmStart(self.grid, vertex_means(self.grid, pixels))
        last = self.last
        validation.last_solution(None if last is None else last.shape, checked)
        return None if last is None else last.on(self.grid)


def solve_vertices(
    grid: BilateralGrid,
    problem: Problem,
    y: Array | None,
    smoothness: float,
    options: SolveOptions,
    rank_tolerance: float | None,
    callback: pcg.Callback | None,
    stacklevel: int,
) -> tuple[Array, SolveInfo]:
    """Solve a problem, from an earlier solution `y` if there is one; return (n_vertices, K).

    A warning points `stacklevel` frames up, where 1 is the caller of this.
    """
    began, warm, full, reduced = time.perf_counter(), y is not None, problem.system, None
    if rank_tolerance is not None:
        reduced = lowrank.reduce(full, rank_tolerance)
    if reduced is not None:
        problem = problem._replace(system=reduced.system)
        y = None if y is None else reduced.project(y)
    y = start(grid, problem, options, y)
    outcome = pcg.SystemSolver(grid, options).solve(
        problem.system, y, problem.preconditioner, callback, warm=warm
    )
    pcg.warn_if_not_converged(outcome, options, smoothness, stacklevel + 2)
    residuals, converged = outcome.residuals, outcome.converged
    if options.fixed_steps or options.max_iterations == 0:
        converged = bool(residuals) and residuals[-1] <= options.tolerance
        converged = converged and not outcome.diverged
        converged = converged and pcg.estimate_holds(grid, *problem, options.tolerance)
    if reduced is not None:  # clipping would change the sums of the channels
        vertices = reduced.expand(y)
    else:
        # Without any step, the result is the start, a warm start as the caller gave it.
        vertices = system.solution(full, y, full.bounds if residuals else None)
    return vertices, _info(grid, residuals, converged, began, y.shape[1], smoothness)


def _timed(info: SolveInfo, began: float) -> SolveInfo:
    return replace(info, seconds=time.perf_counter() - began)


def _finish(
    grid: BilateralGrid,
    pixels: Array,
    checked: validation.Target,
    sigmas: tuple[float, float] | None,
) -> Array:
    """Smooth a sliced solution by the domain transform, and give it the target's form."""
    reference = reference_of(grid)
    if sigmas is not None and reference is not None:
        frames = pixels[np.newaxis] if pixels.ndim == 3 else pixels
        guides = reference.pixels.reshape(*frames.shape[:3], -1)
        for i, guide in enumerate(guides):
            frames[i] = domain_transform(frames[i], guide, *sigmas, reference_max=reference.highest)
    return validation.as_dtype(pixels.reshape(checked.shape), checked.dtype)


def _finite_range(values: Array) -> tuple[Array, Array]:
    """Return the lowest and highest value of each channel over pixels that are finite in all."""
    known = np.isfinite(values).all(axis=-1, keepdims=True)
    axes = tuple(range(values.ndim - 1))
    low = np.min(values, axis=axes, where=known, initial=np.inf)
    high = np.max(values, axis=axes, where=known, initial=-np.inf)
    return low + 0.0, high + 0.0  # 0 for -0, which depends on the order of the pixels


def _info(
    grid: BilateralGrid,
    residuals: Sequence[float],
    converged: bool,
    began: float,
    rank: int,
    smoothness: float,
) -> SolveInfo:
    steps, seconds = tuple(residuals), time.perf_counter() - began
    return SolveInfo(len(steps), converged, steps, grid.n_vertices, seconds, rank, smoothness)


def _elementwise_max(a: Array, b: Array) -> Array:
    """Take the larger of each two entries; the shorter array is padded with zeros."""
    size = max(a.size, b.size)
    larger: Array = np.maximum(np.pad(a, (0, size - a.size)), np.pad(b, (0, size - b.size)))
    return larger
