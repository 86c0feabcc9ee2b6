"""Solve robustly in blocks: each round is one pass over the blocks and one solve.

The rounds are those of `bilateral.numerics.robust`, with the same bits. A state is never changed,
so that a round that was lost can run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral import losses
from bilateral.backends import cpu
from bilateral.info import SolveInfo
from bilateral.numerics import pcg, robust, system
from bilateral.numerics.blocks.block import Block, BlockOptions, BlockSums, block_target
from bilateral.numerics.blocks.join import Joined, finite_range, observe, observed
from bilateral.numerics.options import SolveOptions
from bilateral.numerics.problem import Problem, start

Array = NDArray[Any]


@dataclass(frozen=True)
class RobustOptions:
    """Arguments of a robust solve."""

    loss: losses.Loss
    max_rounds: int
    min_change: float
    smoothness: float
    callback: pcg.Callback | None = None


class RobustState(NamedTuple):
    """The result of a round."""

    system: system.System
    y: Array
    movements: list[float]
    outcome: pcg.Outcome
    bounds: tuple[Array, Array]
    """Lowest and highest finite value of each channel."""
    finished: bool
    by_pixels: bool
    """The next pass weighs each pixel in float64; the usual way is faster, but may overflow."""


class BlockWeights(NamedTuple):
    """The sums of a block's target with the confidences of a round."""

    position: tuple[int, int]
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    sums: cpu.Observation


def first_round(
    joined: Joined, blocks: Sequence[BlockSums], options: SolveOptions, arguments: RobustOptions
) -> RobustState:
    """Solve with the caller's confidences."""
    observed_system = observe(joined, blocks, arguments.smoothness)
    preconditioner = pcg.choose_preconditioner(joined.grid, observed_system, options)
    problem = Problem(observed_system, preconditioner)
    y = start(joined.grid, problem, options)
    outcome = pcg.SystemSolver(joined.grid, options).solve(observed_system, y, preconditioner)
    by_pixels = robust.kernel_of(arguments.loss) is None
    return _after_round(
        RobustState(observed_system, y, [], outcome, finite_range(blocks), False, by_pixels),
        arguments,
    )


def reweigh_block(
    block: Block,
    target: ArrayLike,
    y: Array,
    by_pixels: bool,
    options: BlockOptions,
    arguments: RobustOptions,
    channel: int | None,
) -> BlockWeights:
    """Sum a block's target with the weights of the loss at its distance from the last solution.

    Parameters
    ----------
    block : Block
    target : array
    y : (n, K) array
        The last solution at the block's vertices.
    by_pixels : bool
        See `RobustState`.
    options : BlockOptions
    arguments : RobustOptions
    channel : int, optional
        The only channel that takes part; None: all channels.
    """
    values, _, _ = block_target(block, target, None, options, channel)
    kernel = robust.kernel_of(arguments.loss)
    if by_pixels or kernel is None:
        double = values.astype(np.float64)
        x = cpu.slice_block(block.core, y.astype(np.float64), block.shape)
        weights = robust.pixel_weights(x, values, arguments.loss)
        sums = cpu.splat_block(block.core, double, weights)
    else:
        samples = cpu.block_samples(block.core, values.astype(y.dtype, copy=False))
        weight, weighted = np.empty(len(y), y.dtype), np.empty(y.shape, y.dtype)
        cpu.splat_robust(samples, kernel, y, weight, weighted)
        size = np.array(samples.size)
        sums = cpu.Observation(weight, weighted, samples.known, -size, size, None)
    return BlockWeights(block.position, block.shape, y.dtype, sums)


def next_round(
    joined: Joined,
    state: RobustState,
    blocks: Sequence[BlockWeights],
    options: SolveOptions,
    arguments: RobustOptions,
) -> RobustState:
    """Solve with the weights of the last pass; a finished state stays as it is."""
    if state.finished:
        return state
    following = _next_system(joined, state, blocks, arguments.smoothness)
    if following is None:
        known = sum(block.sums.known for block in blocks)
        if state.by_pixels and known == 0:  # every weight is 0
            return state._replace(finished=True)
        return state._replace(by_pixels=True)
    y = system.convert(state.y, state.system, following).copy()
    fraction = robust.movement_fraction(options)
    outcome = pcg.SystemSolver(joined.grid, options).follow(following, y, fraction)
    by_pixels = robust.kernel_of(arguments.loss) is None
    state = state._replace(system=following, y=y, outcome=outcome, by_pixels=by_pixels)
    return _after_round(state, arguments)


def _next_system(
    joined: Joined, state: RobustState, blocks: Sequence[BlockWeights], smoothness: float
) -> system.System | None:
    """Return the system of the next round; None if a float32 sum is not enough or has no data."""
    low = np.min([block.sums.low for block in blocks], axis=0)
    high = np.max([block.sums.high for block in blocks], axis=0)
    known = sum(block.sums.known for block in blocks)
    if state.by_pixels:
        if known == 0:
            return None
        sums = [_as_sums(block, np.dtype(np.float64)) for block in blocks]
        return observed(joined, sums, np.dtype(np.float64), known, low, high, smoothness)
    weight, weighted = np.empty_like(state.system.weight), np.empty_like(state.system.weighted)
    for block in blocks:
        joined.index.scatter(block.sums.weight, block.position, block.shape, weight)
        joined.index.scatter(block.sums.weighted, block.position, block.shape, weighted)
    total = cpu.total_weight(weight)
    enough = system.dtype_is_enough(joined.grid, weight.dtype, high, known, total, smoothness)
    return state.system._replace(weight=weight, weighted=weighted) if enough else None


def _as_sums(block: BlockWeights, dtype: np.dtype[Any]) -> BlockSums:
    bounds = block.sums.low, block.sums.high
    return BlockSums(block.position, block.shape, dtype, block.sums, bounds, 0.0)


def _after_round(state: RobustState, arguments: RobustOptions) -> RobustState:
    """Add the movement of a round, and decide whether it was the last."""
    movements = [*state.movements, state.outcome.moved]
    callback, count = arguments.callback, len(movements)
    finished = callback is not None and bool(callback(count, movements[-1]))
    finished = finished or robust.is_last(movements, arguments.max_rounds, arguments.min_change)
    return state._replace(movements=movements, finished=finished)


def robust_vertices(
    joined: Joined,
    states: Sequence[RobustState],
    options: SolveOptions,
    smoothness: float,
) -> tuple[Array, SolveInfo]:
    """Return the solution (n_vertices, K) of all parts of the channels, with its report."""
    if not all(state.finished for state in states):
        raise ValueError(
            "target: expected residuals whose weights float64 can sum, got others. Use a loss "
            "with a larger scale, or solve in memory."
        )
    solutions, converged = [], True
    movements = np.zeros(max(len(state.movements) for state in states))
    for state in states:
        pcg.warn_if_not_converged(state.outcome, options, smoothness, stacklevel=2)
        solutions.append(system.solution(state.system, state.y.copy(), state.bounds))
        converged = converged and not state.outcome.diverged
        converged = converged and pcg.estimate_holds(
            joined.grid, state.system, options.preconditioner, options.tolerance
        )
        moved = np.array(state.movements)
        movements[: moved.size] = np.maximum(movements[: moved.size], moved)
    converged = converged and bool(movements[-1] <= options.tolerance)
    vertices = solutions[0] if len(solutions) == 1 else np.concatenate(solutions, axis=1)
    steps = tuple(movements.tolist())
    n, channels = vertices.shape
    return vertices, SolveInfo(len(steps), converged, steps, n, np.nan, channels, smoothness)
