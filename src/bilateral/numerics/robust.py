"""Solve robustly by iteratively reweighted least squares (supplement, Algorithm 3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral import losses, validation
from bilateral.backends import cpu
from bilateral.grid import BilateralGrid, core_of
from bilateral.numerics import pcg, policy, system
from bilateral.numerics.options import SolveOptions
from bilateral.numerics.problem import Problem

Array = NDArray[Any]


class Rounds(NamedTuple):
    """Result of the rounds."""

    system: system.System
    """The last system."""
    y: Array
    """Its solution, one row per vertex."""
    movements: list[float]
    """Distance each round moved the solution: RMS over pixels, relative to the target's range."""
    outcome: pcg.Outcome
    """Outcome of the last solve."""


def solve(
    grid: BilateralGrid,
    target: Array,
    problem: Problem,
    y: Array,
    loss: losses.Loss,
    max_rounds: int,
    min_change: float,
    smoothness: float,
    options: SolveOptions,
    callback: pcg.Callback | None,
) -> Rounds:
    """Alternate between solving and reweighting.

    The quadratic objective of a round lies above the robust objective and touches it where the
    round starts, so every step towards the round's solution lowers the robust objective.

    Parameters
    ----------
    grid : BilateralGrid
    target : (..., K) array
    problem : Problem
        Problem of the first round, with the caller's confidence. Later rounds reuse its arrays.
    y : array
        Start of the first round; overwritten by the solution.
    loss : Loss
    max_rounds : int
    min_change : float
        Stop after a round that moves the solution by no more than this.
    smoothness : float
    options : SolveOptions
    callback : function of (round, movement), optional
        Called after each round; a true result ends the rounds.
    """
    kernel = kernel_of(loss)
    samples: cpu.Samples | None = None

    def reweigh(_: int, last: system.System, y: Array) -> system.System | None:
        nonlocal samples, target
        reweighted = None
        if kernel is not None and last.unit is None:
            if samples is None or target.dtype != y.dtype:
                target = target.astype(y.dtype, copy=False)
                samples = cpu.samples(core_of(grid), target)
            reweighted = system.reweigh(grid, last, samples, y, kernel)
        return reweighted or _reweigh_pixels(grid, last, target, y, loss, smoothness)

    return rounds(grid, problem, y, reweigh, max_rounds, options, min_change, callback)


def rounds(
    grid: BilateralGrid,
    problem: Problem,
    y: Array,
    next_system: Callable[[int, system.System, Array], system.System | None],
    max_rounds: int,
    options: SolveOptions,
    min_change: float = 0.0,
    callback: pcg.Callback | None = None,
) -> Rounds:
    """Solve a sequence of systems, each made from the solution of the one before.

    Parameters
    ----------
    grid, problem, y, options, min_change, callback
        As for `solve`.
    next_system : function of (round, system, y)
        Returns the system of a round, counted from 0, from the last system and its solution; None
        if there is none.
    max_rounds : int
    """
    solver = pcg.SystemSolver(grid, options)
    last = problem.system
    outcome = solver.solve(last, y, problem.preconditioner)
    movements = [outcome.moved]
    fraction = movement_fraction(options)
    while not (callback is not None and callback(len(movements), movements[-1])):
        if is_last(movements, max_rounds, min_change):
            break
        following = next_system(len(movements), last, y)
        if following is None:  # every weight is 0
            break
        y, last = system.convert(y, last, following), following
        outcome = solver.follow(last, y, fraction)
        movements.append(outcome.moved)
    return Rounds(last, y, movements, outcome)


def movement_fraction(options: SolveOptions) -> float:
    """Return the fraction of its movement at whose error a round stops."""
    return min(policy.ROUND_FRACTION, 500 * max(options.stop_tolerance, 0.0))


def is_last(movements: list[float], max_rounds: int, min_change: float) -> bool:
    """Whether the round with the last of these movements is the last one."""
    return len(movements) >= max_rounds or (len(movements) > 1 and movements[-1] <= min_change)


def _reweigh_pixels(
    grid: BilateralGrid,
    last: system.System,
    target: Array,
    y: Array,
    loss: losses.Loss,
    smoothness: float,
) -> system.System | None:
    """Make the next system for any loss and numbers of any magnitude."""
    x = system.slice_vertices(grid, system.values(last, y).astype(np.float64))
    weights = pixel_weights(x, target, loss)
    return system.observe(grid, target.astype(np.float64), weights, smoothness)


def pixel_weights(x: Array, target: Array, loss: losses.Loss) -> Array:
    """Compute the weights of a loss at the distance of each pixel from its (..., K) target."""
    known = np.asarray(np.isfinite(target).all(axis=-1))
    e = np.where(known[..., np.newaxis], x.astype(np.float64) - target, 0.0)
    distance = e[..., 0] if e.shape[-1] == 1 else np.hypot.reduce(e, axis=-1)
    return validation.loss_weights(loss.weight(distance), known.shape)


def kernel_of(loss: losses.Loss) -> cpu.Loss | None:
    """Describe a loss to the core; None if it is not one of this package."""
    kind = type(loss)  # a subclass may have overridden anything
    unit = 1 / loss.scale if isinstance(loss, losses.Scaled) else 0.0
    gain = unit * unit
    if kind is losses.GemanMcClure:
        return cpu.Loss.power(2 * gain, gain, -2.0)
    if kind is losses.Charbonnier:
        return cpu.Loss.power(gain, gain, -0.5)
    if kind is losses.Cauchy:
        return cpu.Loss.power(gain, 0.5 * gain, -1.0)
    if kind is losses.Welsch:
        return cpu.Loss.exponential(gain, 0.5 * gain)
    if kind is losses.Huber:
        return cpu.Loss.huber(gain, gain)
    if isinstance(loss, losses.Barron) and kind is losses.Barron:
        if abs(loss.alpha) > losses.NEAR_INFINITY:
            return cpu.Loss.exponential(gain, -0.5 * np.sign(loss.alpha) * gain)
        spread = abs(loss.alpha - 2) or 1.0
        return cpu.Loss.power(gain, gain / spread, 0.5 * loss.alpha - 1)
    return None
