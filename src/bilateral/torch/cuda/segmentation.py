"""Refine segmentations on a CUDA device: `tasks.refine_segmentation` for tensors.

The host waits where it needs a number: whether scores are logits and valid, which classes take
part, how large the cells are, and whether there are small regions.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bilateral import validation
from bilateral.backends.cuda.labels.probabilities import scale_labels
from bilateral.numerics.options import GridOptions, SolveOptions
from bilateral.tasks.segmentation import policy
from bilateral.tasks.segmentation.policy import Parameters
from bilateral.torch import autograd, inputs
from bilateral.torch.cuda import rank_reduction, scores
from bilateral.torch.cuda.class_balance import balance_classes
from bilateral.torch.cuda.classes import (
    ActiveClasses,
    active_classes,
    count_classes,
    join_classes,
    most_probable,
    probabilities_at_size,
)
from bilateral.torch.cuda.device_memory import retry_without_recordings
from bilateral.torch.cuda.label_trust import belt_width, boundary_confidence
from bilateral.torch.cuda.scores import ScoreStats
from bilateral.torch.cuda.small_regions import clean_labels
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
    image, shape = batch.images[i], batch.images.shape[2:]
    ignore = None if batch.ignore is None else batch.ignore[i]
    probabilities = probabilities_at_size(batch.scores[i], logits, stats.finite, ignore, shape)
    confidence = batch.confidence if isinstance(batch.confidence, str) else batch.confidence[i]
    counts = count_classes(probabilities, None if isinstance(confidence, str) else confidence)
    if counts.trusted == 0:
        return None
    active = active_classes(probabilities.p, counts)
    known = None if counts.known == probabilities.known.numel() else probabilities.known
    p, ranked = active.p, active.ranked
    sums = p.sum((1, 2)).double()
    width, *areas = torch.cat([belt_width(ranked, known)[None], sums]).tolist()
    parameters = batch.options.for_image(tuple(shape), confidence, lambda: width)
    min_confidence = stats.min_confidence if known is None else 0.0
    c = _confidence(confidence, active, known, parameters)
    largest = areas.index(max(areas))
    preconditioner = parameters.preconditioner(min_confidence)
    x = torch.stack(
        [
            _solve(p, c, image, white, parameters, preconditioner, largest, shift)
            for shift in parameters.shifts
        ]
    ).sum(0)
    x = x.clamp(min=policy.MIN_PROBABILITY)
    scale_labels(x, ranked.labels, 1 + policy.TIE_MARGIN)
    x = balance_classes(x, ranked.labels, known)
    x = clean_labels(x, parameters.vote_radius, parameters.min_region_area)
    if batch.labels:
        return most_probable(active, x)
    full = join_classes(probabilities.p, active, x)
    return full if batch.scores.shape[1] > 1 else full[1:]


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


def _solve(
    p: Tensor,
    c: Tensor | None,
    image: Tensor,
    white: float,
    parameters: Parameters,
    preconditioner: str,
    largest: int,
    shift: int,
) -> Tensor:
    """Solve on a grid whose cells begin `shift` pixels before the image.

    Solutions sum to 1, because the classes do: the `largest` class follows from the others.
    """
    if len(p) == 1:
        return torch.ones_like(p)
    if shift > 0 and c is None:
        c = torch.ones_like(p[0])
    others = torch.cat([p[:largest], p[largest + 1 :]])
    reduced = rank_reduction.reduce(others, c, parameters.rank_tolerance)
    batch = inputs.batch(
        _repeat_border(image, shift)[None],
        _pad_with_zeros(reduced.p, shift)[None],
        None if c is None else _pad_with_zeros(c[None], shift)[None],
    )
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
    smoothness = inputs.smoothness(parameters.smoothness)
    x = autograd.infer(*batch, smoothness, options)
    if x is None:
        x, _ = autograd.solve(*inputs.zero_unknown(batch), smoothness, None, options)
    x = reduced.expand(x[0, :, shift:, shift:])
    rest = 1 - x.sum(0, keepdim=True)
    return torch.cat([x[:largest], rest, x[largest:]])


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
