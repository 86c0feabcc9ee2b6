"""Refine segmentations on a CUDA device: `tasks.refine_segmentation` for tensors.

The host waits where it needs a number: whether scores are logits and valid, which classes take
part, how large the cells are, and whether there are small regions.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from bilateral import validation
from bilateral.backends.cuda.labels.majority import majority
from bilateral.backends.cuda.labels.probabilities import rank, scale_labels, swap_labels
from bilateral.numerics.options import GridOptions, SolveOptions
from bilateral.tasks.segmentation import policy
from bilateral.tasks.segmentation.policy import Parameters
from bilateral.torch.cuda import rank_reduction, scores
from bilateral.torch.cuda.class_balance import balance_classes
from bilateral.torch.cuda.classes import (
    ActiveClasses,
    Probabilities,
    active_classes,
    active_numbers,
    class_counts,
    class_numbers,
    join_classes,
    most_probable,
    probabilities_at_size,
)
from bilateral.torch.cuda.device_memory import retry_without_recordings
from bilateral.torch.cuda.label_trust import belt_width, boundary_confidence
from bilateral.torch.cuda.rank_reduction import Moments, Reduced
from bilateral.torch.cuda.recorded import recorded
from bilateral.torch.cuda.scores import ScoreStats
from bilateral.torch.cuda.small_regions import merge_small_regions
from bilateral.torch.cuda.tasks.solves import PhotoSolver
from bilateral.torch.options import LayerOptions
from bilateral.torch.segmentation_batch import SegmentationBatch


@retry_without_recordings
def refine(batch: SegmentationBatch) -> Tensor:
    """Return probabilities (B, K, H, W), or labels (B, H, W).

    An invalid image is refined on the CPU, which raises an error that says where it is invalid.
    """
    white = scores.check_without_values(batch)
    converted = scores.convert(batch)
    stats = scores.compute_stats(converted, not batch.scores.is_floating_point(), white)
    several = batch.scores.shape[1] > 1
    logits = batch.logits
    if logits is None:
        logits = any(
            validation.are_logits(s.low, s.least_sum if several else 1.0, s.largest_sum)
            for s in stats
        )
    refined = []
    for i, s in enumerate(stats):
        is_valid = s.valid and (
            logits or validation.are_probabilities(s.low, 1.0 if several else s.largest_sum)
        )
        x = _refine_image(converted, i, s, logits, white) if is_valid else None
        refined.append(batch.refine_on_cpu(i).to(batch.scores.device) if x is None else x)
    return torch.stack(refined)


def _refine_image(
    batch: SegmentationBatch, i: int, stats: ScoreStats, logits: bool, white: float
) -> Tensor | None:
    """Refine one image; None if it has no known pixel."""
    image = batch.images[i]
    shape = image.shape[1], image.shape[2]
    ignore = None if batch.ignore is None else batch.ignore[i]
    confidence = batch.confidence if isinstance(batch.confidence, str) else batch.confidence[i]
    probabilities, numbers = _classes(
        batch.scores[i], logits, stats.finite, ignore, confidence, shape
    )
    counts = class_counts(numbers)
    if counts.trusted == 0:
        return None
    is_whole = counts.known == probabilities.known.numel()
    known = None if is_whole else probabilities.known
    chosen = active_numbers(probabilities.p, counts)
    active, numbers = _activate(probabilities.p, known, chosen)
    width, *areas = numbers.tolist()
    parameters = batch.options.for_image(shape, confidence, lambda: width)
    min_confidence = stats.min_confidence if is_whole else 0.0
    scene = _Scene(active, known, areas.index(max(areas)), parameters)
    preconditioner = parameters.preconditioner(min_confidence)
    solutions = _solve(scene, confidence, image, white, preconditioner)
    smooth, old, voted = _sum_solutions(solutions, scene)
    new = merge_small_regions(voted, len(active.p), parameters.min_region_area)
    full = None if batch.labels else probabilities.p
    refined = _finish(smooth, old, new, active, full)
    return refined[1:] if full is not None and batch.scores.shape[1] == 1 else refined


class _Scene(NamedTuple):
    """The classes of one image, and how to refine them."""

    active: ActiveClasses
    known: Tensor | None
    """(H, W); None: everywhere."""
    largest: int
    """The class of the largest area: it follows from the others, because all sum to 1."""
    parameters: Parameters


class _Problem(NamedTuple):
    """What to solve on each of the two grids."""

    reduced: Reduced
    images: tuple[Tensor, ...]
    maps: tuple[Tensor, ...]
    weights: tuple[Tensor | None, ...]


@recorded
def _classes(
    scores: Tensor,
    logits: bool,
    finite: bool,
    ignore: Tensor | None,
    confidence: str | Tensor,
    shape: tuple[int, int],
) -> tuple[Probabilities, Tensor]:
    """Compute the probabilities of all classes, and the numbers that choose some."""
    probabilities = probabilities_at_size(scores, logits, finite, ignore, shape)
    weights = None if isinstance(confidence, str) else confidence
    return probabilities, class_numbers(probabilities, weights)


@recorded
def _activate(p: Tensor, known: Tensor | None, numbers: Tensor) -> tuple[ActiveClasses, Tensor]:
    """Return the chosen classes, and for the host the width of the belt of doubt and the areas."""
    active = active_classes(p, numbers)
    sums = active.p.sum((1, 2)).double()
    return active, torch.cat([belt_width(active.ranked, known)[None], sums])


@recorded
def _measure(scene: _Scene, confidence: str | Tensor) -> tuple[Tensor | None, Moments | None]:
    """Return the weight of each pixel, and the moments of all classes but the largest."""
    active, known, largest, parameters = scene
    c = _confidence(confidence, active, known, parameters)
    if c is None and max(parameters.shifts) > 0:
        c = torch.ones_like(active.p[0])
    return c, rank_reduction.moments(_others(active.p, largest), c, parameters.rank_tolerance)


@recorded
def _problem(
    scene: _Scene, c: Tensor | None, moments: Moments | None, basis: Tensor | None, image: Tensor
) -> _Problem:
    """Return the reduced maps and the image for both grids, moved by the shifts."""
    reduced = rank_reduction.project(_others(scene.active.p, scene.largest), moments, basis)
    shifts = scene.parameters.shifts
    return _Problem(
        reduced,
        tuple(_repeat_border(image, shift) for shift in shifts),
        tuple(_pad_with_zeros(reduced.p, shift) for shift in shifts),
        tuple(None if c is None else _pad_with_zeros(c, shift) for shift in shifts),
    )


def _others(p: Tensor, largest: int) -> Tensor:
    return torch.cat([p[:largest], p[largest + 1 :]])


def _confidence(
    confidence: str | Tensor,
    active: ActiveClasses,
    known: Tensor | None,
    parameters: Parameters,
) -> Tensor | None:
    """Compute the weight of each pixel, 0 where nothing is known; None: 1 everywhere."""
    c: Tensor | None = None
    if isinstance(confidence, Tensor):
        c = (confidence / confidence.amax()).float()
    elif confidence == "boundary":
        c = boundary_confidence(active.ranked.labels, known, parameters.depth_radius)
    elif confidence == "entropy":
        p = active.p
        entropy = -(p * p.clamp(min=torch.finfo(p.dtype).tiny).log()).sum(0)
        c = (1 - entropy / math.log(max(len(p), 2))).clamp(min=policy.MIN_CONFIDENCE)
    if known is None:
        return c
    return known.float() if c is None else torch.where(known, c, 0)


class _Solutions(NamedTuple):
    """Solutions of all classes but the largest, reduced, on both grids; none for one class."""

    maps: tuple[Tensor, ...]
    reduced: Reduced | None


def _solve(
    scene: _Scene, confidence: str | Tensor, image: Tensor, white: float, preconditioner: str
) -> _Solutions:
    """Solve on two grids, of which the second begins before the image."""
    parameters = scene.parameters
    if len(scene.active.p) == 1:
        return _Solutions((), None)
    c, moments = _measure(scene, confidence)
    basis = rank_reduction.leading_directions(moments, parameters.rank_tolerance)
    problem = _problem(scene, c, moments, basis, image)
    grid_options = GridOptions(
        parameters.cell,
        parameters.sigma_luma,
        parameters.sigma_chroma,
        validation.blur("paper", 2 + image.shape[0]),
        white,
    )
    solve_options = SolveOptions(
        tolerance=policy.TOLERANCE,
        preconditioner=preconditioner,
        checks_error=False,  # labels need no bound of the error
    )
    options = LayerOptions(grid_options, solve_options)
    maps = tuple(
        PhotoSolver(photo).solve(values, weights, parameters.smoothness, options)
        for photo, values, weights in zip(*problem[1:], strict=True)
    )
    return _Solutions(maps, problem.reduced)


@recorded
def _sum_solutions(solutions: _Solutions, scene: _Scene) -> tuple[Tensor, Tensor, Tensor]:
    """Return the sum of the solutions with balanced classes, its labels and their majorities."""
    active, known, largest, parameters = scene
    sums = []
    for x, shift in zip(solutions.maps, parameters.shifts, strict=False):
        assert solutions.reduced is not None
        others = solutions.reduced.expand(x[:, shift:, shift:])
        rest = 1 - others.sum(0, keepdim=True)
        sums.append(torch.cat([others[:largest], rest, others[largest:]]))
    x = torch.stack(sums).sum(0) if sums else torch.full_like(active.p, len(parameters.shifts))
    x = x.clamp(min=policy.MIN_PROBABILITY)
    scale_labels(x, active.ranked.labels, 1 + policy.TIE_MARGIN)
    x = balance_classes(x, active.ranked.labels, known)
    old = rank(x).labels
    return x, old, majority(old, parameters.vote_radius)


@recorded
def _finish(x: Tensor, old: Tensor, new: Tensor, active: ActiveClasses, p: Tensor | None) -> Tensor:
    """Return labels, or all probabilities for `p`.

    Where the label of a pixel changed, the probabilities of the old and the new class change
    places.
    """
    x = x.clone(memory_format=torch.contiguous_format)
    swap_labels(x, old, new)
    return most_probable(active, x) if p is None else join_classes(p, active, x)


def _repeat_border(image: Tensor, shift: int) -> Tensor:
    """Repeat the first row and column of an image before it."""
    if shift == 0:
        return image
    for axis in (1, 2):
        first = image.narrow(axis, 0, 1)
        size = [shift if k == axis else n for k, n in enumerate(first.shape)]
        image = torch.cat([first.expand(size), image], axis)
    return image


def _pad_with_zeros(maps: Tensor, shift: int) -> Tensor:
    """Add rows and columns of zeros before maps."""
    return torch.nn.functional.pad(maps, (shift, 0, shift, 0))
