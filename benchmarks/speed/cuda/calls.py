"""Whole calls of `bilateral.torch` by the host's clock, its own part included."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

import bilateral.torch
from benchmarks.photos import Photo, mirrored
from benchmarks.speed.cases import SMOOTHNESS, STEPS, Problem, problem
from benchmarks.speed.cuda.events import WARM_UPS
from benchmarks.timing import Timing, clock
from benchmarks.timing import repeated as timed

KNOWN = 0.02
BATCH = 16
MANY = 64
LARGE = 8192
AGREEMENT_SIDE, AGREEMENT_TOLERANCE = 512, 1e-6
AGREEMENT_CELLS = (8, 24, 40)
"""In pixels: colours of large cells are found otherwise."""
CLASSES = 21
IDENTICAL_REPEATS = 5
QUICK_REPEATS = 5
"""Of what takes long, on the CPU."""
_TOO_MANY = 64
"""Images for which there is to be no memory."""
_SLACK = 256 * 2**20
"""Bytes that may still be allocated then."""

Size = tuple[int, int]


class Task(NamedTuple):
    """What to solve, on the device: (B, C, H, W)."""

    reference: Tensor
    target: Tensor
    confidence: Tensor
    clean: Tensor

    @classmethod
    def of(cls, given: Problem) -> "Task":
        maps = (given.target, given.confidence, given.clean)
        reference = torch.tensor(given.reference).permute(2, 0, 1)[None].contiguous()
        return cls(*(map_.cuda() for map_ in (reference, *map(_map, maps))))

    def trusted(self, known: float | None = None) -> "Task":
        """With confidences drawn from 0 to 1; or that are 1 at a share of the pixels, else 0."""
        draw = torch.rand(self.confidence.shape, generator=torch.Generator().manual_seed(0))
        confidence = draw if known is None else (draw < known).float()
        return self._replace(confidence=confidence.cuda())

    def cut(self, top: int, left: int, size: Size) -> "Task":
        height, width = size
        rows, columns = slice(top, top + height), slice(left, left + width)
        return Task(*(map_[..., rows, columns].contiguous() for map_ in self))

    def middle(self, size: Size) -> "Task":
        """At most of that size."""
        height, width = self.target.shape[2:]
        least = min(size[0], height), min(size[1], width)
        return self.cut((height - least[0]) // 2, (width - least[1]) // 2, least)

    def solve(self, **options: Any) -> Tensor:
        return bilateral.torch.solve(self.reference, self.target, self.confidence, **options)

    @property
    def size(self) -> Size:
        height, width = self.target.shape[2:]
        return height, width


def whole(task: Task, repeats: int) -> dict[str, Any]:
    """The paper's number of steps, whatever the error."""
    options = {"smoothness": SMOOTHNESS, "max_iterations": STEPS, "preconditioner": "pyramid"}
    return {"size": task.size, "seconds": repeated(repeats, task.solve, tolerance=0.0, **options)}


def middle(task: Task, size: Size, repeats: int) -> dict[str, Any]:
    """The default options, with data everywhere and with few."""
    crop = task.middle(size)
    return {
        "size": crop.size,
        "everywhere": repeated(repeats, crop.trusted().solve),
        "few": repeated(repeats, crop.trusted(KNOWN).solve),
    }


def batch(task: Task, size: Size, repeats: int) -> dict[str, Any]:
    """Crops from all over the photograph, at once."""
    crops = _crops(task.trusted(), size)
    timing = repeated(repeats, crops.solve)
    return {"size": crops.size, "seconds": timing, "images_per_second": BATCH / timing.median}


def training(task: Task, size: Size, repeats: int) -> dict[str, Any]:
    """A forward whose target needs a gradient, and its backward."""
    crop = task.middle(size).trusted()
    crop = crop._replace(target=crop.target.clone().requires_grad_())
    h = (crop.solve().detach() - crop.clean) / crop.target.numel()
    forward, backward = [], []
    for _ in range(WARM_UPS + repeats):
        taken, y = seconds(crop.solve)
        forward.append(taken)
        backward.append(seconds(torch.autograd.grad, y, crop.target, h)[0])
    times = [Timing.of(values[WARM_UPS:]) for values in (forward, backward)]
    return {
        "size": crop.size,
        "forward": times[0],
        "backward": times[1],
        "ratio": times[1].median / times[0].median,
    }


def large(photo: Photo, side: int = LARGE) -> dict[str, Any]:
    """The photograph repeated, mirrored, to a square: a first call, its memory, and later ones."""
    task = Task.of(problem(Photo(photo.name, mirrored(photo.pixels, side, side))))
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    taken, y = seconds(task.solve)
    peak = torch.cuda.max_memory_allocated()
    return {
        "size": task.size,
        "first_seconds": taken,
        "seconds": min(seconds(task.solve)[0] for _ in range(3)),
        "bytes_beyond_inputs": peak - before,
        "finite": bool(torch.isfinite(y).all()),
    }


