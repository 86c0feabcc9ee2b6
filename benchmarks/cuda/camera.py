"""Compare `refine_depth` of a depth camera's map on the device with the CPU's, and time it.

The maps are made from each photograph: two slanted surfaces of its bright and its dark parts, with
noise, flying pixels between them, and shadows without data.
"""

from functools import partial
from typing import Any

import numpy as np
import torch

import bilateral.torch
from benchmarks.common import Array
from benchmarks.common.timing import Timing
from benchmarks.common.timing import repeated as timed
from benchmarks.cuda.calls import Size, Task, repeated, seconds

CPU_REPEATS = 2
SHADOW, NOISE, FLYING, SHADE = 12, 2e-3, 0.5, 0.4
"""Columns without data beside an edge, noise as a part of the depth, the part of the pixels beside
edges that fly, and the brightness of the farther surface: the photograph has the map's edges."""


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


def depth_map(grey: Array, seed: int = 0) -> tuple[Array, Array]:
    """Make the depths of a camera in a photograph with these grey levels.

    Also return which pixels are on the farther surface.
    """
    rng = np.random.default_rng(seed)
    height, width = grey.shape
    rows, columns = (np.linspace(0, 1, n) for n in (height, width))
    side = max(height, width) // 8
    blocks = grey[: height // side * side, : width // side * side]
    blocks = blocks.reshape(height // side, side, -1, side).mean((1, 3))
    near = np.kron(blocks > np.median(blocks), np.ones((side, side), bool))
    near = np.pad(near, ((0, height - near.shape[0]), (0, width - near.shape[1])), "edge")
    z = np.where(near, 1 + 0.3 * rows[:, None], 3 + columns[None])
    z *= 1 + NOISE * rng.normal(size=z.shape)
    edge = np.zeros_like(near)
    edge[:, 1:] = near[:, 1:] != near[:, :-1]
    flying = edge & (rng.uniform(size=z.shape) < FLYING)
    z[flying] = rng.uniform(1.3, 3, np.count_nonzero(flying))
    leaves = np.zeros_like(near)
    leaves[:, 1:] = near[:, :-1] & ~near[:, 1:]
    for k in range(SHADOW):
        z[:, k:][leaves[:, : width - k]] = np.nan
    return z.astype(np.float32), ~near
