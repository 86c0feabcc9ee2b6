"""Trust labels by their depth inside a region: `tasks.segmentation.label_trust` for tensors."""

from __future__ import annotations

import torch
from torch import Tensor

from bilateral.backends.cuda.labels.label_depth import label_depth
from bilateral.backends.cuda.labels.probabilities import Ranked
from bilateral.tasks.segmentation import policy


def belt_width(ranked: Ranked, known: Tensor | None) -> Tensor:
    """Measure the width of the belt of doubt along the borders of regions, in pixels: ()."""
    doubt = ranked.best - ranked.second < policy.DOUBT_MARGIN
    if known is not None:
        doubt &= known
    length = sum(_count_changes(ranked.labels, known, axis) for axis in (0, 1))
    return doubt.sum().double() / torch.as_tensor(length).clamp(min=1)


def _count_changes(labels: Tensor, known: Tensor | None, axis: int) -> Tensor:
    """Count the pairs of known neighbours along an axis whose labels differ."""
    size = labels.shape[axis] - 1

    def pairs(values: Tensor) -> tuple[Tensor, Tensor]:
        return values.narrow(axis, 0, size), values.narrow(axis, 1, size)

    before, after = pairs(labels)
    differ = before != after
    if known is not None:
        before, after = pairs(known)
        differ &= before & after
    return differ.sum()


def boundary_confidence(labels: Tensor, known: Tensor | None, radius: int) -> Tensor:
    """Compute a confidence that is low at the borders of regions and 1 in their middle."""
    if known is not None:
        labels = torch.where(known, labels, -1)
    c = -torch.expm1(-policy.DEPTH_GAIN * label_depth(labels, radius).square())
    return c.clamp(min=policy.MIN_CONFIDENCE)
