"""Measure the PyTorch layer on noisy maps of photographs: times, gradients, overhead, memory."""

import time
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

import bilateral
import bilateral.torch
from benchmarks.common import memory
from benchmarks.common.machine import Others
from benchmarks.common.photos import Photo, centre
from benchmarks.common.timing import Timing, stopwatch
from bilateral.torch import autograd as derivatives
from bilateral.torch.options import LayerOptions

# name, fraction of known pixels, channels, smoothness
SETTINGS = (
    ("dense", 1.0, 1, 4.0),
    ("dense", 1.0, 3, 4.0),
    ("sparse", 0.02, 1, 4.0),
    ("sparse", 0.02, 1, 128.0),
)
NOISE = 0.1
SIGMAS = dict.fromkeys(("sigma_xy", "sigma_luma", "sigma_chroma"), 8)
OPTIONS = LayerOptions.checked({**SIGMAS, "blur": "paper", "reference_max": None}, 3)


class Case(NamedTuple):
    """The tensors of a solve, all (1, C, H, W), and the true map."""

    reference: Tensor
    target: Tensor
    confidence: Tensor
    smoothness: Tensor
    truth: Tensor


def case(photo: Photo, side: int, known: float, channels: int, smoothness: float) -> Case:
    """Take a photograph's middle with its own grey values plus noise as the target."""
    generator = torch.Generator().manual_seed(0)
    pixels = torch.from_numpy(centre(photo.pixels, side, side)).permute(2, 0, 1)[None]
    truth = (pixels.float().mean(1, keepdim=True) / 255).expand(-1, channels, -1, -1)
    noise = torch.randn(truth.shape, generator=generator)
    confidence = torch.rand(1, 1, *truth.shape[2:], generator=generator) + 0.1
    confidence[torch.rand(confidence.shape, generator=generator) > known] = 0
    target = (truth + NOISE * noise).contiguous(memory_format=torch.channels_last)
    return Case(pixels, target, confidence, torch.tensor(smoothness), truth)


GRADIENTS = ("t", "tc", "tcs")
"""Gradients of the target, of target and confidence, and of both and smoothness."""


def cost(case: Case, repeats: int) -> dict[str, Any]:
    """Time the backward in turns with the forward, by CPU time, on an existing grid.

    One thread, so that other work on the machine matters least: forward and backward share their
    code, and threads speed up both alike.
    """
    threads = bilateral.get_num_threads(), torch.get_num_threads()
    bilateral.set_num_threads(1)
    torch.set_num_threads(1)
    try:
        return _cost(case, repeats)
    finally:
        bilateral.set_num_threads(threads[0])
        torch.set_num_threads(threads[1])


def _cost(case: Case, repeats: int) -> dict[str, Any]:
    maps = case.target, case.confidence, case.smoothness
    _, grid = derivatives.solve(case.reference, *maps, None, OPTIONS)
    seconds = {name: list[float]() for of in GRADIENTS for name in (of, f"forward_{of}")}
    others = Others()
    for _ in range(repeats + 1):  # one warm-up
        for of in GRADIENTS:
            inputs = [value.detach().requires_grad_() for value in maps[: len(of)]]
            tensors = *inputs, *maps[len(of) :]
            began = time.process_time()
            y, _ = derivatives.solve(case.reference, *tensors, grid, OPTIONS)
            seconds[f"forward_{of}"].append(time.process_time() - began)
            h = (y.detach() - case.truth) / y.numel()
            began = time.process_time()
            torch.autograd.grad(y, inputs, h)
            seconds[of].append(time.process_time() - began)
    times = {name: Timing.of(values[1:]) for name, values in seconds.items()}
    # A forward whose confidence needs a gradient solves more accurately: each ratio has its own.
    ratios = {f"ratio_{of}": times[of].median / times[f"forward_{of}"].median for of in GRADIENTS}
    return {**times, **ratios, "other_work": others.cores()}


def error(case: Case) -> dict[str, float]:
    """Errors of the gradients for one loss gradient, in percent of their norms."""

    def solve(dtype: Any, tolerance: float) -> tuple[Tensor, list[Tensor]]:
        maps = case.target, case.confidence, case.smoothness
        inputs = [value.to(dtype).clone().requires_grad_() for value in maps]
        t, c, s = inputs
        options: dict[str, Any] = {"tolerance": tolerance, "max_iterations": 300}
        return bilateral.torch.solve(case.reference, t, c, smoothness=s, **options), inputs

    exact, inputs = solve(torch.float64, 1e-9)
    h = (exact.detach() - case.truth) / exact.numel()
    expected = torch.autograd.grad(exact, inputs, h)
    usual, inputs = solve(torch.float32, 1e-3)
    gradients = torch.autograd.grad(usual, inputs, h.float())
    names = "target", "confidence", "smoothness"
    return {
        name: 100 * float((one - other).norm() / other.norm())
        for name, one, other in zip(names, gradients, expected, strict=True)
    }


def overhead(repeats: int) -> dict[str, float]:
    """Time a call on a small image for arrays and for tensors, in turns: the least seconds."""
    rng = np.random.default_rng(0)
    pixels, values = rng.random((32, 48, 3), np.float32), rng.random((32, 48), np.float32)
    photo, target = torch.from_numpy(pixels).permute(2, 0, 1), torch.from_numpy(values)[None]
    learned = target.clone().requires_grad_()
    calls = {
        "arrays": stopwatch(bilateral.solve, pixels, values),
        "tensors": stopwatch(bilateral.torch.solve, photo, target),
        "tensors_with_grad": stopwatch(bilateral.torch.solve, photo, learned),
    }
    rounds = [{name: call() for name, call in calls.items()} for _ in range(repeats)]
    return {name: min(seconds[name] for seconds in rounds) for name in calls}


def peak_memory(side: int, steps: int) -> dict[str, Any]:
    """Bytes that a forward and a backward take at their peak, in a fresh process."""
    return {"steps": steps, "bytes": memory.in_fresh_process(_train, side, steps)}


def _train(side: int, steps: int) -> int:
    generator = torch.Generator().manual_seed(0)
    coarse = torch.rand(1, 3, side // 16, side // 16, generator=generator)
    photo = torch.nn.functional.interpolate(coarse, (side, side), mode="bilinear")
    target, confidence = (torch.rand(1, 1, side, side, generator=generator) for _ in range(2))

    def train(size: int, steps: int) -> None:
        t, c = (x[..., :size, :size].clone().requires_grad_() for x in (target, confidence))
        options: dict[str, Any] = {"tolerance": 0.0, "max_iterations": steps}
        y = bilateral.torch.solve(photo[..., :size, :size], t, c, **options)
        y.square().sum().backward()

    train(32, 2)
    return memory.growth(lambda: train(side, steps))[0]
