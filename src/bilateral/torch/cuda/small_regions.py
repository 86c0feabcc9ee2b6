"""Clean a label map by a vote and by merging: `tasks.segmentation.small_regions` for tensors."""

from __future__ import annotations

import torch
from torch import Tensor

from bilateral.backends.cuda.labels.majority import majority
from bilateral.backends.cuda.labels.probabilities import rank, swap_labels
from bilateral.backends.cuda.labels.regions import Regions, border_votes, find_regions
from bilateral.backends.cuda.prefix import prefix_sums
from bilateral.tasks.segmentation import policy


def clean_labels(x: Tensor, radius: int, min_area: float) -> Tensor:
    """Give each pixel the label of the majority around it, and remove small regions.

    Where the label of a pixel changes, the probabilities of the old and the new class change
    places.
    """
    old = rank(x).labels
    new = merge_small_regions(majority(old, radius), len(x), min_area)
    out = x.clone(memory_format=torch.contiguous_format)
    swap_labels(out, old, new)
    return out


def merge_small_regions(labels: Tensor, classes: int, min_area: float) -> Tensor:
    """Merge regions of fewer than `min_area` pixels into the label with the longest shared border.

    If all regions are small, the labels stay as they are.
    """
    for _ in range(policy.MERGE_ROUNDS):
        regions = find_regions(labels)
        small = (regions.size > 0) & (regions.size < min_area)
        small_count, count = torch.stack([small.sum(), (regions.size > 0).sum()]).tolist()
        if small_count in (0, count):
            break
        new = _labels_beyond(labels, regions, small, small_count, classes)
        labels = torch.where(new < 0, labels, new)
    return labels


def _labels_beyond(
    labels: Tensor, regions: Regions, small: Tensor, small_count: int, classes: int
) -> Tensor:
    """Return the label beyond most of the border of each pixel's region.

    -1 if the region is not small, or touches only small regions and waits for the next round.
    """
    number = torch.where(small, prefix_sums(small.int()) - 1, -1)
    votes = border_votes(labels, regions, number, small_count, classes)
    winner = torch.where(votes.amax(1) > 0, votes.argmax(1).int(), -1)
    of_pixel = number[regions.root.long()].long()
    return torch.where(of_pixel < 0, -1, winner[of_pixel.clamp(min=0)])
