"""What outlines of labels tell, on a device: `tasks.outline` and `tasks.islands` for tensors."""

import torch
from torch import Tensor

from bilateral.backends.cuda.labels.class_balance import ClassBalance
from bilateral.backends.cuda.labels.label_depth import relative_depth
from bilateral.backends.cuda.labels.majority import majority
from bilateral.backends.cuda.labels.probabilities import Ranked, count_labels, rank, swap_labels
from bilateral.backends.cuda.labels.regions import Regions, border_votes, find_regions
from bilateral.backends.cuda.prefix import prefix_sums
from bilateral.tasks.segmentation import label_trust as rules
from bilateral.tasks.segmentation import small_regions as islands


def belt(ranked: Ranked, known: Tensor | None) -> Tensor:
    """How wide the belt of doubt along the outlines is, in pixels; 0 if no pixel is in doubt."""
    doubt = ranked.best - ranked.second < rules.DOUBT
    if known is not None:
        doubt &= known
    length = sum(_changes(ranked.labels, known, axis) for axis in (0, 1))
    return doubt.sum().double() / torch.as_tensor(length).clamp(min=1)


def _changes(labels: Tensor, known: Tensor | None, axis: int) -> Tensor:
    size = labels.shape[axis] - 1

    def pairs(of: Tensor) -> tuple[Tensor, Tensor]:
        return of.narrow(axis, 0, size), of.narrow(axis, 1, size)

    before, after = pairs(labels)
    differ = before != after
    if known is not None:
        before, after = pairs(known)
        differ &= before & after
    return differ.sum()


def trust(labels: Tensor, known: Tensor | None, radius: int) -> Tensor:
    """Little at the outlines, where a network knows least, most in the middle of each region."""
    if known is not None:
        labels = torch.where(known, labels, -1)
    c = -torch.expm1(-2 * relative_depth(labels, radius).square())
    return c.clamp(min=rules.LEAST_TRUST)


def keep_areas(x: Tensor, before: Tensor, known: Tensor | None) -> Tensor:
    """Weigh the classes of (K, H, W) probabilities so that each is the label of as many pixels."""
    classes, now = len(x), rank(x)
    close = now.second > now.best * rules.CLOSE
    sure = ~close
    if known is not None:
        close, sure = close & known, sure & known
    areas = ClassBalance(
        x.clamp(min=torch.finfo(x.dtype).tiny).log(),
        close,
        count_labels(now.labels, classes, sure),
        count_labels(before, classes, known),
    )
    for _ in range(rules.ROUNDS):
        areas.adjust(rules.STEP, rules.LARGEST_BIAS, rules.FEW_PIXELS, rules.SETTLED)
    return x * areas.bias.exp().to(x.dtype)[:, None, None]


def calm(x: Tensor, radius: int, least: float) -> Tensor:
    """Give each pixel the label of the majority around it, and leave no islands."""
    own = rank(x).labels
    new = flood(majority(own, radius), len(x), least)
    out = x.clone(memory_format=torch.contiguous_format)
    swap_labels(out, own, new)
    return out


def flood(labels: Tensor, classes: int, least: float) -> Tensor:
    """Give regions of fewer pixels than `least` the label that most of their border has."""
    for _ in range(islands.ROUNDS):
        regions = find_regions(labels)
        small = (regions.size > 0) & (regions.size < least)
        few, all_ = torch.stack([small.sum(), (regions.size > 0).sum()]).tolist()
        if few in (0, all_):
            break
        new = _labels_around(labels, regions, small, few, classes)
        labels = torch.where(new < 0, labels, new)
    return labels


def _labels_around(
    labels: Tensor, regions: Regions, small: Tensor, few: int, classes: int
) -> Tensor:
    """The label of most of the border of each pixel's region; -1 if it is not small, or has none.

    Islands that touch nothing but islands wait for the next round.
    """
    number = torch.where(small, prefix_sums(small.int()) - 1, -1)
    votes = border_votes(labels, regions, number, few, classes)
    winner = torch.where(votes.amax(1) > 0, votes.argmax(1).int(), -1)
    of_pixel = number[regions.root.long()].long()
    return torch.where(of_pixel < 0, -1, winner[of_pixel.clamp(min=0)])
