"""`refine_segmentation` on a device: the recipe of `tasks.segmentation` for tensors.

The host waits where it needs a number: whether scores are logits and in order, which classes take
part, how large cells must be, and whether there are islands.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bilateral import validation as checks
from bilateral.backends.cuda.labels.probabilities import scale_labels
from bilateral.numerics import lowrank
from bilateral.tasks.segmentation import policy as rules
from bilateral.tasks.segmentation.label_trust import LEAST_TRUST
from bilateral.tasks.segmentation.policy import Settings
from bilateral.torch import inputs as shapes
from bilateral.torch.cuda import classes as class_maps
from bilateral.torch.cuda import label_trust as device_outline
from bilateral.torch.functional import solve
from bilateral.torch.segmentation import Task

_ROUNDING = 1e-5
"""Of solutions, relative."""


class Looks(NamedTuple):
    """What the host must know of an image of the batch."""

    finite: bool
    """Whether its scores are, where they are not hidden."""
    low: float
    """The lowest score at pixels that are known."""
    least: float
    """The classes' sums at these pixels, and 1: the least of them, and the most."""
    most: float
    valid: bool
    """Whether image, confidences and masks of integers are as they should be."""
    least_trust: float
    """The least of the confidences given, relative to the largest."""


def refine(given: Task) -> Tensor:
    """Probabilities (B, K, H, W), or labels (B, H, W).

    What is wrong with an image the CPU will say.
    """
    highest = _check(given)
    task, seen = _look(given)
    several = task.scores.shape[1] > 1
    logits = task.logits
    if logits is None:
        logits = any(checks.are_logits(s.low, s.least if several else 1.0, s.most) for s in seen)
    out = []
    for i, found in enumerate(seen):
        fits = logits or checks.are_probabilities(found.low, 1.0 if several else found.most)
        refined = _refine(task, i, found, logits, highest) if fits and found.valid else None
        out.append(given.on_cpu(i).to(task.scores.device) if refined is None else refined)
    return torch.stack(out)


def _check(task: Task) -> float:
    """Raise what needs no look at the tensors; the value that means white."""
    shape = tuple(task.images.shape[2:])

    def like(value: Tensor, *size: int) -> np.ndarray:
        return np.broadcast_to(shapes.array(torch.zeros((), dtype=value.dtype)), size)

    guide = checks.reference(
        like(task.images, 1, 1, task.images.shape[1]), task.reference_max, name="image"
    )
    checks.scores("probabilities", like(task.scores, 1, 1, 2), task.logits, shape, None)
    if task.ignore is not None:
        checks.mask("ignore", like(task.ignore, *task.ignore.shape[1:]), shape)
    if isinstance(task.confidence, str):
        rules.kind_of(task.confidence)
    else:
        c = like(task.confidence, *task.confidence.shape[1:])
        checks.pixel_weights("confidence", c, shape, np.dtype(np.float64))
    return guide.highest


def _look(task: Task) -> tuple[Task, list[Looks]]:
    """Tensors as they are computed with, and what the host must know of them."""
    scores, images, confidence, ignore = task[:4]
    count, device = len(scores), scores.device
    images = images.to(device)
    if images.dtype in (torch.uint16, torch.float16, torch.bfloat16):
        images = images.float()
    wide = scores.dtype in (torch.float64, torch.int32, torch.int64)
    values = scores.to(torch.float64 if wide else torch.float32)
    whole = values.isfinite().all(1)
    hidden = None if ignore is None else ignore.to(device) != 0
    below = values.isneginf().any(1)
    if hidden is not None and hidden.shape == whole.shape:
        whole, below = whole & ~hidden, below & ~hidden
    sums = torch.where(whole, values.sum(1), 1)
    lowest = torch.where(below, -math.inf, math.inf)  # of pixels that are not whole
    some = whole.flatten(1).any(1)[:, None, None]
    lowest = torch.where(some, math.inf, lowest)
    valid = torch.ones(count, dtype=torch.bool, device=device)
    if images.is_floating_point():
        valid &= images.isfinite().flatten(1).all(1)
    if values.shape[1] == 1 and not scores.is_floating_point() and not task.logits:
        valid &= ((values >= 0) & (values <= 1)).flatten(1).all(1)
    trust = torch.ones(count, dtype=torch.float64, device=device)
    if isinstance(confidence, Tensor):
        confidence = confidence.to(device, torch.float64)
        valid &= ((confidence >= 0) & confidence.isfinite()).flatten(1).all(1)
        largest = confidence.flatten(1).amax(1)
        trust = confidence.flatten(1).amin(1) / torch.where(largest > 0, largest, 1)
    seen = torch.stack(
        [
            whole.flatten(1).all(1).double(),
            torch.where(whole, values.amin(1), lowest).flatten(1).amin(1).double(),
            sums.flatten(1).amin(1).clamp(max=1).double(),
            sums.flatten(1).amax(1).clamp(min=1).double(),
            valid.double(),
            trust,
        ],
        1,
    )
    looks = [
        Looks(finite != 0, low, least, most, valid != 0, least_trust)
        for finite, low, least, most, valid, least_trust in seen.tolist()
    ]
    task = task._replace(scores=values, images=images, confidence=confidence, ignore=hidden)
    return task, looks


