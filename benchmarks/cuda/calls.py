"""Time whole calls of `bilateral.torch` by the host's clock, the host's own work included."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

import bilateral.torch
from benchmarks.common.photos import Photo
from benchmarks.common.timing import Timing
from benchmarks.common.timing import repeated as timed
from benchmarks.cuda.clock import repeated, seconds
from benchmarks.cuda.drawn import mirrored
from benchmarks.cuda.events import WARM_UPS
from benchmarks.speed.cases import SMOOTHNESS, STEPS, Problem, problem

KNOWN, BATCH, MANY, LARGE = 0.02, 16, 64, 8192
AGREEMENT_SIDE, AGREEMENT_TOLERANCE = 512, 1e-6
AGREEMENT_CELLS = (8, 24, 40)  # pixels: large cells take another kernel to find their colours
CLASSES, IDENTICAL_REPEATS = 21, 5
QUICK_REPEATS = 5  # of long calls on the CPU
_TOO_MANY, _SLACK = 64, 256 * 2**20  # images that must not fit, bytes that may be allocated

Size = tuple[int, int]


class Task(NamedTuple):
    """The tensors of a problem on the device, all (B, C, H, W)."""

    reference: Tensor
    target: Tensor
    confidence: Tensor
    clean: Tensor

    @classmethod
    def of(cls, problem: Problem) -> "Task":
        maps = (problem.target, problem.confidence, problem.clean)
        reference = torch.tensor(problem.reference).permute(2, 0, 1)[None].contiguous()
        tensors = reference, *(torch.from_numpy(values)[None, None] for values in maps)
        return cls(*(tensor.cuda() for tensor in tensors))

    def trusted(self, known: float | None = None) -> "Task":
        """Draw confidences from 0 to 1; or set them to 1 at a fraction of the pixels, else to 0."""
        draw = torch.rand(self.confidence.shape, generator=torch.Generator().manual_seed(0))
        confidence = draw if known is None else (draw < known).float()
        return self._replace(confidence=confidence.cuda())

    def cut(self, top: int, left: int, size: Size) -> "Task":
        part = np.s_[..., top : top + size[0], left : left + size[1]]
        return Task(*(map_[part].contiguous() for map_ in self))

    def middle(self, size: Size) -> "Task":
        least = min(size[0], self.size[0]), min(size[1], self.size[1])
        return self.cut((self.size[0] - least[0]) // 2, (self.size[1] - least[1]) // 2, least)

    def solve(self, **options: Any) -> Tensor:
        return bilateral.torch.solve(self.reference, self.target, self.confidence, **options)

    @property
    def size(self) -> Size:
        return tuple(self.target.shape[2:])


def whole(task: Task, repeats: int) -> dict[str, Any]:
    options = {"smoothness": SMOOTHNESS, "max_iterations": STEPS, "preconditioner": "pyramid"}
    return {"size": task.size, "seconds": repeated(repeats, task.solve, tolerance=0.0, **options)}


def middle(task: Task, size: Size, repeats: int) -> dict[str, Any]:
    """Time the default options, with data everywhere and at a few pixels."""
    crop = task.middle(size)
    return {
        **{"size": crop.size, "everywhere": repeated(repeats, crop.trusted().solve)},
        "few": repeated(repeats, crop.trusted(KNOWN).solve),
    }


def batch(task: Task, size: Size, repeats: int) -> dict[str, Any]:
    task, (height, width), side = task.trusted(), task.size, round(BATCH**0.5)
    size = min(size[0], height), min(size[1], width)
    # in rows and columns, which overlap if the photograph is small
    steps = [np.linspace(0, task.size[i] - size[i], side).astype(int).tolist() for i in (0, 1)]
    cuts = [task.cut(top, left, size) for top in steps[0] for left in steps[1]]
    crops = Task(*(torch.cat(maps) for maps in zip(*cuts, strict=True)))
    timing = repeated(repeats, crops.solve)
    return {"size": crops.size, "seconds": timing, "images_per_second": BATCH / timing.median}


def training(task: Task, size: Size, repeats: int) -> dict[str, Any]:
    crop = task.middle(size).trusted()
    crop = crop._replace(target=crop.target.clone().requires_grad_())
    h = (crop.solve().detach() - crop.clean) / crop.target.numel()
    rounds = []
    for _ in range(WARM_UPS + repeats):
        taken, y = seconds(crop.solve)
        rounds.append((taken, seconds(torch.autograd.grad, y, crop.target, h)[0]))
    forward, backward = map(Timing.of, zip(*rounds[WARM_UPS:], strict=True))
    times = {"forward": forward, "backward": backward}
    return {"size": crop.size, **times, "ratio": backward.median / forward.median}


def large(photo: Photo, side: int = LARGE) -> dict[str, Any]:
    """Solve a large square of mirror images: the first call, its memory, and later calls."""
    task = Task.of(problem(Photo(photo.name, mirrored(photo.pixels, side, side))))
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    taken, y = seconds(task.solve)
    peak = torch.cuda.max_memory_allocated()
    later = min(seconds(task.solve)[0] for _ in range(3))
    row = {"size": task.size, "first_seconds": taken, "seconds": later}
    return row | {"bytes_beyond_inputs": peak - before, "finite": bool(torch.isfinite(y).all())}


def many_sizes(task: Task, largest: Size) -> dict[str, Any]:
    """Solve images of many sizes in a loop: first with compilations, then once more."""
    crops = [task.middle((largest[0] - 3 * i, largest[1] - 5 * i)).trusted() for i in range(MANY)]

    def loop() -> None:
        for crop in crops:
            crop.solve()

    first, again = (seconds(loop)[0] for _ in range(2))
    return {
        **{"images": MANY, "sizes": len({crop.size for crop in crops})},
        **{"largest": crops[0].size, "smallest": crops[-1].size},
        **{"first_seconds": first, "seconds": again},
        "bytes_reserved": torch.cuda.memory_reserved(),
    }


def segmentation(task: Task, size: Size, repeats: int) -> dict[str, Any]:
    """Refine scores like those of a network with cells of 16 pixels, of three brightness levels."""
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
        **{"size": (image.shape[2], image.shape[3]), "classes": CLASSES},
        "seconds": repeated(repeats, call),
        "cpu_seconds": timed(there, QUICK_REPEATS),
        "labels_differ": int((call().cpu() != there()).sum()),
    }


def agreement(task: Task) -> dict[str, Any]:
    """Compare with the CPU's solution, relative to its norm, and repeats with each other."""
    crop = task.middle((AGREEMENT_SIDE, AGREEMENT_SIDE)).trusted()
    there = Task(*(map_.cpu() for map_ in crop))
    differences, identical = [], []
    for cell in AGREEMENT_CELLS:
        options = {"sigma_xy": cell, "tolerance": AGREEMENT_TOLERANCE}
        expected, result = there.solve(**options).double(), crop.solve(**options)
        differences.append(float((result.cpu().double() - expected).norm() / expected.norm()))
        repeats = (crop.solve(**options) for _ in range(IDENTICAL_REPEATS))
        identical.append(sum(torch.equal(again, result) for again in repeats))
    row = {"size": crop.size, "cells": AGREEMENT_CELLS, "differences": differences}
    row |= {"repeats": IDENTICAL_REPEATS, "identical": min(identical)}
    return row | {"difference": max(differences)}


def out_of_memory(task: Task, size: Size) -> dict[str, Any]:
    """Solve a batch that does not fit into memory, twice; then a small call in the same limit."""
    from bilateral.torch.cuda import device_memory  # needs Triton, which not all machines have

    crop = task.middle(size).trusted()
    crops = Task(*(torch.cat([map_] * _TOO_MANY) for map_ in crop))
    small = task.middle((256, 256)).trusted()
    device_memory.free_memory(torch.device("cuda", torch.cuda.current_device()))
    limit = torch.cuda.memory_reserved() + _SLACK
    torch.cuda.set_per_process_memory_fraction(limit / torch.cuda.mem_get_info()[1])
    try:
        raised = [_raised(crops.solve) for _ in range(2)]
        works = bool(torch.isfinite(small.solve()).all())
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    return {
        "size": crop.size,
        **{"images": _TOO_MANY, "raised": raised, "next_works": works},
        "as_expected": all(name == "OutOfMemoryError" for name in raised),
    }


def _raised(call: Callable[[], Any]) -> str | None:
    try:
        call()
    except torch.cuda.OutOfMemoryError as error:
        return type(error).__name__
    return None
