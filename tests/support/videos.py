"""Write and read small videos for tests."""

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.io.video.reader import VideoReader
from bilateral.io.video.writer import VideoWriter
from support import scenes_on_disk as disk

Array = NDArray[Any]
LIMIT = 10**9


def write(path: Path, frames: Iterable[Array], rate: Fraction = Fraction(25)) -> None:
    """Write a video in the codec of its suffix."""
    with VideoWriter(path, rate) as video:
        for frame in frames:
            video.write(frame)


def read(path: Path) -> Array:
    """Read all frames of a video."""
    video = VideoReader(path, LIMIT)
    frames = list(video)
    video.close()
    return np.stack(frames)


def depth_and_photos(count: int) -> tuple[Array, Array]:
    """Return depth maps and photographs of one scene, with new noise in each frame."""
    scenes = [disk.scene(seed) for seed in range(count)]
    return np.stack([scene.depth for scene in scenes]), np.stack([scene.photo for scene in scenes])