def _refine(task: Task, i: int, seen: Looks, logits: bool, highest: float) -> Tensor | None:
    """One image; None if it has nothing known."""
    image, settings = task.images[i], task.settings
    hidden = None if task.ignore is None else task.ignore[i]
    given = class_maps.at_size(task.scores[i], logits, seen.finite, hidden, image.shape[1:])
    c = None if isinstance(task.confidence, str) else task.confidence[i]
    counts = class_maps.count(given, c)
    if counts.trusted == 0:
        return None
    few = class_maps.active(given, counts)
    known = None if counts.known == given.known.numel() else given.known
    p, before = few.p, few.ranked
    sums = p.sum((1, 2)).double()
    width, *totals = torch.cat([device_outline.belt(before, known)[None], sums]).tolist()
    cell = settings.sigma_xy or rules.cell_for(tuple(image.shape[1:]), width)
    settings = settings._replace(
        sigma_xy=cell, smoothness=rules.smoothness_for(settings, task.confidence)
    )
    least = seen.least_trust if known is None else 0.0
    c = _confidence(task.confidence, c, few, known, cell)
    most = totals.index(max(totals))
    x = torch.stack(
        [_solve(p, c, image, highest, settings, least, most, shift) for shift in rules.shifts(cell)]
    ).sum(0)
    x = x.clamp(min=rules.LEAST)
    scale_labels(x, before.labels, 1 + _ROUNDING)  # where classes are alike, labels stay
    x = device_outline.keep_areas(x, before.labels, known)
    x = device_outline.calm(x, round(cell * rules.VOTE), cell**2 * rules.ISLAND)
    if task.labels:
        return class_maps.labels(few, x)
    full = class_maps.joined(given.p, few, x)
    return full if task.scores.shape[1] > 1 else full[1:]


def _confidence(
    confidence: str | Tensor,
    given: Tensor | None,
    few: class_maps.Active,
    known: Tensor | None,
    cell: float,
) -> Tensor | None:
    """A weight per pixel, 0 where nothing is known; None: 1 everywhere."""
    c: Tensor | None = None
    if given is not None:
        c = (given / given.amax()).float()
    elif confidence == "boundary":
        c = device_outline.trust(few.ranked.labels, known, round(cell))
    elif confidence == "entropy":
        p = few.p
        entropy = -(p * p.clamp(min=torch.finfo(p.dtype).tiny).log()).sum(0)
        c = (1 - entropy / math.log(max(len(p), 2))).clamp(min=LEAST_TRUST)
    if known is None:
        return c
    return known.float() if c is None else torch.where(known, c, 0)


def _solve(
    p: Tensor,
    c: Tensor | None,
    image: Tensor,
    highest: float,
    settings: Settings,
    least: float,
    most: int,
    shift: int,
) -> Tensor:
    """Solve on a grid whose cells begin `shift` pixels before the image does.

    Solutions sum to 1 as the classes do: that with `most` pixels follows from the others.
    """
    if len(p) == 1:
        return torch.ones_like(p)
    smoothness = settings.smoothness or 1.0
    if shift > 0 and c is None:
        c = torch.ones_like(p[0])
    others = torch.cat([p[:most], p[most + 1 :]])
    few = _reduce(others, c, settings.rank_tolerance)
    x = solve(
        _extended(image, shift)[None],
        _behind(few.p, shift)[None],
        None if c is None else _behind(c[None], shift)[None],
        sigma_xy=settings.sigma_xy or 1.0,
        sigma_luma=settings.sigma_luma,
        sigma_chroma=settings.sigma_chroma,
        smoothness=smoothness,
        tolerance=rules.TOLERANCE,
        preconditioner=rules.preconditioner_for(smoothness, least),
        reference_max=highest,
    )[0, :, shift:, shift:]
    x = few.expand(x)
    rest = 1 - x.sum(0, keepdim=True)
    return torch.cat([x[:most], rest, x[most:]])


def _extended(image: Tensor, shift: int) -> Tensor:
    """With its first row and column again before it."""
    if shift == 0:
        return image
    for axis in (1, 2):
        first = image.narrow(axis, 0, 1)
        size = [shift if k == axis else n for k, n in enumerate(first.shape)]
        image = torch.cat([first.expand(size), image], axis)
    return image


def _behind(maps: Tensor, shift: int) -> Tensor:
    """With zeros before it."""
    return torch.nn.functional.pad(maps, (shift, 0, shift, 0))


class _Reduced(NamedTuple):
    """Fewer channels (M, H, W), and how to get the others back, as in `lowrank`."""

    p: Tensor
    mean: Tensor | None = None
    basis: Tensor | None = None

    def expand(self, x: Tensor) -> Tensor:
        """All channels of a solution."""
        if self.mean is None or self.basis is None:
            return x
        full = (self.basis.T @ x.flatten(1)).view(-1, *x.shape[1:])
        return full + self.mean[:, None, None]


def _reduce(p: Tensor, c: Tensor | None, tolerance: float | None) -> _Reduced:
    """As `lowrank.reduce`, with variances over pixels instead of vertices."""
    if tolerance is None or not lowrank.reduction_pays(len(p), 1):
        return _Reduced(p)
    values = p.flatten(1).double()
    weight = torch.ones_like(values[0]) if c is None else c.flatten().double()
    total = weight.sum()
    mean = (values @ weight) / total
    centred = values - mean[:, None]
    covariance = (centred * weight) @ centred.T / total
    basis = lowrank.leading_directions(covariance.cpu().numpy(), tolerance)
    if basis is None:
        return _Reduced(p)
    rows = torch.from_numpy(basis).to(p.device)
    few = (rows @ centred).float().view(-1, *p.shape[1:])
    return _Reduced(few, mean.float(), rows.float())
