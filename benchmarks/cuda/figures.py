"""Measure the figures that CUDA must reach, in one short table with verdicts.

``python -m benchmarks.cuda.figures`` draws its pictures. With ``--data folder`` it measures solves
on that folder's photographs instead (*.jpg or *.png, with Pillow).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

import bilateral.torch
from benchmarks.cuda import tasks
from benchmarks.cuda.clock import repeated, seconds
from benchmarks.cuda.drawn import SHADE, Array, depth_map, drawn, mirrored

REPEATS, SIZES, ROUNDS = 20, 24, 4
FOUR_MEGAPIXELS, FULL_HD, MEGAPIXEL, PHOTO = (1600, 2560), (1080, 1920), (1000, 1000), (375, 500)
FIRST_SIZE, SIZE_STEP = (600, 800), (8, 12)
KNOWN, STEPS, SMOOTHNESS, CLASSES = 0.02, 25, 4.0, 21
MOST_ERROR, LEAST_EQUAL_LABELS = 1e-3, 0.999
LIMITS = {"4 MP, 25 steps": 0.8, "1080p, 2 % known": 1.2, "24 sizes from 600 x 800": 1.5}
LIMITS |= {"refine_depth 1080p": 8, "superres_depth to 1080p": 8}
LIMITS |= {"refine_segmentation 500 x 375 x 21": 3, "colorize 1 MP": 2}
"""Milliseconds."""
LARGE_LIMIT = 1.4
"""Milliseconds for 25 steps on the photograph with the most vertices."""

Call = Callable[..., Tensor]


class Row(NamedTuple):
    """One figure."""

    name: str
    ms: float | None
    """None: only the agreement counts."""
    limit: float
    agreement: str = ""
    agrees: bool = True

    def __str__(self) -> str:
        time = " " * 35
        if self.ms is not None:
            verdict = "met" if self.ms <= self.limit else "MISSED"
            time = f"{self.ms:8.2f} ms  at most {self.limit:4.1f}  {verdict:6s} "
        differs = "" if self.agrees else " DIFFERS"
        return f"{self.name:42s} {time}{self.agreement}{differs}"


def photographs(folder: Path | None) -> Iterator[tuple[str, Array]]:
    """Return photographs of 4 megapixels: a folder's, or a drawn one."""
    files = [] if folder is None else sorted([*folder.glob("*.jpg"), *folder.glob("*.png")])
    if not files:
        yield "drawn", drawn(FOUR_MEGAPIXELS)
        return
    from PIL import Image

    for file in files:
        pixels = np.asarray(Image.open(file).convert("RGB"))
        yield file.stem, mirrored(pixels, *FOUR_MEGAPIXELS)


def solves(name: str, pixels: Array) -> Iterator[Row]:
    """Time the figures of solves on one photograph of 4 megapixels."""
    photo, target, draw = _problem(pixels)
    solve = bilateral.torch.solve
    options: dict[str, Any] = {"max_iterations": STEPS, "preconditioner": "pyramid"}
    call = partial(solve, photo, target, draw, tolerance=0.0, smoothness=SMOOTHNESS, **options)
    limit = LARGE_LIMIT if "Path" in name else LIMITS["4 MP, 25 steps"]
    yield Row(f"4 MP, 25 steps, {name}", 1e3 * repeated(REPEATS, call).median, limit)
    small = [map_[..., : FULL_HD[0], : FULL_HD[1]].contiguous() for map_ in (photo, target, draw)]
    few = (small[2] < KNOWN).float()
    key = "1080p, 2 % known"
    call = partial(solve, *small[:2], few)
    yield Row(f"{key}, {name}", 1e3 * repeated(REPEATS, call).median, LIMITS[key])
    if name in ("drawn", "kde_Kite"):
        key = f"{SIZES} sizes from 600 x 800"
        yield Row(f"{key}, {name}", 1e3 * _many_sizes(small), LIMITS[key])
        crop = [map_[..., :512, :512].contiguous() for map_ in small]
        on_cpu = [map_.cpu() for map_ in crop]
        found, expected = (solve(*maps, tolerance=1e-6) for maps in (crop, on_cpu))
        error, text = _difference(found, expected)
        yield Row("512 x 512, tolerance 1e-6", None, 0.0, text, error <= 1e-4)


