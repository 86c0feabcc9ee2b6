"""Annealed robust solve: rounds with falling smoothness and a falling scale of the loss."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral.grid import BilateralGrid
from bilateral.numerics import robust, system
from bilateral.numerics.options import SolveOptions
from bilateral.numerics.problem import set_up, start
from bilateral.tasks.depth.matching.visibility import LeftView

Array = NDArray[Any]

ROUNDS = 12
_VISIBLE_FROM = 1
"""First round whose solution is good enough to decide which pixels hide others."""
TRUSTED = 0.25
"""Pixels with a weight above this hide others."""


class Schedule(NamedTuple):
    """Smoothness and scale of the loss in the first and the last round, geometric in between.

    The smoothness is relative to the mean weight of the data, so that sparse data count as much as
    dense data. Both must fall together: a strict loss helps only a solution that can still move to
    the data.
    """

    smoothness: tuple[float, float]
    scale: tuple[float, float] = (6.0, 1.0)
    rounds: int = ROUNDS


class Solution(NamedTuple):
    """A map, and the final weight of each pixel's data."""

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
    """Alternate between solving and reweighting by the Geman-McClure loss, as scheduled.

    Parameters
    ----------
    grid : BilateralGrid
    z : (H, W) float32 array
        The data in units of the last round's scale; finite.
    trust : (H, W) float32 array
        Factor of the weights in all rounds; 0 where there are no data.
    first : (H, W) float32 array
        Weights of the first round.
    schedule : Schedule
    view : LeftView, optional
        For disparities: pixels that the other view cannot see lose their weight, and data in front
        of the solution get less weight than data behind it.
    """
    density = float(trust.mean(dtype=np.float64))
    smoothness = density * np.geomspace(*schedule.smoothness, schedule.rounds)
    scales = np.geomspace(*schedule.scale, schedule.rounds)
    options = SolveOptions()
    target = z[..., np.newaxis]
    weights, x = first, z

    def reweight(k: int, y: Array) -> None:
        """Compute pixels and weights from the solution of round k."""
        nonlocal weights, x
        x = system.slice_vertices(grid, y.astype(np.float32, copy=False))[..., 0]
        e = (z - x) * np.float32(1 / scales[k])
        if view is not None:
            e = view.weigh(e)
        weights = trust / np.square(1 + e * e)
        if view is not None and k >= _VISIBLE_FROM:
            weights *= view.visible(x, x, weights > TRUSTED)

    def next_system(k: int, last: system.System, y: Array) -> system.System | None:
        reweight(k - 1, system.values(last, y))
        return system.observe(grid, target, weights, float(smoothness[k]))

    problem = set_up(grid, target, first, float(smoothness[0]), options)
    y = start(grid, problem, options)
    rounds = robust.rounds(grid, problem, y, next_system, schedule.rounds, options)
    reweight(len(rounds.movements) - 1, system.values(rounds.system, rounds.y))
    return Solution(x, weights)
