"""The operators for CUDA tensors: shapes and handles around `device`."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from bilateral.ops.cuda import pcg, splatting
from bilateral.torch import device, kept, replay, shapes
from bilateral.torch.device import Options, Problem

Warn = Callable[[pcg.Outcome, Options], None]


def solve(
    warn: Warn,
    reference: Tensor,
    target: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    like: Tensor | None,
    *config: Any,
) -> tuple[Tensor, Tensor]:
    """`operators.solve`."""
    options, count = Options(*config), shapes.matrices(reference, target, confidence)
    known = kept.find(like)
    where = device.space(_expand(reference, count), options) if known is None else known[0].space
    weights = None if confidence is None else _pixels(_expand(confidence, count), count)
    x, problem, outcome = device.solve(
        where, _pixels(target, count), weights, float(smoothness), options
    )
    warn(outcome, options)
    return _maps(x, target.shape, count), kept.keep([problem] * count)


def infer(
    warn: Warn,
    reference: Tensor,
    target: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    *config: Any,
) -> Tensor | None:
    """The solution alone, replayed from a recording; None if there is none that serves."""
    options, count = Options(*config), shapes.matrices(reference, target, confidence)
    weights = None if confidence is None else _pixels(_expand(confidence, count), count)
    values, references = _pixels(target, count), _expand(reference, count)
    found = replay.solve(references, values, weights, float(smoothness), options)
    if found is None:
        return None
    warn(found[1], options)
    return _maps(found[0], target.shape, count)


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
    *config: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """`operators.gradients`."""
    options = Options(*config)
    count = shapes.matrices(reference, target, confidence)
    problem = _problem(warn, handle, reference, target, confidence, smoothness, config)
    weights = None if confidence is None else _pixels(_expand(confidence, count), count)
    of_target, of_weights, of_smoothness, outcome = device.gradients(
        problem, _pixels(h, count), _pixels(target, count), weights, wanted, options.tolerance
    )
    warn(outcome, options)
    size = count, 1, *h.shape[2:]
    return (
        _maps(of_target, h.shape, count) if wanted[0] else of_target,
        of_weights.reshape(size) if wanted[1] else of_weights,
        of_smoothness.to(smoothness.device, smoothness.dtype),
    )


def apply_inverse(
    warn: Warn,
    handle: Tensor,
    reference: Tensor,
    g: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    *config: Any,
) -> Tensor:
    """`operators.apply_inverse`."""
    options = Options(*config)
    count = shapes.matrices(reference, g, confidence)
    problem = _problem(warn, handle, reference, g, confidence, smoothness, config)
    grid = problem.space.grid
    x, outcome = problem.inverse(splatting.splat(grid, _pixels(g, count)), options.tolerance)
    warn(outcome, options)
    return _maps(splatting.slice_(grid, x), g.shape, count)


def surroundings(
    warn: Warn,
    handle: Tensor,
    reference: Tensor,
    g: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    transposed: bool,
    *config: Any,
) -> Tensor:
    """`operators.surroundings`."""
    count = shapes.matrices(reference, g, confidence)
    problem = _problem(warn, handle, reference, g, confidence, smoothness, config)
    if problem.active is None:
        return torch.zeros_like(g)
    grid = problem.space.grid
    v = problem.spread(splatting.splat(grid, _pixels(g, count)), from_gaps=transposed)
    return _maps(splatting.slice_(grid, v), g.shape, count)


def _problem(
    warn: Warn,
    handle: Tensor,
    reference: Tensor,
    maps: Tensor,
    confidence: Tensor | None,
    smoothness: Tensor,
    config: tuple[Any, ...],
) -> Problem:
    """What the handle stands for, or the same made again."""
    found = kept.find(handle)
    if found is not None and len(found) == shapes.matrices(reference, maps, confidence):
        problem: Problem = found[0]
        return problem
    # The handle of the new one lives as long as this function: so does what it stands for.
    _, again = solve(warn, reference, maps, confidence, smoothness, None, *config)
    return _problem(warn, again, reference, maps, confidence, smoothness, config)


def _expand(maps: Tensor, count: int) -> Tensor:
    return maps.expand(count, *maps.shape[1:]) if maps.shape[0] != count else maps


def _pixels(maps: Tensor, count: int) -> Tensor:
    """(B, K, H, W) to (count H W, ...)."""
    pixels = shapes.as_pixels(maps, count)
    return pixels.reshape(-1, pixels.shape[-1]).contiguous()


def _maps(pixels: Tensor, shape: torch.Size, count: int) -> Tensor:
    """Back to (B, K, H, W), as a view."""
    return shapes.as_maps(pixels.view(count, *shape[2:], -1), shape)
