"""Enlarge depth maps on a CUDA device, one after the other: `tasks.superres_depth` for tensors.

The host reads a few numbers: first whether the input is valid, with the noise of the map and of its
half, then the errors of the solves. Everything between these reads is a recorded function.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from bilateral import validation
from bilateral.numerics.options import GridOptions, SolveOptions
from bilateral.tasks.superres import policy
from bilateral.torch import autograd, inputs
from bilateral.torch.cuda.device_memory import retry_without_recordings
from bilateral.torch.cuda.recorded import recorded
from bilateral.torch.cuda.tasks import photos
from bilateral.torch.cuda.tasks.superres import noise, trust
from bilateral.torch.cuda.tasks.superres.fit import (
    LowResolution,
    Photo,
    Scene,
    fit_block_means,
    numbers_of,
    smooth,
    start_data,
)
from bilateral.torch.cuda.tasks.superres.maps import spread
from bilateral.torch.cuda.tasks.superres.noise import MapNoise
from bilateral.torch.options import LayerOptions
from bilateral.torch.tasks import tensors
from bilateral.torch.tasks.batches import SuperresBatch


@retry_without_recordings
def enlarge(batch: SuperresBatch) -> Tensor:
    """Return maps (B, H, W); an invalid one goes to the CPU, which says what is wrong."""
    large = []
    for i in range(len(batch.depth)):
        x = _enlarge(batch, i)
        large.append(batch.on_cpu(i).to(batch.depth.device) if x is None else x)
    return torch.stack(large)


class _Input(NamedTuple):
    """One map in the dtype of the computation, and its photograph."""

    low: Tensor
    """(h, w)"""
    known: Tensor
    weights: Tensor
    """Relative to the largest; 0 where the map is unknown."""
    photo: Tensor
    """(C, H, W), extended to whole blocks."""


class _Rules(NamedTuple):
    """How to read a map."""

    dtype: torch.dtype
    invalid: tuple[float, ...]
    reference_max: float | None
    shape: tuple[int, int]
    """Of whole blocks."""
    best: bool


_CHECKS = 3
"""Numbers that tell whether a map is valid, has zeros and is complete."""


def _enlarge(batch: SuperresBatch, i: int) -> Tensor | None:
    """Enlarge one map; None if it is not valid."""
    options = batch.options
    reference, depth = tensors.at(batch.reference, i), batch.depth[i]
    white = photos.white(reference, options["reference_max"])
    if white is None:
        return None
    wide = inputs.is_wide(depth.dtype) or inputs.is_wide(batch.dtype)
    size = reference.shape[1], reference.shape[2]
    shape = depth.shape[0], depth.shape[1]
    padded = validation.enlarged_shape("factor", options["factor"], shape, size)
    rules = _Rules(
        torch.float64 if wide else torch.float32,
        tuple(validation.number_list("invalid", options["invalid"])),
        options["reference_max"],
        padded,
        options["preset"] == "best",
    )
    confidence = None if batch.confidence is None else tensors.at(batch.confidence, i)
    given, numbers_there = _read(depth, reference, confidence, rules)
    numbers = numbers_there.tolist()
    is_valid, some_zeros, complete = numbers[:_CHECKS]
    if not is_valid:
        return None
    if some_zeros:
        host = given.low.cpu().numpy()
        validation.warn_of_zeros("depth_lowres", host, given.known.cpu().numpy(), stacklevel=7)
    values = given.low if complete else _filled(given.low, given.known)
    low, photo = LowResolution(values, given.weights), Photo(given.photo, white)
    if rules.best:
        x = _enlarge_best(low, photo, numbers[_CHECKS:])
    else:
        as_in_paper = options["preset"] == "paper"
        x = smooth(_start(low, Scene(photo), photo, as_in_paper=as_in_paper), photo)
    x = x[: size[0], : size[1]]
    if options["keep_holes"]:
        x = _with_holes(x, given.low, given.known, padded, batch)
    return tensors.as_dtype(x, batch.dtype)


@recorded
def _read(
    depth: Tensor, reference: Tensor, confidence: Tensor | None, rules: _Rules
) -> tuple[_Input, Tensor]:
    """Check one map and measure it: (N,) float64 numbers for the host."""
    low = depth.to(rules.dtype)
    known = low.isfinite()
    for value in rules.invalid:
        known = known & (depth != value)
    weights = torch.ones_like(low) if confidence is None else confidence.to(low.dtype)
    valid = weights.isfinite().all() & (weights >= 0).all()
    known = known & (weights > 0)
    valid = valid & known.any() & photos.check(reference, rules.reference_max)
    zeros = (known & (low == 0)).any()
    photo = _extended(photos.levels(reference), rules.shape)
    weights = torch.where(known, weights / torch.where(known, weights, 0).amax(), 0)
    numbers = [torch.stack([valid, zeros, known.all()]).double()]
    if rules.best:
        numbers.append(noise.measure(low, weights > 0))
        if _is_tested(low.shape):
            half, whole = trust.halve(torch.where(known, low, 0), weights > 0)
            numbers += [noise.measure(half, whole), trust.photo_numbers(photo)]
            numbers.append(whole.any().double()[None])
    return _Input(low, known, weights, photo), torch.cat(numbers)


def _is_tested(shape: tuple[int, ...]) -> bool:
    """Whether a map is large enough to measure the trust in its photograph."""
    return min(shape) >= policy.LEAST_SIZE


def _extended(photo: Tensor, shape: tuple[int, int]) -> Tensor:
    """Repeat the last row and column of a photograph (C, H, W) up to a larger shape."""
    for axis, size in zip((1, 2), shape, strict=True):
        missing = size - photo.shape[axis]
        if missing > 0:
            last = photo.narrow(axis, photo.shape[axis] - 1, 1)
            photo = torch.cat([photo, *[last] * missing], axis)
    return photo


def _filled(low: Tensor, known: Tensor) -> Tensor:
    """Fill holes smoothly, so that bicubic interpolation can cross them; their weight is 0."""
    plain = torch.zeros((1, 1, *low.shape), dtype=torch.uint8, device=low.device)
    # A gray picture has one feature, which is the same everywhere: the grid of pixels.
    options = LayerOptions(
        GridOptions(1.0, 8.0, 8.0, validation.blur("paper", 2), None), SolveOptions()
    )
    batch = inputs.batch(plain, torch.where(known, low, 0)[None], known[None].to(low.dtype))
    smooth, _ = autograd.solve(*batch, inputs.smoothness(policy.FILL_SMOOTHNESS), None, options)
    return torch.where(known, low, smooth[0, 0])


def _start(low: LowResolution, scene: Scene, photo: Photo, *, as_in_paper: bool) -> Tensor:
    """Solve as the paper's pipeline does, with the paper's steps or to convergence."""
    target, confidence = start_data(low, photo.shape)
    return scene.solve(target, confidence, policy.SMOOTHNESS, as_in_paper=as_in_paper)


def _enlarge_best(low: LowResolution, photo: Photo, measured: list[float]) -> Tensor:
    """Fit block means with the photograph, and fall back to bicubic where it does not help."""
    of_map = MapNoise.of(measured[: noise.NUMBERS])
    numbers = numbers_of(of_map, low.shape, photo)
    if not _is_tested(low.shape):
        return _guided(low, photo, _on_device(numbers, low.values))
    half, small = trust.halved(low, photo.pixels)
    small_photo = Photo(small, photo.white)
    of_half = MapNoise.of(measured[noise.NUMBERS : 2 * noise.NUMBERS])
    variance, steps, any_whole = measured[2 * noise.NUMBERS :]
    half_numbers = numbers_of(of_half, half.shape, small_photo)
    coherence = policy.coherence(variance, steps)
    rules = trust.rules_of(of_map.level, of_map.noisiness, coherence, any_whole=any_whole > 0)
    both = _on_device([*numbers, *half_numbers, *rules], low.values)
    parts = torch.split(both, [len(numbers), len(half_numbers), len(rules)])
    guided = low.values
    if any_whole > 0:
        guided = _guided(half, small_photo, parts[1])
    x = _guided(low, photo, parts[0])
    return trust.blend_with_bicubic(x, low, parts[0], guided, half, *parts[1:])


def _guided(low: LowResolution, photo: Photo, numbers: Tensor) -> Tensor:
    """Enlarge with a photograph."""
    scene = Scene(photo)
    start = _start(low, scene, photo, as_in_paper=False)
    return fit_block_means(start, low, scene, photo, numbers)


def _on_device(numbers: list[float], like: Tensor) -> Tensor:
    """Return float64 numbers on the device of a tensor."""
    return torch.tensor(numbers, dtype=torch.float64).to(like.device, non_blocking=True)


def _with_holes(
    x: Tensor, low: Tensor, known: Tensor, padded: tuple[int, int], batch: SuperresBatch
) -> Tensor:
    """Keep the holes of the low-resolution map."""
    dtype = tensors.array(torch.empty(0, dtype=batch.dtype)).dtype
    hole = validation.hole_value(validation.number_list("invalid", batch.options["invalid"]), dtype)
    holes = spread((~known).to(low.dtype), padded)[: x.shape[0], : x.shape[1]] > 0
    return torch.where(holes, hole, x)
