"""Tiny scenes as files, for the tests of the command line."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral import io

Array = NDArray[Any]
COMMAND = [sys.executable, "-m", "bilateral"]


class Scene(NamedTuple):
    photo: Array
    depth: Array
    truth: Array


def scene(seed: int = 0, shape: tuple[int, int] = (48, 64)) -> Scene:
    """Return two planes in millimetres, one before the other, with noise, outliers and holes."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: shape[0], : shape[1]]
    near = (np.abs(x - shape[1] / 2) < shape[1] / 4) & (y > shape[0] / 3)
    photo = np.where(near[..., None], (200, 80, 40), (40, 90, 160)) + rng.normal(0, 3, (*shape, 3))
    truth = np.where(near, 1500, 3000).astype(np.uint16)
    depth = truth + rng.normal(0, 20, shape)
    depth[rng.random(shape) < 0.05] = 9000
    depth[5:12, 8:20] = 0
    return Scene(photo.clip(0, 255).astype(np.uint8), depth.clip(0).astype(np.uint16), truth)


def folders(root: Path, count: int, shape: tuple[int, int] = (48, 64)) -> list[str]:
    """Write `depths`, `photos` and `truths` below a folder; return their common names."""
    names = [f"frame {number:03}" for number in range(count)]
    for number, name in enumerate(names):
        made = scene(number, shape)
        files = {
            f"depths/{name}.png": made.depth,
            f"photos/{name}.jpg": made.photo,
            f"truths/{name}.tif": made.truth,
        }
        for path, array in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            io.write(root / path, array)
    return names


def run(*arguments: object, cwd: Path | None = None, **options: Any) -> Any:
    """Run the command in a process of its own."""
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, timeout=60, **options)


def records(text: str) -> list[dict[str, Any]]:
    """Parse the lines of ``--json``."""
    return [json.loads(line) for line in text.splitlines()]
