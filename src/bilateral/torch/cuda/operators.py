"""The operators for CUDA tensors: shapes and handles around `device` and `replay`.

A handle stands for a problem, or for a solve of a recording, whose memory has the problem.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any, TypeVar

import torch
from torch import Tensor

from bilateral.backends.cuda.grid import splat as splatting
from bilateral.backends.cuda.solve import pcg
from bilateral.torch import handles as kept
from bilateral.torch import inputs as shapes
from bilateral.torch.cuda import recording_cache as replay
from bilateral.torch.cuda import system as device
from bilateral.torch.cuda.system import Inputs, Problem
from bilateral.torch.options import LayerOptions

T = TypeVar("T")
Warn = Callable[[pcg.Outcome, LayerOptions], None]
Inverse = Callable[[Tensor], tuple[device.Inverse, pcg.Outcome]]


def spared(function: Callable[..., T]) -> Callable[..., T]:
    """The same, which if there is too little memory gives back that of recordings."""

    @wraps(function)
    def run(*args: Any) -> T:
        try:
            return function(*args)
        except RuntimeError as error:
            if not replay.lacks_memory(error):
                raise
        replay.forget()
        return function(*args)

    return run


@spared
def solve(
    warn: Warn,
    reference: Tensor,
    target: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    like: Tensor | None,
    *arguments: Any,
) -> tuple[Tensor, Tensor]:
    """`operators.solve`."""
    options, count = (
        LayerOptions.from_arguments(*arguments),
        shapes.matrices(reference, target, confidence),
    )
    known = kept.find(like)
    found: Problem | replay.Ticket | None = None if known is None else known[0]
    inputs = _inputs(reference, target, confidence, smoothness, count)
    if target.is_cuda and not isinstance(found, Problem):
        recorded = replay.solve(inputs, options, like=found)
        if recorded is not None:
            warn(recorded.outcome, options)
            return _maps(recorded.x, target.shape, count), kept.keep([recorded.ticket] * count)
    where = found.space if isinstance(found, Problem) else None
    x, problem, outcome = _solve(inputs, options, where)
    warn(outcome, options)
    return _maps(x, target.shape, count), kept.keep([problem] * count)


@spared
def infer(
    warn: Warn,
    reference: Tensor,
    target: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    options: LayerOptions,
) -> Tensor | None:
    """The solution alone, replayed from a recording; None if there is none that serves."""
    count = shapes.matrices(reference, target, confidence)
    inputs = _inputs(reference, target, confidence, smoothness, count)
    found = replay.solve(inputs, options, remember=False)
    if found is None:
        return None
    warn(found.outcome, options)
    return _maps(found.x, target.shape, count)


@spared
def infer_again(
    warn: Warn,
    key: Any,
    options: LayerOptions,
    *inputs: Any,
) -> Tensor | None:
    """`infer` for pixels, by the recordings of a key; None if there is none that serves."""
    found = replay.replay(key, Inputs(*inputs))
    if found is None:
        return None
    warn(found.outcome, options)
    return found.x


def recording_key(
    reference: Tensor, target: Tensor, confidence: Tensor | None, options: LayerOptions
) -> Any:
    """What the recordings of a solve are found by."""
    count = shapes.matrices(reference, target, confidence)
    inputs = _inputs(reference, target, confidence, torch.ones(()), count)
    return replay.key(inputs, options)


@spared
def gradients(
    warn: Warn,
    handle: Tensor,
    reference: Tensor,
    h: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    target: Tensor,
    _: Tensor,
    wanted: Sequence[bool],
    *arguments: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """`operators.gradients`."""
    options = LayerOptions.from_arguments(*arguments)
    count = shapes.matrices(reference, target, confidence)
    inputs = _inputs(reference, target, confidence, smoothness, count)
    with _matrix(handle, inputs, options) as (problem, inverse):
        found, outcome = inverse(_pixels(h, count))
        of_target, of_weights, of_smoothness = device.gradients(
            problem, found, inputs.values, inputs.weights, wanted
        )
    warn(outcome, options)
    size = count, 1, *h.shape[2:]
    return (
        _maps(of_target, h.shape, count) if wanted[0] else of_target,
        of_weights.reshape(size) if wanted[1] else of_weights,
        of_smoothness.to(smoothness.device, smoothness.dtype),
    )


@spared
def apply_adjoint(
    warn: Warn,
    handle: Tensor,
    reference: Tensor,
    g: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    *arguments: Any,
) -> Tensor:
    """`operators.apply_adjoint`."""
    options = LayerOptions.from_arguments(*arguments)
    count = shapes.matrices(reference, g, confidence)
    inputs = _inputs(reference, g, confidence, smoothness, count)
    with _matrix(handle, inputs, options) as (problem, inverse):
        found, outcome = inverse(_pixels(g, count))
        out = splatting.slice_(problem.space.grid, found.x)
    warn(outcome, options)
    return _maps(out, g.shape, count)


@spared
def surroundings(
    _: Warn,
    handle: Tensor,
    reference: Tensor,
    g: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    transposed: bool,
    *arguments: Any,
) -> Tensor:
    """`operators.surroundings`."""
    options, count = (
        LayerOptions.from_arguments(*arguments),
        shapes.matrices(reference, g, confidence),
    )
    inputs = _inputs(reference, g, confidence, smoothness, count)
    with _matrix(handle, inputs, options) as (problem, __):
        if problem.active is None:
            return torch.zeros_like(g)
        grid = problem.space.grid
        v = problem.spread(splatting.splat(grid, _pixels(g, count)), from_gaps=transposed)
        out = splatting.slice_(grid, v)
    return _maps(out, g.shape, count)


def _inputs(
    reference: Tensor,
    maps: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    count: int,
) -> Inputs:
    weights = None if confidence is None else _pixels(_expand(confidence, count), count)
    return Inputs(_expand(reference, count), _pixels(maps, count), weights, float(smoothness))


def _solve(
    inputs: Inputs, options: LayerOptions, where: device.Space | None = None
) -> tuple[Tensor, Problem, pcg.Outcome]:
    """Without a recording, on a grid that may be there already."""
    reference, values, weights, smoothness = inputs
    where = where or device.space(reference, options)
    return device.solve(where, values, weights, smoothness, options)


@contextmanager
def _matrix(
    handle: Tensor, inputs: Inputs, options: LayerOptions
) -> Iterator[tuple[Problem, Inverse]]:
    """The problem that a handle stands for, or the same made again, and its inverse.

    It is that of a solve with these inputs, or with others for the values; the latter's problem is
    the same but for its solution.
    """
    found = kept.find(handle)
    known = found[0] if found is not None and len(found) == len(inputs.reference) else None
    if isinstance(known, replay.Ticket):
        with known.recording(inputs) as recording:
            if recording is not None:
                yield recording.problem, recording.inverse
                return
    if not isinstance(known, Problem):
        _, known, _ = _solve(inputs, options)
    yield known, partial(known.inverse, tolerance=options.solve.tolerance)


def _expand(maps: Tensor, count: int) -> Tensor:
    return maps.expand(count, *maps.shape[1:]) if maps.shape[0] != count else maps


def _pixels(maps: Tensor, count: int) -> Tensor:
    """(B, K, H, W) to (count H W, ...)."""
    if maps.shape[0] * maps.shape[1] == count:
        return maps.reshape(-1, 1)
    pixels = shapes.as_pixels(maps, count)
    return pixels.reshape(-1, pixels.shape[-1]).contiguous()


def _maps(pixels: Tensor, shape: torch.Size, count: int) -> Tensor:
    """Back to (B, K, H, W), as a view."""
    return shapes.as_maps(pixels.view(count, *shape[2:], -1), shape)
