"""Read Middlebury's stereo scenes, version 3: one folder per scene."""

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skimage.io import imread

Array = NDArray[Any]


def folders(root: Path) -> list[Path]:
    """The folders with a true disparity map, anywhere below `root`."""
    return sorted(file.parent for file in root.glob("**/disp0GT.pfm"))


def left_view(folder: Path) -> Array:
    return np.asarray(imread(folder / "im0.png"))


def right_view(folder: Path) -> Array | None:
    """The right photograph of the pair, if it is there."""
    file = folder / "im1.png"
    return np.asarray(imread(file)) if file.exists() else None


def max_disparity(folder: Path) -> int | None:
    """The largest disparity, from the calibration file if it is there."""
    file = folder / "calib.txt"
    match = re.search(r"ndisp\s*=\s*(\d+)", file.read_text()) if file.exists() else None
    return None if match is None else int(match[1])


def truth(folder: Path) -> Array:
    """The left view's true disparities, NaN where they are unknown."""
    with (folder / "disp0GT.pfm").open("rb") as file:
        kind, size, scale = (file.readline() for _ in range(3))
        if kind.strip() != b"Pf":
            raise ValueError(f"{file.name}: expected a PFM file of one channel.")
        width, height = map(int, size.split())
        values = np.fromfile(file, "<f4" if float(scale) < 0 else ">f4").reshape(height, width)
    return np.where(np.isfinite(values), values, np.nan)[::-1].astype(np.float32)


def has_disparity(folder: Path, name: str) -> bool:
    return (folder / f"{name}_u16x256.png").exists()


def disparity(folder: Path, name: str) -> Array:
    """A map stored in 1/256 of a pixel."""
    return np.asarray(imread(folder / f"{name}_u16x256.png").astype(np.float32) / 256)


def seen_by_both(folder: Path) -> Array:
    """Mask of the pixels that are visible in both views."""
    return np.asarray(imread(folder / "mask0nocc.png") == 255)
