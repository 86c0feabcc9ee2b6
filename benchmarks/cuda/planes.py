"""Compare planes on the device with planes on the CPU, and time them."""

from typing import Any

import torch
from torch import Tensor

from benchmarks.common.timing import Timing
from benchmarks.common.timing import repeated as timed
from benchmarks.cuda.calls import Size, Task
from benchmarks.cuda.clock import repeated, seconds
from benchmarks.cuda.events import WARM_UPS

CASES: dict[str, tuple[float | None, float]] = {"dense": (None, 4.0), "1 % known": (0.01, 0.03)}
"""Fraction of known pixels (None: confidences from 0 to 1 everywhere), and smoothness."""
SIDE = 512
TOLERANCES = (1e-3, 1e-5)
GRADIENT_TOLERANCE = 1e-4
CPU_REPEATS = 2


def planes(task: Task, size: Size, repeats: int) -> dict[str, Any]:
    """Time whole calls, and compare solutions and gradients of a smaller crop with the CPU's."""
    return {name: _case(task, size, repeats, *case) for name, case in CASES.items()}


def _case(
    task: Task, size: Size, repeats: int, known: float | None, smoothness: float
) -> dict[str, Any]:
    options: dict[str, Any] = {"model": "planar", "smoothness": smoothness}
    crop, small = task.middle(size).trusted(known), task.middle((SIDE, SIDE)).trusted(known)
    first = seconds(crop.solve, **options)[0]
    there, small_there = (Task(*(map_.cpu() for map_ in part)) for part in (crop, small))
    results = [small.solve(**options) for _ in range(3)]
    return {
        "size": crop.size,
        "first_seconds": first,
        "seconds": repeated(repeats, crop.solve, **options),
        **_training(crop, repeats, options),
        "cpu_seconds": timed(there.solve, CPU_REPEATS, **options),
        "differences": [_difference(small, small_there, t, options) for t in TOLERANCES],
        "gradients": _gradient_differences(small, small_there, options),
        "identical": all(torch.equal(again, results[0]) for again in results),
    }


def _training(crop: Task, repeats: int, options: dict[str, Any]) -> dict[str, Timing]:
    crop = crop._replace(target=crop.target.clone().requires_grad_())
    h = (crop.solve(**options).detach() - crop.clean) / crop.target.numel()
    rounds = []
    for _ in range(WARM_UPS + repeats):
        taken, y = seconds(crop.solve, **options)
        rounds.append((taken, seconds(torch.autograd.grad, y, crop.target, h)[0]))
    forward, backward = map(Timing.of, zip(*rounds[WARM_UPS:], strict=True))
    return {"forward": forward, "backward": backward}


def _difference(here: Task, there: Task, tolerance: float, options: dict[str, Any]) -> float:
    """Return the RMS difference of two solutions, relative to the range of the known values."""
    mine, theirs = (task.solve(tolerance=tolerance, **options).cpu() for task in (here, there))
    known = there.target[there.confidence > 0]
    scale = float(known.max() - known.min())
    return float((mine - theirs).double().square().mean().sqrt()) / scale


def _gradient_differences(here: Task, there: Task, options: dict[str, Any]) -> list[float]:
    """Return the relative differences of the gradients of target, confidence and smoothness."""
    draw = torch.rand(there.target.shape, generator=torch.Generator().manual_seed(1)) - 0.3

    def gradients(task: Task) -> list[Tensor]:
        given = [
            task.target.clone().requires_grad_(),
            task.confidence.clone().requires_grad_(),
            torch.tensor(options["smoothness"], requires_grad=True),
        ]
        task = task._replace(target=given[0], confidence=given[1])
        more = {**options, "smoothness": given[2], "tolerance": GRADIENT_TOLERANCE}
        y = task.solve(**more, clamp=False)
        return [g.cpu().double() for g in torch.autograd.grad(y, given, draw.to(y.device))]

    pairs = zip(gradients(here), gradients(there), strict=True)
    return [float((mine - theirs).norm() / theirs.norm()) for mine, theirs in pairs]
