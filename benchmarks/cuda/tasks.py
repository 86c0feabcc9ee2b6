"""Check filters and tasks of tensors on a CUDA device against the CPU, and time them.

Alone: ``python -m benchmarks.cuda.tasks`` takes a drawn scene, and prints one line per task.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import bilateral.torch
from benchmarks.common.timing import repeated as timed
from benchmarks.cuda.clock import repeated
from benchmarks.cuda.drawn import drawn, mirrored

FULL_HD, MEGAPIXEL = (1080, 1920), (1000, 1000)
FACTOR, CPU_REPEATS = 8, 3
MOST_ERROR = 1e-3
"""RMS difference from the CPU, relative to the range of its result."""

Array = NDArray[Any]
Case = tuple[Callable[..., Tensor], tuple[Any, ...]]


def tasks(pixels: Array, repeats: int, size: tuple[int, int] = FULL_HD) -> dict[str, Any]:
    """Measure all tasks on a photograph (H, W, 3) of uint8, extended to these sizes."""
    photo = as_tensor(mirrored(pixels, *size))
    return {
        name: _measure(function, tensors, repeats)
        for name, (function, tensors) in cases(
            photo, as_tensor(mirrored(pixels, *MEGAPIXEL))
        ).items()
    }


def cases(
    photo: Tensor, square: Tensor
) -> dict[str, tuple[Callable[..., Tensor], tuple[Any, ...]]]:
    """Return each task with its tensors, on the CPU."""
    rng = np.random.default_rng(0)
    depth = _depth(photo)
    noisy = depth + 0.02 * torch.from_numpy(rng.normal(size=depth.shape)).float()
    height, width = (n // FACTOR * FACTOR for n in depth.shape[1:])
    low = torch.nn.functional.avg_pool2d(depth[:, :height, :width], FACTOR)
    low = low + 0.01 * torch.from_numpy(rng.normal(size=low.shape)).float()
    gray = square.float().mean(0, keepdim=True).round().to(torch.uint8)
    call = bilateral.torch
    return {
        "median": (call.median, (noisy,)),
        "polish": (partial(call.polish, scale=0.1), (noisy, photo)),
        "superres_depth": (call.superres_depth, (low, photo[:, :height, :width].contiguous())),
        "superres_depth (fast)": (
            partial(call.superres_depth, preset="fast"),
            (low, photo[:, :height, :width].contiguous()),
        ),
        "colorize (1 MP)": (call.colorize, (gray, _marked(gray, square))),
        "colorize (1 MP, paper)": (
            partial(call.colorize, preset="paper"),
            (gray, _marked(gray, square)),
        ),
        "defocus": (partial(call.defocus, focus=1.5, aperture=40.0), (photo, depth)),
    }


def _measure(function: Callable[..., Tensor], tensors: tuple[Any, ...], repeats: int) -> Any:
    on = [tensor.cuda() for tensor in tensors]
    found = function(*on)
    repeats_equal = bool(torch.equal(function(*on), function(*on)))
    expected = function(*tensors).double()
    error = (found.cpu().double() - expected).square().mean().sqrt()
    return {
        "size": tuple(found.shape[-2:]),
        "error": float(error / (expected.max() - expected.min())),
        "repeats_equal": repeats_equal,
        "seconds": repeated(repeats, partial(function, *on)),
        "cpu_seconds": timed(partial(function, *tensors), CPU_REPEATS),
    }


def as_tensor(pixels: Array) -> Tensor:
    return torch.tensor(pixels).permute(2, 0, 1).contiguous()


def _depth(photo: Tensor) -> Tensor:
    """A depth from 1 to about 3 with steps where the brightness of the photograph changes."""
    grey = torch.nn.functional.avg_pool2d(photo.float().mean(0, keepdim=True), 9, 1, 4)
    slope = torch.linspace(0, 0.3, photo.shape[1])[:, None]
    return 1 + (grey / 80).floor() * 0.6 + slope


def _marked(gray: Tensor, photo: Tensor) -> Tensor:
    """The gray picture with strokes in the colours of the photograph."""
    marked = gray.expand(3, -1, -1).clone()
    for y in range(40, gray.shape[1] - 40, 120):
        for x in range(30, gray.shape[2] - 60, 160):
            stroke = np.s_[:, y : y + 6, x : x + 40]
            marked[stroke] = photo[:, y + 3, x + 20][:, None, None]
    return marked


def main() -> None:
    if not torch.cuda.is_available():
        print("CUDA skipped: PyTorch finds no device here.")
        return
    for name, row in tasks(drawn(), 20).items():
        verdict = "equal" if row["error"] <= MOST_ERROR else "DIFFERENT"
        print(
            f"{name:24s} {row['seconds'].median * 1e3:8.2f} ms  (CPU "
            f"{row['cpu_seconds'].median * 1e3:8.1f} ms)  error {row['error']:.1e} {verdict}"
            f"{'' if row['repeats_equal'] else ', NOT repeatable'}",
            flush=True,
        )


if __name__ == "__main__":
    main()
