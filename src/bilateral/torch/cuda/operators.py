"""The operators ``torch.ops.bilateral.*`` for CUDA tensors.

Their arguments are those of the schemas in `bilateral.torch.operators`, after a function that warns
of solves that did not converge. A handle stands for a `System`, or for a `ReplayedSolve` whose
recording holds the system.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from bilateral.backends.cuda.compiler import store
from bilateral.backends.cuda.grid.splat import slice_, splat
from bilateral.backends.cuda.solve import pcg
from bilateral.torch import handles, inputs
from bilateral.torch.cuda import adjoint, recording_cache
from bilateral.torch.cuda.device_memory import retry_without_recordings
from bilateral.torch.cuda.planar import solve as planes
from bilateral.torch.cuda.planar.solve import PlaneProblem
from bilateral.torch.cuda.recording_cache import ReplayedSolve
from bilateral.torch.cuda.solve import Inputs
from bilateral.torch.cuda.solve import solve as solve_batch
from bilateral.torch.cuda.system import System
from bilateral.torch.options import COUNT, LayerOptions

Warn = Callable[[pcg.Outcome, LayerOptions], None]
SolveAdjoint = Callable[[Tensor], tuple[adjoint.AdjointSolution, pcg.Outcome]]


class _Layout:
    """Conversion of maps (B, K, H, W) to the pixels that kernels take, and back."""

    def __init__(self, reference: Tensor, maps: Tensor, confidence: Tensor | None) -> None:
        self.count = inputs.matrices(reference, maps, confidence)
        """Number of matrices."""
        self._shape = maps.shape

    def inputs(
        self, reference: Tensor, maps: Tensor, confidence: Tensor | None, smoothness: Tensor
    ) -> Inputs:
        """Convert all inputs of a solve."""
        weights = None if confidence is None else self.pixels(self._expand(confidence))
        return Inputs(self._expand(reference), self.pixels(maps), weights, float(smoothness))

    def pixels(self, maps: Tensor) -> Tensor:
        """Convert maps (B, K, H, W) to pixels (count H W, ...)."""
        if maps.shape[0] * maps.shape[1] == self.count:
            return maps.reshape(-1, 1)
        pixels = inputs.as_pixels(maps, self.count)
        return pixels.reshape(-1, pixels.shape[-1]).contiguous()

    def maps(self, pixels: Tensor) -> Tensor:
        """Convert pixels to maps (B, K, H, W), as a view."""
        return inputs.as_maps(pixels.view(self.count, *self._shape[2:], -1), self._shape)

    def _expand(self, maps: Tensor) -> Tensor:
        is_full = maps.shape[0] == self.count
        return maps if is_full else maps.expand(self.count, *maps.shape[1:])


compile_usual = store.compile_usual
"""Compile the kernels of usual calls ahead of time."""


@retry_without_recordings
def solve(warn: Warn, *arguments: Any) -> tuple[Tensor, Tensor]:
    """Solve a batch, by a recording if there is one; return the solution and a handle."""
    *tensors, like, options = _with_options(arguments)
    layout, batch = _converted(*tensors)
    earlier_systems = handles.find(like)
    earlier = None if earlier_systems is None else earlier_systems[0]
    if options.solve.planar:
        return _solve_planes(warn, layout, batch, options, earlier)
    if batch.values.is_cuda and not isinstance(earlier, System):
        solution = recording_cache.solve(batch, options, earlier=earlier)
        if solution is not None:
            warn(solution.outcome, options)
            return layout.maps(solution.x), handles.keep([solution.replayed] * layout.count)
    batch_grid = earlier.batch_grid if isinstance(earlier, System) else None
    x, system, outcome = solve_batch(batch, options, batch_grid)
    warn(outcome, options)
    return layout.maps(x), handles.keep([system] * layout.count)


def _solve_planes(
    warn: Warn, layout: _Layout, batch: Inputs, options: LayerOptions, earlier: Any
) -> tuple[Tensor, Tensor]:
    known = earlier if isinstance(earlier, System | PlaneProblem) else None
    problem = PlaneProblem(batch, options, known)
    x, outcome = problem.solve(batch.values.dtype)
    warn(outcome, options)
    return layout.maps(x), handles.keep([problem] * layout.count, problem.content)


@retry_without_recordings
def apply_planes(warn: Warn, *arguments: Any) -> Tensor:
    """Compute M g or M^T g of the planar model."""
    handle, reference, g, confidence, smoothness, transposed, options = _with_options(arguments)
    layout, batch = _converted(reference, g, confidence, smoothness)
    problems = handles.find(handle)
    if problems is not None and len(problems) == layout.count:
        problem = problems[0]
    else:
        other = batch._replace(values=torch.zeros_like(batch.values))
        problem = planes.rebuild(other, options, handle.expand(layout.count).tolist())
    out, outcome = problem.apply(batch.values, transposed=transposed)
    warn(outcome, options)
    return layout.maps(out)


@retry_without_recordings
def infer(
    warn: Warn,
    reference: Tensor,
    target: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    options: LayerOptions,
) -> Tensor | None:
    """Return the solution of a replay without a handle; None if no recording serves."""
    layout, batch = _converted(reference, target, confidence, smoothness)
    solution = recording_cache.solve(batch, options, remember=False)
    if solution is None:
        return None
    warn(solution.outcome, options)
    return layout.maps(solution.x)


@retry_without_recordings
def infer_again(warn: Warn, key: Any, options: LayerOptions, *pixels: Any) -> Tensor | None:
    """Return the solution of a replay for `Inputs` and the key of its recordings."""
    solution = recording_cache.replay(key, Inputs(*pixels), options)
    if solution is None:
        return None
    warn(solution.outcome, options)
    return solution.x


def recording_key(
    reference: Tensor, target: Tensor, confidence: Tensor | None, options: LayerOptions
) -> Any:
    """Return the key of a call in the cache of recordings."""
    _, batch = _converted(reference, target, confidence, torch.ones(()))
    return recording_cache.key(batch, options)


@retry_without_recordings
def gradients(warn: Warn, *arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the gradients of target, confidence and smoothness; empty where not needed."""
    handle, reference, h, confidence, smoothness, target, _, needed, options = _with_options(
        arguments
    )
    layout, batch = _converted(reference, target, confidence, smoothness)
    with _system(handle, batch, options) as (system, solve_adjoint):
        solution, outcome = solve_adjoint(layout.pixels(h))
        of_target, of_weights, of_smoothness = adjoint.gradients(
            system, solution, batch.values, batch.weights, needed
        )
    warn(outcome, options)
    size = layout.count, 1, *h.shape[2:]
    return (
        layout.maps(of_target) if needed[0] else of_target,
        of_weights.reshape(size) if needed[1] else of_weights,
        of_smoothness.to(smoothness.device, smoothness.dtype),
    )


