"""Solve a batch on CUDA kernel by kernel, without a recording.

The host waits for the device only where it needs a number: for the sizes of the grid and its
pyramid, for statistics of the inputs, and for the error of the solve from time to time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bilateral.backends.cuda.grid.splat import slice_, splat_weighted
from bilateral.backends.cuda.multigrid.vcycle import VCycle
from bilateral.backends.cuda.solve import pcg
from bilateral.backends.cuda.solve.input_stats import InputStats, compute_input_stats
from bilateral.numerics import policy
from bilateral.torch.cuda.batch_grid import BatchGrid, build_batch_grid
from bilateral.torch.cuda.system import (
    System,
    choose_preconditioner,
    count_loose,
    estimate_holds,
)
from bilateral.torch.options import LayerOptions


class Inputs(NamedTuple):
    """Inputs of a solve besides its options."""

    reference: Tensor
    """(B, C, H, W)"""
    values: Tensor
    """(B H W, K)"""
    weights: Tensor | None
    """(B H W, 1); None: 1 everywhere."""
    smoothness: float


def solve(
    inputs: Inputs, options: LayerOptions, batch_grid: BatchGrid | None = None
) -> tuple[Tensor, System, pcg.Outcome]:
    """Solve a batch; return pixels (B H W, K) and the system.

    `batch_grid` has the grids of the reference, if they exist already.
    """
    reference, values, weights, smoothness = inputs
    batch_grid = batch_grid or build_batch_grid(reference, options)
    grid = batch_grid.grid
    stats = compute_input_stats(values, weights, grid.shape[0])
    check_weights(stats)
    weight, b = splat_weighted(grid, values, weights)
    system, trusted = _set_up(
        batch_grid, weight, float(stats.weight_sum.min()), smoothness, options
    )
    b = b.to(system.weight.dtype)
    x = system.start(b)
    outcome = system.improve(b, x, stats.scale, options.solve.stop_tolerance)
    if outcome.converged and not trusted:
        system, x, outcome = _finish_by_multigrid(system, b, x, stats.scale, options, outcome)
        b = b.to(x.dtype)
    in_gaps = system.values_in_gaps(b)
    system.y = x if in_gaps is None else system.fill_gaps(x, in_gaps)
    pixels = slice_(grid, system.y.to(values.dtype), stats.low, stats.high)
    return pixels, system, accept_tolerance(outcome, options)


def accept_tolerance(outcome: pcg.Outcome, options: LayerOptions) -> pcg.Outcome:
    """Count an exact solve as converged if its error is below the requested tolerance."""
    if not options.solve.exact or not outcome.residuals or outcome.diverged:
        return outcome
    converged = outcome.converged or outcome.residuals[-1] <= options.solve.tolerance
    return outcome._replace(converged=converged)


def check_weights(stats: InputStats) -> None:
    """Raise if a confidence is invalid, or if an image has no known pixel."""
    if bool(stats.invalid_weights.any()):
        raise ValueError(
            "confidence: expected finite numbers, 0 or above, got others. "
            "Set it to 0 where there is no data."
        )
    weight_sums = stats.weight_sum
    if bool((weight_sums > 0).all()):
        return
    error = ValueError(
        "target: expected at least one pixel with a finite value and a confidence above 0, "
        "got none. Check the mask, and NaNs in the target."
    )
    if len(weight_sums) > 1:
        empty = int((weight_sums <= 0).nonzero()[0])
        error.add_note(f"In image {empty} of the batch.")
    raise error


def _set_up(
    batch_grid: BatchGrid,
    weight: Tensor,
    min_confidence: float,
    smoothness: float,
    options: LayerOptions,
) -> tuple[System, bool]:
    """Choose precision and preconditioner of the system; tell whether its error estimate holds.

    `min_confidence` is the sum of the weights of the poorest image.
    """
    grid = batch_grid.grid
    images, height, width = grid.shape
    pixels = height * width
    factor = torch.tensor(smoothness, dtype=torch.float64, device=weight.device)
    is_stiff = not policy.float32_is_enough(smoothness, pixels, min_confidence, grid.room / images)
    if is_stiff:
        weight = weight.double()
    bare, loose = count_loose(grid, weight, factor).tolist()
    kind = choose_preconditioner(options, smoothness, pixels, min_confidence, bare, loose, images)
    arguments = factor, kind, bare > 0, options.solve.max_iterations
    system = _system(batch_grid, weight, is_stiff, *arguments)
    return system, estimate_holds(options, kind, loose, pixels)


def _system(batch_grid: BatchGrid, weight: Tensor, is_stiff: bool, *arguments: Any) -> System:
    """Make a system, in float64 if float32 does not suffice."""
    system = System(batch_grid, weight, *arguments)
    fine = system.preconditioner
    needs_float64 = isinstance(fine, VCycle) and bool(fine.has_faint_component)
    if weight.dtype != torch.float64 and needs_float64:
        system = System(batch_grid, weight.double(), *arguments)
    system.is_stiff = is_stiff or needs_float64
    if system.with_data is not None and bool(system.with_data.all()):
        system.with_data = None
    return system


def _finish_by_multigrid(
    system: System,
    b: Tensor,
    x: Tensor,
    scale: Tensor,
    options: LayerOptions,
    outcome: pcg.Outcome,
) -> tuple[System, Tensor, pcg.Outcome]:
    """Continue a solve whose error estimate does not hold: multigrid's does."""
    left = options.solve.max_iterations - len(outcome.residuals)
    if left <= 0:
        return system, x, outcome._replace(converged=False)
    has_gaps = system.with_data is not None
    arguments = system.smoothness, "multigrid", has_gaps, left
    system = _system(system.batch_grid, system.weight, system.is_stiff, *arguments)
    x = x.to(system.weight.dtype)
    last = system.improve(b.to(x.dtype), x, scale, options.solve.stop_tolerance)
    return system, x, last._replace(residuals=outcome.residuals + last.residuals)