def _problem(pixels: Array) -> tuple[Tensor, Tensor, Tensor]:
    """Return a photograph, its noisy luma and confidences from 0 to 1 on the device."""
    photo = tasks.as_tensor(pixels)[None]
    draw = torch.Generator().manual_seed(0)
    luma = photo.float().mean(1, keepdim=True) / 255
    target = luma + 0.1 * torch.randn(luma.shape, generator=draw)
    return photo.cuda(), target.cuda(), torch.rand(luma.shape, generator=draw).cuda()


def _many_sizes(maps: list[Tensor]) -> float:
    """Return the seconds of the slowest size, the median of the rounds after the first."""
    crops = []
    for k in range(SIZES):
        height, width = (n + k * step for n, step in zip(FIRST_SIZE, SIZE_STEP, strict=True))
        crops.append([map_[..., :height, :width].contiguous() for map_ in maps])
    rounds = []
    for k in range(ROUNDS):
        taken = [seconds(bilateral.torch.solve, *crop)[0] for crop in crops]
        print(
            f"  sizes, round {k + 1}: median {1e3 * float(np.median(taken)):.2f} ms, "
            f"largest {1e3 * max(taken):.2f}",
            flush=True,
        )
        rounds.append(taken)
    return float(np.median(rounds[1:], axis=0).max())


def depth_scene(pixels: Array) -> tuple[Tensor, Tensor]:
    """Return the map of a depth camera and its photograph, on the CPU."""
    values, far = depth_map(pixels.mean(2))
    shaded = (pixels * np.where(far, SHADE, 1)[..., None]).astype(np.uint8)
    return torch.from_numpy(values), tasks.as_tensor(shaded)


def segmentation_scene(pixels: Array) -> tuple[Tensor, Tensor]:
    """Return the scores of a network with cells of 16 pixels, and their photograph, on the CPU."""
    image = tasks.as_tensor(pixels)[None]
    grey = image.float().mean(1)
    labels = torch.bucketize(grey, grey.quantile(torch.tensor([1 / 3, 2 / 3])))
    one_hot = torch.nn.functional.one_hot(labels, CLASSES).movedim(-1, 1).float()
    return 8 * torch.nn.functional.avg_pool2d(one_hot, 16, ceil_mode=True), image


def task_calls() -> dict[str, tuple[Call, tuple[Tensor, ...]]]:
    """Return the tasks with a figure, each with its tensors on the CPU."""
    pixels = drawn()
    photo, square = tasks.as_tensor(pixels), tasks.as_tensor(mirrored(pixels, *MEGAPIXEL))
    drawn_cases = tasks.cases(photo, square)
    segment = partial(bilateral.torch.refine_segmentation, labels=True)
    return {
        "superres_depth to 1080p": drawn_cases["superres_depth"],
        "refine_depth 1080p": (bilateral.torch.refine_depth, depth_scene(pixels)),
        "refine_segmentation 500 x 375 x 21": (
            segment,
            segmentation_scene(mirrored(pixels, *PHOTO)),
        ),
        "colorize 1 MP": drawn_cases["colorize (1 MP)"],
    }


def measured(name: str, call: Call, tensors: tuple[Tensor, ...]) -> Row:
    """Time a task, and compare it with the CPU's."""
    on = [tensor.cuda() for tensor in tensors]
    found = call(*on)
    timing = repeated(REPEATS, partial(call, *on))
    found, expected = call(*on), call(*tensors)
    if "segmentation" in name:
        equal = float((found.cpu() == expected).float().mean())
        text, agrees = f"{100 * equal:.2f} % equal labels", equal >= LEAST_EQUAL_LABELS
    else:
        error, text = _difference(found, expected)
        agrees = error <= MOST_ERROR
    return Row(name, 1e3 * timing.median, LIMITS[name], text, agrees)


def _difference(found: Tensor, expected: Tensor) -> tuple[float, str]:
    off = found.cpu().double() - expected.double()
    error = float(off.square().mean().sqrt() / (expected.max() - expected.min()))
    return error, f"{error:.1e} of the range from the CPU"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with photographs")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("CUDA skipped: PyTorch finds no device here.")
        return
    for name, (call, tensors) in task_calls().items():
        try:
            print(measured(name, call, tensors), flush=True)
        except Exception as error:  # the other figures still count
            print(f"{name:42s} FAILED: {error!r}", flush=True)
    for name, pixels in photographs(arguments.data):
        for row in solves(name, pixels):
            print(row, flush=True)
    from bilateral.torch.cuda import recorded  # needs Triton, which not all machines have

    for name, reason in recorded.failures:
        print(f"not recorded: {name}: {reason.splitlines()[0]}")


if __name__ == "__main__":
    main()