def many_sizes(task: Task, largest: Size) -> dict[str, Any]:
    """As many sizes as images, in a loop: at first, when kernels are compiled, and once more."""
    crops = [task.middle((largest[0] - 3 * i, largest[1] - 5 * i)).trusted() for i in range(MANY)]

    def loop() -> None:
        for crop in crops:
            crop.solve()

    first, again = (seconds(loop)[0] for _ in range(2))
    return {
        "images": MANY,
        "sizes": len({crop.size for crop in crops}),
        "largest": crops[0].size,
        "smallest": crops[-1].size,
        "first_seconds": first,
        "seconds": again,
        "bytes_reserved": torch.cuda.memory_reserved(),
    }


def segmentation(task: Task, size: Size, repeats: int) -> dict[str, Any]:
    """What a network with cells of 16 pixels might make of three levels of brightness, refined."""
    image = task.middle(size).reference
    grey = image.float().mean(1)
    levels = grey.quantile(torch.tensor([1 / 3, 2 / 3], device=grey.device))
    labels = torch.bucketize(grey, levels)
    one_hot = torch.nn.functional.one_hot(labels, CLASSES).movedim(-1, 1).float()
    scores = 8 * torch.nn.functional.avg_pool2d(one_hot, 16, ceil_mode=True)
    refine = bilateral.torch.refine_segmentation
    call = partial(refine, scores, image, labels=True)
    there = partial(refine, scores.cpu(), image.cpu(), labels=True)
    return {
        "size": (image.shape[2], image.shape[3]),
        "classes": CLASSES,
        "seconds": repeated(repeats, call),
        "cpu_seconds": timed(there, QUICK_REPEATS),
        "labels_differ": int((call().cpu() != there()).sum()),
    }


def agreement(task: Task) -> dict[str, Any]:
    """How far the CPU's solution is, relative to its norm, and whether repeats are the same."""
    crop = task.middle((AGREEMENT_SIDE, AGREEMENT_SIDE)).trusted()
    there = Task(*(map_.cpu() for map_ in crop))
    differences, identical = [], []
    for cell in AGREEMENT_CELLS:
        options = {"sigma_xy": cell, "tolerance": AGREEMENT_TOLERANCE}
        expected, found = there.solve(**options).double(), crop.solve(**options)
        differences.append(float((found.cpu().double() - expected).norm() / expected.norm()))
        repeats = (crop.solve(**options) for _ in range(IDENTICAL_REPEATS))
        identical.append(sum(torch.equal(again, found) for again in repeats))
    return {
        "size": crop.size,
        "cells": AGREEMENT_CELLS,
        "differences": differences,
        "difference": max(differences),
        "repeats": IDENTICAL_REPEATS,
        "identical": min(identical),
    }


def out_of_memory(task: Task, size: Size) -> dict[str, Any]:
    """A batch for which there is no memory, twice, and then a small call within the same limit."""
    from bilateral.torch.cuda import (
        recording_cache as replay,  # with Triton, which not all machines have
    )

    crop = task.middle(size).trusted()
    crops = Task(*(torch.cat([map_] * _TOO_MANY) for map_ in crop))
    small = task.middle((256, 256)).trusted()
    replay.forget()
    limit = torch.cuda.memory_reserved() + _SLACK
    torch.cuda.set_per_process_memory_fraction(limit / torch.cuda.mem_get_info()[1])
    try:
        raised = [_raised(crops.solve) for _ in range(2)]
        works = bool(torch.isfinite(small.solve()).all())
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    return {
        "size": crop.size,
        "images": _TOO_MANY,
        "raised": raised,
        "as_expected": all(name == "OutOfMemoryError" for name in raised),
        "next_works": works,
    }


def _raised(call: Callable[[], Any]) -> str | None:
    """The name of the memory's error, or None where there was none. Others are raised."""
    try:
        call()
    except torch.cuda.OutOfMemoryError as error:
        return type(error).__name__
    return None


def _crops(task: Task, size: Size) -> Task:
    """Crops in rows and columns, which overlap where the photograph is small."""
    height, width = task.size
    size = min(size[0], height), min(size[1], width)
    side = round(BATCH**0.5)
    tops = np.linspace(0, height - size[0], side).astype(int).tolist()
    lefts = np.linspace(0, width - size[1], side).astype(int).tolist()
    crops = [task.cut(top, left, size) for top in tops for left in lefts]
    return Task(*(torch.cat(maps) for maps in zip(*crops, strict=True)))


def repeated(repeats: int, call: Callable[..., Any], **options: Any) -> Timing:
    """After the warm-ups, in which recordings are made."""
    taken = [seconds(call, **options)[0] for _ in range(WARM_UPS + repeats)]
    return Timing.of(taken[WARM_UPS:])


def seconds(call: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[float, Any]:
    """Until the device has finished."""

    def finished() -> Any:
        result = call(*arguments, **options)
        torch.cuda.synchronize()
        return result

    torch.cuda.synchronize()
    return clock(finished)


def _map(values: Any) -> Tensor:
    return torch.from_numpy(values)[None, None]