@retry_without_recordings
def apply_adjoint(warn: Warn, *arguments: Any) -> Tensor:
    """Compute M g = S^T A^-1 S g, and 0 in parts without data."""
    handle, reference, g, confidence, smoothness, options = _with_options(arguments)
    layout, batch = _converted(reference, g, confidence, smoothness)
    with _system(handle, batch, options) as (system, solve_adjoint):
        solution, outcome = solve_adjoint(batch.values)
        out = slice_(system.grid, solution.x)
    warn(outcome, options)
    return layout.maps(out)


@retry_without_recordings
def surroundings(_: Warn, *arguments: Any) -> Tensor:
    """Compute P g, which is U g in parts without data from g elsewhere; or P^T g."""
    handle, reference, g, confidence, smoothness, transposed, options = _with_options(arguments)
    layout, batch = _converted(reference, g, confidence, smoothness)
    with _system(handle, batch, options) as (system, __):
        if system.with_data is None:
            return torch.zeros_like(g)
        v = system.spread(splat(system.grid, batch.values), from_gaps=transposed)
        out = slice_(system.grid, v)
    return layout.maps(out)


def _with_options(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Replace the options at the end of an operator's arguments by one object."""
    return *arguments[:-COUNT], LayerOptions.from_arguments(*arguments[-COUNT:])


def _converted(
    reference: Tensor, maps: Tensor, confidence: Tensor | None, smoothness: Tensor
) -> tuple[_Layout, Inputs]:
    layout = _Layout(reference, maps, confidence)
    return layout, layout.inputs(reference, maps, confidence, smoothness)


@contextmanager
def _system(
    handle: Tensor, batch: Inputs, options: LayerOptions
) -> Iterator[tuple[System, SolveAdjoint]]:
    """Return the system of a handle, or the same set up again, and a function for its adjoint.

    The system is that of a solve with these inputs, or with other values: then all but its solution
    is the same.
    """
    systems = handles.find(handle)
    system = systems[0] if systems is not None and len(systems) == len(batch.reference) else None
    if isinstance(system, ReplayedSolve):
        with system.recording(batch) as recording:
            if recording is not None:
                yield recording.system, recording.solve_adjoint
                return
    if not isinstance(system, System):
        _, system, _ = solve_batch(batch, options)
    solve_adjoint = partial(adjoint.solve_adjoint, system, tolerance=options.solve.tolerance)
    yield system, solve_adjoint
