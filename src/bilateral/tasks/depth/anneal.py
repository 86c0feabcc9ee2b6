"""Robust rounds that start smooth and forgiving, and end near to the data and strict."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral.grid import BilateralGrid
from bilateral.numerics import robust, system
from bilateral.numerics.options import SolveOptions
from bilateral.numerics.problem import set_up, start
from bilateral.tasks.depth.visibility import LeftView

Array = NDArray[Any]

ROUNDS = 12
_ASYMMETRY = 1.15
"""In a pair, what is not seen twice belongs to the background: nearer data are believed less."""
_SEEN_FROM = 3
"""The first round after which the solution is good enough to tell what hides what."""
TRUSTED = 0.25
"""Pixels with a weight above this hide others."""


class Schedule(NamedTuple):
    """Smoothness and the loss's scale in the first and in the last round, between them geometric.

    The smoothness is relative to the mean weight of the data, so that few data count as much as
    many. Both must fall together: a strict loss is of use only to a solution that may still go
    where the data are.
    """

    smoothness: tuple[float, float]
    scale: tuple[float, float] = (6.0, 1.0)
    rounds: int = ROUNDS


class Solution(NamedTuple):
    """A map, and how much each pixel's data were believed in the end."""

    x: Array
    weights: Array


def anneal(
    grid: BilateralGrid,
    z: Array,
    trust: Array,
    first: Array,
    schedule: Schedule,
    view: LeftView | None,
) -> Solution:
    """Solve and reweigh by Geman and McClure's loss, with falling smoothness and scale.

    Parameters
    ----------
    grid : BilateralGrid
    z : (H, W) float32 array
        The data in units of the last round's scale; finite.
    trust : (H, W) float32 array
        A factor of the weights in all rounds; 0 where there are no data.
    first : (H, W) float32 array
        The weights of the first round.
    schedule : Schedule
    view : LeftView, optional
        For disparities: pixels that the other view cannot see lose their weight.
    """
    density = float(trust.mean(dtype=np.float64))
    smoothness = density * np.geomspace(*schedule.smoothness, schedule.rounds)
    scales = np.geomspace(*schedule.scale, schedule.rounds)
    options = SolveOptions()
    target = z[..., np.newaxis]
    weights, x = first, z

    def reweigh(k: int, y: Array) -> None:
        """The weights after round k, by its solution."""
        nonlocal weights, x
        x = system.slice_vertices(grid, y.astype(np.float32, copy=False))[..., 0]
        e = (z - x) * np.float32(1 / scales[k])
        if view is not None:
            e *= np.where(e > 0, np.float32(_ASYMMETRY), np.float32(1 / _ASYMMETRY))
        weights = trust / np.square(1 + e * e)
        if view is not None and k >= _SEEN_FROM:
            weights *= view.seen(x, x, weights > TRUSTED)

    def following(k: int, problem: system.System, y: Array) -> system.System | None:
        reweigh(k - 1, system.values(problem, y))
        return system.observe(grid, target, weights, float(smoothness[k]))

    problem = set_up(grid, target, first, float(smoothness[0]), options)
    y = start(grid, problem, options)
    rounds = robust.rounds(grid, problem, y, following, schedule.rounds, options)
    reweigh(len(rounds.movements) - 1, system.values(rounds.system, rounds.y))
    return Solution(x, weights)
