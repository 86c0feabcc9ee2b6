"""Compare `refine_depth` of a depth camera's map on the device with the CPU's, and time it.

The maps are made from each photograph: two slanted surfaces of its bright and its dark parts, with
noise, flying pixels between them, and shadows without data.
"""

from functools import partial
from typing import Any

import numpy as np
import torch

import bilateral.torch
from benchmarks.common.timing import Timing
from benchmarks.common.timing import repeated as timed
from benchmarks.cuda.calls import Size, Task
from benchmarks.cuda.clock import repeated, seconds
from benchmarks.cuda.drawn import SHADE, depth_map

CPU_REPEATS = 2


def camera(task: Task, size: Size, repeats: int) -> dict[str, Any]:
    """Time whole calls on a device and on the CPU, and compare their results."""
    crop = task.middle(size)
    image = crop.reference[0]
    values, far = depth_map(image.float().mean(0).cpu().numpy())
    depth = torch.from_numpy(values).to(image.device)
    shade = torch.from_numpy(np.where(far, SHADE, 1)).to(image.device)
    image = (image * shade).to(image.dtype)
    there = depth.cpu(), image.cpu()
    refine = bilateral.torch.refine_depth
    first, found = seconds(refine, depth, image)
    found, expected = found.cpu(), refine(*there)
    scale = float(expected.max() - expected.min())
    off = (found.double() - expected.double()) / scale
    return {
        "size": crop.size,
        "first_seconds": Timing.of([first]),
        "seconds": repeated(repeats, partial(refine, depth, image)),
        "cpu_seconds": timed(refine, CPU_REPEATS, *there),
        "difference": float(off.square().mean().sqrt()),
        "largest": float(off.abs().max()),
        "unknown": float(depth.isnan().float().mean()),
    }
