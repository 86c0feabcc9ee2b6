"""Noisy maps of photographs, dense and sparse, and what is measured on them."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

import bilateral
import bilateral.torch
from benchmarks.machine import Others
from benchmarks.photos import Photo, centre
from benchmarks.timing import Timing, clock
from bilateral.torch import autograd as derivatives
from bilateral.torch.options import config

# name, share of known pixels, channels, smoothness
SETTINGS = (
    ("dense", 1.0, 1, 4.0),
    ("dense", 1.0, 3, 4.0),
    ("sparse", 0.02, 1, 4.0),
    ("sparse", 0.02, 1, 128.0),
)
NOISE = 0.1
OPTIONS = config(3, 8, 8, 8, "paper", 1e-3, None, "multigrid", None)


class Case(NamedTuple):
    """Tensors to solve with, all (1, C, H, W), and the true map."""

    reference: Tensor
    target: Tensor
    confidence: Tensor
    smoothness: Tensor
    truth: Tensor


def case(photo: Photo, side: int, known: float, channels: int, smoothness: float) -> Case:
    """A photograph's middle with its own grey values as the map, spoilt by noise."""
    generator = torch.Generator().manual_seed(0)
    pixels = torch.from_numpy(centre(photo.pixels, side, side)).permute(2, 0, 1)[None]
    truth = (pixels.float().mean(1, keepdim=True) / 255).expand(-1, channels, -1, -1)
    noise = torch.randn(truth.shape, generator=generator)
    confidence = torch.rand(1, 1, *truth.shape[2:], generator=generator) + 0.1
    confidence[torch.rand(confidence.shape, generator=generator) > known] = 0
    target = (truth + NOISE * noise).contiguous(memory_format=torch.channels_last)
    return Case(pixels, target, confidence, torch.tensor(smoothness), truth)


WANTED = ("t", "tc", "tcs")
"""Gradients of the target, and confidence, and smoothness."""


def cost(given: Case, repeats: int) -> dict[str, Any]:
    """CPU time of the backward in turns with the forward, on a grid that is there.

    On one thread, so that work beside it matters least: what the two have in common is the same
    code, and threads serve it alike.
    """
    threads = bilateral.get_num_threads(), torch.get_num_threads()
    bilateral.set_num_threads(1)
    torch.set_num_threads(1)
    try:
        return _cost(given, repeats)
    finally:
        bilateral.set_num_threads(threads[0])
        torch.set_num_threads(threads[1])


def _cost(given: Case, repeats: int) -> dict[str, Any]:
    maps = given.target, given.confidence, given.smoothness
    _, grid = derivatives.solve(given.reference, *maps, None, OPTIONS)
    seconds = {name: list[float]() for wanted in WANTED for name in (wanted, f"forward_{wanted}")}
    others = Others()
    for repeat in range(repeats + 1):
        for wanted in WANTED:
            inputs = [value.detach().requires_grad_() for value in maps[: len(wanted)]]
            tensors = *inputs, *maps[len(wanted) :]
            began = time.process_time()
            y, _ = derivatives.solve(given.reference, *tensors, grid, OPTIONS)
            forward = time.process_time() - began
            h = (y.detach() - given.truth) / y.numel()
            began = time.process_time()
            torch.autograd.grad(y, inputs, h)
            backward = time.process_time() - began
            if repeat > 0:  # after a warm-up
                seconds[f"forward_{wanted}"].append(forward)
                seconds[wanted].append(backward)
    times = {name: Timing.of(values) for name, values in seconds.items()}
    # A forward whose confidence needs a gradient solves closer: each has its own.
    ratios = {f"ratio_{of}": times[of].median / times[f"forward_{of}"].median for of in WANTED}
    return {**times, **ratios, "other_work": others.cores()}


def error(given: Case) -> dict[str, float]:
    """Relative error of the gradients, in per cent of their norm, for a given loss gradient."""

    def solve(dtype: Any, tolerance: float) -> tuple[Tensor, list[Tensor]]:
        maps = given.target, given.confidence, given.smoothness
        inputs = [value.to(dtype).clone().requires_grad_() for value in maps]
        t, c, s = inputs
        options: dict[str, Any] = {"tolerance": tolerance, "max_iterations": 300}
        return bilateral.torch.solve(given.reference, t, c, smoothness=s, **options), inputs

    exact, inputs = solve(torch.float64, 1e-9)
    h = (exact.detach() - given.truth) / exact.numel()
    expected = torch.autograd.grad(exact, inputs, h)
    usual, inputs = solve(torch.float32, 1e-3)
    found = torch.autograd.grad(usual, inputs, h.float())
    names = "target", "confidence", "smoothness"
    return {
        name: 100 * float((one - other).norm() / other.norm())
        for name, one, other in zip(names, found, expected, strict=True)
    }


def overhead(repeats: int) -> dict[str, Any]:
    """Time a call on a small image for arrays and for tensors, in turns."""
    rng = np.random.default_rng(0)
    pixels, values = rng.random((32, 48, 3), np.float32), rng.random((32, 48), np.float32)
    photo, target = torch.from_numpy(pixels).permute(2, 0, 1), torch.from_numpy(values)[None]
    learned = target.clone().requires_grad_()
    calls: dict[str, Callable[[], Any]] = {
        "arrays": lambda: bilateral.solve(pixels, values),
        "tensors": lambda: bilateral.torch.solve(photo, target),
        "tensors_with_grad": lambda: bilateral.torch.solve(photo, learned),
    }
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            seconds[name].append(clock(call)[0])
    return {name: min(values) for name, values in seconds.items()}
