"""Check the scores, images and confidences of a segmentation with one read from the device."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bilateral import validation
from bilateral.tasks.segmentation import policy
from bilateral.torch.cuda.recorded import recorded
from bilateral.torch.inputs import as_array, is_wide
from bilateral.torch.segmentation_batch import SegmentationBatch


class ScoreStats(NamedTuple):
    """Statistics of one image of a batch, on the host."""

    finite: bool
    """Whether the scores are finite at all pixels that are not ignored."""
    low: float
    """The lowest score at known pixels."""
    least_sum: float
    """The smaller of 1 and the lowest sum of the classes at known pixels."""
    largest_sum: float
    """The larger of 1 and the highest sum of the classes at known pixels."""
    valid: bool
    """Whether the image, the confidence and masks of integers have valid values."""
    min_confidence: float
    """The lowest given confidence, relative to the highest."""


def check_without_values(batch: SegmentationBatch) -> float:
    """Raise errors that need no value of a tensor; return the value of white."""
    shape = tuple(batch.images.shape[2:])

    def like(value: Tensor, *size: int) -> NDArray[Any]:
        return np.broadcast_to(as_array(torch.zeros((), dtype=value.dtype)), size)

    guide = validation.reference(
        like(batch.images, 1, 1, batch.images.shape[1]), batch.reference_max, name="image"
    )
    validation.scores("probabilities", like(batch.scores, 1, 1, 2), batch.logits, shape, None)
    if batch.ignore is not None:
        validation.mask("ignore", like(batch.ignore, *batch.ignore.shape[1:]), shape)
    if isinstance(batch.confidence, str):
        policy.check_confidence(batch.confidence)
    else:
        c = like(batch.confidence, *batch.confidence.shape[1:])
        validation.pixel_weights("confidence", c, shape, np.dtype(np.float64))
    return guide.highest


def convert(batch: SegmentationBatch) -> SegmentationBatch:
    """Bring all tensors to the device of the scores and to the dtypes of the computation."""
    scores, images, confidence, ignore = batch[:4]
    device = scores.device
    images = images.to(device)
    if images.dtype in (torch.uint16, torch.float16, torch.bfloat16):
        images = images.float()
    return batch._replace(
        scores=scores.to(torch.float64 if is_wide(scores.dtype) else torch.float32),
        images=images,
        confidence=confidence
        if isinstance(confidence, str)
        else confidence.to(device, torch.float64),
        ignore=None if ignore is None else ignore.to(device) != 0,
    )


def compute_stats(batch: SegmentationBatch, of_integers: bool, white: float) -> list[ScoreStats]:
    """Compute the statistics of a converted batch, and wait for the device.

    `of_integers` tells whether the scores were integers before the conversion.
    """
    confidence = None if isinstance(batch.confidence, str) else batch.confidence
    rows = _measure(
        batch.scores,
        batch.images,
        confidence,
        batch.ignore,
        limited=batch.reference_max is None and white == 1,
        shares=of_integers and not batch.logits,
    )
    return [
        ScoreStats(finite != 0, low, least_sum, largest_sum, is_valid != 0, least)
        for finite, low, least_sum, largest_sum, is_valid, least in rows.tolist()
    ]


@recorded
def _measure(
    values: Tensor,
    images: Tensor,
    confidence: Tensor | None,
    ignore: Tensor | None,
    *,
    limited: bool,
    shares: bool,
) -> Tensor:
    """Return the numbers of `ScoreStats` of each image.

    `limited`: images have the white 1. `shares`: scores were integers, and are no logits.
    """
    count, device = len(values), values.device
    whole = values.isfinite().all(1)
    below = values.isneginf().any(1)
    if ignore is not None and ignore.shape == whole.shape:
        whole, below = whole & ~ignore, below & ~ignore
    sums = torch.where(whole, values.sum(1), 1)
    # If no pixel is whole, -inf tells logits from probabilities.
    lowest = torch.where(below, -math.inf, math.inf)
    any_whole = whole.flatten(1).any(1)[:, None, None]
    lowest = torch.where(any_whole, math.inf, lowest)
    valid = torch.ones(count, dtype=torch.bool, device=device)
    if images.is_floating_point():
        low, high = -math.inf, math.inf
        if limited:
            low, high = validation.LOWEST, validation.HIGHEST
        valid &= (images.isfinite() & (images >= low) & (images <= high)).flatten(1).all(1)
    if values.shape[1] == 1 and shares:
        valid &= ((values >= 0) & (values <= 1)).flatten(1).all(1)
    min_confidence = torch.ones(count, dtype=torch.float64, device=device)
    if confidence is not None:
        valid &= ((confidence >= 0) & confidence.isfinite()).flatten(1).all(1)
        largest = confidence.flatten(1).amax(1)
        min_confidence = confidence.flatten(1).amin(1) / torch.where(largest > 0, largest, 1)
    return torch.stack(
        [
            whole.flatten(1).all(1).double(),
            torch.where(whole, values.amin(1), lowest).flatten(1).amin(1).double(),
            sums.flatten(1).amin(1).clamp(max=1).double(),
            sums.flatten(1).amax(1).clamp(min=1).double(),
            valid.double(),
            min_confidence,
        ],
        1,
    )
