"""The robust bilateral solver: iteratively reweighted least squares (supplement, Algorithm 3)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral import losses
from bilateral import validation as checks
from bilateral.backends import cpu
from bilateral.grid import BilateralGrid
from bilateral.numerics import system

Array = NDArray[Any]

_MOST_LEFT = 0.5
"""A round's solve may stop with this part of its way left, or 500 tolerances of it: the next round,
whose weights will be others, goes on from there. With multigrid that is one step. More bring no
lower objective after as many rounds, since the rounds themselves converge slowly."""


class Rounds(NamedTuple):
    """What the rounds led to."""

    problem: system.System
    y: Array
    """The solution of the last problem, one row per vertex."""
    movements: list[float]
    """By how much each round moved it, RMS over the pixels, relative to the target's range."""
    last: cpu.Outcome
    """How the last solve went."""


def solve(
    grid: BilateralGrid,
    target: Array,
    problem: system.System,
    y: Array,
    loss: losses.Loss,
    most: int,
    min_change: float,
    smoothness: float,
    options: system.Options,
    callback: system.Callback | None,
) -> Rounds:
    """Alternate between solving and reweighing.

    Each round's quadratic problem lies above the robust one and touches it where the round starts,
    so that every step towards its solution lowers the robust objective.

    Parameters
    ----------
    grid : BilateralGrid
    target : (..., K) array
    problem : System
        The first round's, with the caller's confidence. Its arrays serve the others, too.
    y : array
        Where the first round starts; the solution takes its place.
    loss : Loss
    most : int
        Number of rounds, at most.
    min_change : float
        A round that moves the solution by no more than this is the last.
    smoothness : float
    options : Options
    callback : function of (round, movement), optional
        Called after each round; a true result makes it the last.
    """
    kernel = _kernel(loss)
    samples: cpu.Samples | None = None

    def reweighed(_: int, problem: system.System, y: Array) -> system.System | None:
        nonlocal samples, target
        same = None
        if kernel is not None and problem.unit is None:
            if samples is None or target.dtype != y.dtype:
                target = target.astype(y.dtype, copy=False)
                samples = cpu.samples(grid._core, target)
            same = system.reweigh(grid, problem, samples, y, kernel)
        return same or _reweigh_pixels(grid, problem, target, y, loss, smoothness)

    return rounds(grid, problem, y, reweighed, most, options, min_change, callback)


def rounds(
    grid: BilateralGrid,
    problem: system.System,
    y: Array,
    following: Callable[[int, system.System, Array], system.System | None],
    most: int,
    options: system.Options,
    min_change: float = 0.0,
    callback: system.Callback | None = None,
) -> Rounds:
    """Solve one problem after another, each made from the solution of the last.

    Parameters
    ----------
    grid, problem, y, options, min_change, callback
        As for `solve`.
    following : function of (round, problem, y)
        The problem of the round, counted from 0, by the last one and its solution; None if there
        is none.
    most : int
        Number of rounds, at most.
    """
    solver = system.Solver(grid, options)
    outcome = solver.solve(problem, y)
    movements = [outcome.moved]
    of_movement = min(_MOST_LEFT, 500 * max(options.tolerance, 0.0))
    while not (callback is not None and callback(len(movements), movements[-1])):
        if len(movements) >= most or (len(movements) > 1 and movements[-1] <= min_change):
            break
        again = following(len(movements), problem, y)
        if again is None:  # every weight is 0: no pixel pulls any more
            break
        y, problem = system.carry(y, problem, again), again
        outcome = solver.follow(problem, y, of_movement)
        movements.append(outcome.moved)
    return Rounds(problem, y, movements, outcome)


def _reweigh_pixels(
    grid: BilateralGrid,
    problem: system.System,
    target: Array,
    y: Array,
    loss: losses.Loss,
    smoothness: float,
) -> system.System | None:
    """The next problem for any loss and any numbers."""
    x = cpu.slice_(grid._core, system.values(problem, y).astype(np.float64), grid.shape)
    known = np.asarray(np.isfinite(target).all(axis=-1))
    e = np.where(known[..., np.newaxis], x - target, 0.0)
    distance = e[..., 0] if e.shape[-1] == 1 else np.hypot.reduce(e, axis=-1)
    weights = checks.loss_weights(loss.weight(distance), grid.shape)
    return system.observe(grid, target.astype(np.float64), weights, smoothness)


def _kernel(loss: losses.Loss) -> cpu.Loss | None:
    """The loss as the core knows it."""
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
