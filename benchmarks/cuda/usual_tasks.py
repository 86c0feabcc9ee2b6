"""The tasks that `bilateral.torch` compiles its kernels for ahead of time, after usual calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

import bilateral.torch
from benchmarks.cuda import figures, tasks
from benchmarks.cuda.drawn import drawn, mirrored
from benchmarks.cuda.usual_calls import UsualCall

Call = tuple[str, Callable[..., Any], Callable[[], list[Tensor]]]
_SIZES = (1080, 1920), (480, 640), (200, 300)
"""Kernels whose programs add up each other's sums depend on the size of an image."""


def usual_tasks() -> Iterator[Call]:
    """Yield name, function and a function that makes its tensors on the device."""
    for channels, gray in ((1, False), (3, False), (1, True)):
        for known in (None, 0.02):
            call = UsualCall(
                f"planes, {channels} channels, known {known}, gray {gray}",
                size=(400, 600),
                known=known,
                gray=gray,
                channels=channels,
                gradient=channels == 1 and not gray,
                options={"model": "planar"},
            )
            yield call.name, call.run, partial(_of_call, call)
    for size in _SIZES:
        pixels = mirrored(drawn(), *size)
        photo = tasks.as_tensor(pixels)
        for name, (function, tensors) in tasks.cases(photo, photo).items():
            yield f"{name}, {size}", function, partial(_on_device, tensors)
        for dtype in (torch.uint8, torch.float32):
            depth, image = figures.depth_scene(pixels)
            image = image if dtype == torch.uint8 else image / 255
            refine = bilateral.torch.refine_depth
            yield f"refine_depth, {size}, {dtype}", refine, partial(_on_device, (depth, image))
        scores, image = figures.segmentation_scene(pixels)
        for labels in (True, False):
            refine = partial(bilateral.torch.refine_segmentation, labels=labels)
            name = f"refine_segmentation, {size}, labels {labels}"
            yield name, refine, partial(_on_device, (scores, image))


def _of_call(call: UsualCall) -> list[Any]:
    return list(call.tensors("cuda"))


def _on_device(tensors: tuple[Tensor, ...]) -> list[Tensor]:
    return [tensor.cuda() for tensor in tensors]
