"""Merge small regions of a label map: `tasks.segmentation.small_regions` for tensors."""

from __future__ import annotations

import torch
from torch import Tensor

from bilateral.backends.cuda.labels.regions import Regions, border_votes, find_regions
from bilateral.backends.cuda.prefix import prefix_sums
from bilateral.tasks.segmentation import policy
from bilateral.torch.cuda.recorded import recorded


def merge_small_regions(labels: Tensor, classes: int, min_area: float) -> Tensor:
    """Merge regions of fewer than `min_area` pixels into the label with the longest shared border.

    If all regions are small, the labels stay as they are.
    """
    for _ in range(policy.MERGE_ROUNDS):
        regions, counts = _small_regions(labels, min_area)
        small_count, count = counts.tolist()
        if small_count in (0, count):
            break
        room = 1 << (small_count - 1).bit_length()
        labels = _merge(labels, regions, min_area, room, classes)
    return labels


@recorded
def _small_regions(labels: Tensor, min_area: float) -> tuple[Regions, Tensor]:
    """Find regions; count the small ones, and all."""
    regions = find_regions(labels)
    counts = torch.stack([_is_small(regions, min_area).sum(), (regions.size > 0).sum()])
    return regions, counts


def _is_small(regions: Regions, min_area: float) -> Tensor:
    return (regions.size > 0) & (regions.size < min_area)


@recorded
def _merge(labels: Tensor, regions: Regions, min_area: float, room: int, classes: int) -> Tensor:
    """Merge at most `room` small regions."""
    new = _labels_beyond(labels, regions, _is_small(regions, min_area), room, classes)
    return torch.where(new < 0, labels, new)


def _labels_beyond(
    labels: Tensor, regions: Regions, small: Tensor, room: int, classes: int
) -> Tensor:
    """Return the label beyond most of the border of each pixel's region.

    -1 if the region is not small, or touches only small regions and waits for the next round.
    """
    number = torch.where(small, prefix_sums(small.int()) - 1, -1)
    votes = border_votes(labels, regions, number, room, classes)
    winner = torch.where(votes.amax(1) > 0, votes.argmax(1).int(), -1)
    of_pixel = number[regions.root.long()].long()
    return torch.where(of_pixel < 0, -1, winner[of_pixel.clamp(min=0)])
