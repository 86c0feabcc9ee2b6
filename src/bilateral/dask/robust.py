"""Solve Dask arrays robustly: the same result as in memory, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import DTypeLike, NDArray

from bilateral import losses, validation
from bilateral.dask import tasks
from bilateral.dask.graph import BlockTasks, build_all
from bilateral.dask.inputs import Cut, cut
from bilateral.dask.smoothing import checked_sigmas, finish
from bilateral.numerics import blocks, policy
from bilateral.numerics.pcg import Callback
from bilateral.numerics.solve import WEIGHTS
from bilateral.threads import single_threaded

Array = NDArray[Any]

_SPARE_ROUNDS = 2
"""A round whose weights exceed float32 is repeated in float64; all later rounds are in float64."""


@validation.keywords(photo="reference", depth="target")
def solve_robust(
    reference: Any,
    target: Any,
    confidence: Any | None = None,
    loss: losses.Loss = losses.GemanMcClure(1.0),  # noqa: B008
    iterations: int = 32,
    *,
    weights: str = "joint",
    min_change: float = 0.0,
    sigma_xy: float = 8,
    sigma_luma: float = 8,
    sigma_chroma: float = 8,
    smoothness: float = policy.SMOOTHNESS,
    blur: str | tuple[float, float, float] = "paper",
    tolerance: float = 1e-3,
    max_iterations: int | None = None,
    preconditioner: str = "multigrid",
    initial: str | None = None,
    model: str = "constant",
    smooth: tuple[float, float] | None = None,
    callback: Callback | None = None,
    return_info: bool = False,
    reference_max: float | None = None,
    dtype: DTypeLike | None = None,
) -> Any:
    """Smooth a target that has outliers, lazily (supplement, Algorithm 3).

    The result has the bits of `bilateral.BilateralSolver.solve_robust`, for any chunks and any
    scheduler. Each round is one task per block, which weighs its pixels, and one solve. Blocks of
    the target stay on the workers until the last round.

    Parameters
    ----------
    reference, target, confidence
        As for `bilateral.dask.solve`.
    loss, iterations, weights, min_change
        As for `bilateral.BilateralSolver.solve_robust`. Processes and clusters pickle the loss.
        After `min_change` ends the rounds, the tasks of the remaining rounds do nothing.
    sigma_xy, sigma_luma, sigma_chroma, smoothness, blur, tolerance, max_iterations, \
preconditioner, initial, model, smooth, callback, return_info, reference_max, dtype
        As for `bilateral.dask.solve`.

    Returns
    -------
    x : Dask array
        The smooth map, in the target's shape and dtype.
    info : Delayed
        Only with ``return_info=True``.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import bilateral.dask
    >>> photo, depth = np.zeros((32, 32), np.uint8), np.full((32, 32), 2.0)
    >>> depth[5, 7] = 90
    >>> x = bilateral.dask.solve_robust(da.from_array(photo), da.from_array(depth, chunks=16))
    >>> bool(abs(x.compute() - 2).max() < 0.01)
    True
    """
    return_info = validation.flag("return_info", return_info)
    checked = validation.smoothness("smoothness", smoothness)
    smoothness = validation.smoothness_number(checked, "Dask arrays")
    validation.loss(loss)
    iterations = validation.count("iterations", iterations, 1)
    validation.choice("weights", weights, WEIGHTS)
    validation.not_negative("min_change", min_change)
    validation.callback(callback)
    parts = cut(reference, target, confidence, locals(), dtype)
    sigmas = checked_sigmas(smooth, parts)
    n_channels = 1 if parts.target.ndim == 2 else parts.target.shape[2]
    channels = [None] if weights == "joint" else list(range(n_channels))
    built = build_all(parts, channels, robust=True)
    arguments = blocks.RobustOptions(loss, iterations, min_change, smoothness, callback)
    joined = delayed(tasks.join, pure=True)([task.vertices for task in built], parts.options)
    states = [
        _rounds(parts, built, joined, arguments, place, channel)
        for place, channel in enumerate(channels)
    ]
    solution = delayed(_solution, pure=True)(joined, states, parts.options, smoothness)
    x = finish(parts, built, solution, sigmas)
    return (x, solution.info) if return_info else x


class _RoundInput(NamedTuple):
    """What a block needs for a round; y is None after the last round."""

    y: Array | None
    by_pixels: bool


def _rounds(
    cut: Cut,
    built: Sequence[BlockTasks],
    joined: Delayed,
    arguments: blocks.RobustOptions,
    place: int,
    channel: int | None,
) -> Delayed:
    """Return the state after all rounds of one part of the channels."""
    take, reweigh = delayed(_round_input, pure=True), delayed(_reweigh, pure=True)
    follow = delayed(_next_round, pure=True)
    options, shared = delayed(cut.options, pure=True), delayed(arguments, pure=True)
    state = delayed(_first_round, pure=True)(
        joined, [task.sums for task in built], place, options, shared
    )
    for _ in range(arguments.max_rounds - 1 + _SPARE_ROUNDS if arguments.max_rounds > 1 else 0):
        weighed = []
        for task in built:
            round_input = take(joined, state, task.extent)
            weighed.append(reweigh(task.block, task.target, round_input, options, shared, channel))
        state = follow(joined, state, weighed, options, shared)
    return state


def _first_round(
    joined: blocks.Joined,
    sums: list[list[blocks.BlockSums]],
    place: int,
    options: blocks.BlockOptions,
    arguments: blocks.RobustOptions,
) -> blocks.RobustState:
    parts = [part[place] for part in sums]
    tasks.announce(joined, parts[0].sums.weighted.shape[1])
    return blocks.first_round(joined, parts, options.solve, arguments)


def _round_input(
    joined: blocks.Joined,
    state: blocks.RobustState,
    extent: tasks.Extent,
) -> _RoundInput:
    if state.finished:
        return _RoundInput(None, False)
    return _RoundInput(joined.index.gather(state.y, *extent), state.by_pixels)


def _reweigh(
    block: blocks.Block,
    target: Array,
    round_input: _RoundInput,
    options: blocks.BlockOptions,
    arguments: blocks.RobustOptions,
    channel: int | None,
) -> blocks.BlockWeights | None:
    y, by_pixels = round_input
    if y is None:
        return None
    with single_threaded():
        return blocks.reweigh_block(block, target, y, by_pixels, options, arguments, channel)


def _next_round(
    joined: blocks.Joined,
    state: blocks.RobustState,
    weighed: list[blocks.BlockWeights | None],
    options: blocks.BlockOptions,
    arguments: blocks.RobustOptions,
) -> blocks.RobustState:
    parts = [part for part in weighed if part is not None]
    return blocks.next_round(joined, state, parts, options.solve, arguments)


def _solution(
    joined: blocks.Joined,
    states: list[blocks.RobustState],
    options: blocks.BlockOptions,
    smoothness: float,
) -> tasks.Solution:
    vertices, info = blocks.robust_vertices(joined, states, options.solve, smoothness)
    return tasks.Solution(joined.index, np.ascontiguousarray(vertices), info)
