"""Read Middlebury's stereo scenes, version 3: one folder per scene."""

import re
from pathlib import Path

import numpy as np
from skimage.data import stereo_motorcycle
from skimage.io import imread

from benchmarks.common import Array
from bilateral import io


def folders(root: Path) -> list[Path]:
    return sorted(file.parent for file in root.glob("**/disp0GT.pfm"))


def view(folder: Path, number: int = 0) -> Array:
    return np.asarray(imread(folder / f"im{number}.png"))


def max_disparity(folder: Path) -> int | None:
    file = folder / "calib.txt"
    match = re.search(r"ndisp\s*=\s*(\d+)", file.read_text()) if file.exists() else None
    return None if match is None else int(match[1])


def truth(folder: Path) -> Array:
    """The left view's true disparities, NaN where they are unknown."""
    values = io.read(folder / "disp0GT.pfm")
    return np.where(np.isfinite(values), values, np.nan)


def has_disparity(folder: Path, name: str) -> bool:
    return (folder / f"{name}_u16x256.png").exists()


def disparity(folder: Path, name: str) -> Array:
    return np.asarray(imread(folder / f"{name}_u16x256.png").astype(np.float32) / 256)


def seen_by_both(folder: Path) -> Array:
    return np.asarray(imread(folder / "mask0nocc.png") == 255)


def motorcycle() -> tuple[Array, Array, Array]:
    """scikit-image's pair of views, and its true disparities, NaN where they are unknown."""
    left, right, disparities = stereo_motorcycle()
    return left, right, np.where(np.isfinite(disparities), disparities, np.nan)
