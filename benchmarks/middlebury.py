"""Middlebury's stereo scenes, version 3: a folder each."""

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skimage.io import imread

Array = NDArray[Any]


def folders(below: Path) -> list[Path]:
    """Those with a photograph and the truth."""
    return sorted(file.parent for file in below.glob("**/disp0GT.pfm"))


def photograph(folder: Path) -> Array:
    """The left view."""
    return np.asarray(imread(folder / "im0.png"))


def right_view(folder: Path) -> Array | None:
    """The other photograph of the pair, if it is there."""
    file = folder / "im1.png"
    return np.asarray(imread(file)) if file.exists() else None


def most_disparity(folder: Path) -> int | None:
    """What the calibration says about it, if it is there."""
    file = folder / "calib.txt"
    if not file.exists():
        return None
    found = re.search(r"ndisp\s*=\s*(\d+)", file.read_text())
    return None if found is None else int(found[1])


def truth(folder: Path) -> Array:
    """The left view's disparities, NaN where they are unknown."""
    with (folder / "disp0GT.pfm").open("rb") as file:
        kind, size, scale = (file.readline() for _ in range(3))
        if kind.strip() != b"Pf":
            raise ValueError(f"{file.name}: expected a PFM file of one channel.")
        width, height = map(int, size.split())
        values = np.fromfile(file, "<f4" if float(scale) < 0 else ">f4").reshape(height, width)
    return np.where(np.isfinite(values), values, np.nan)[::-1].astype(np.float32)


def disparity(folder: Path, name: str) -> Array:
    """A map stored in 1/256 of a pixel."""
    return np.asarray(imread(folder / f"{name}_u16x256.png").astype(np.float32) / 256)


def seen_by_both(folder: Path) -> Array:
    """Where the right view sees what the left one does."""
    return np.asarray(imread(folder / "mask0nocc.png") == 255)
