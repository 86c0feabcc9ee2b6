"""The domain transform against published results: its authors' picture and the paper's table."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skimage import io

import bilateral
from benchmarks.superres.scenes import rms, scenes
from bilateral import resize

Map = NDArray[np.float64]

# Ferstl et al.'s depth maps x2, x4, x8, x16: the paper's row "Domain Transform", over its window
# but for x2.
PUBLISHED = {"books": (1.80, 2.40, 3.23, 4.44), "art": (3.95, 4.76, 6.14, 8.49)}


def authors(folder: Path) -> dict[str, Any] | None:
    """RMS difference from Gastal & Oliveira's own output, in grey levels."""
    try:
        photo = io.imread(folder / "statue.png")[..., :3]
        theirs = io.imread(folder / "dt_authors_statue_RF_ss30_sc0.2.png")[..., :3]
    except FileNotFoundError:
        return None
    ours = bilateral.domain_transform(photo.astype(np.float64), photo, 30, 0.2 * 255)
    return {
        "picture": "statue",
        "rms": rms(ours - theirs),
        "rms_uint8": rms(_uint8(ours, theirs)),
    }


def _uint8(ours: Map, theirs: NDArray[np.uint8]) -> Map:
    return np.asarray(np.rint(ours) - theirs)


def superres(folder: Path) -> list[dict[str, Any]] | None:
    """RMSE of the filter alone on bicubic depth, sigma_xy = 8 * 2^f, sigma_rgb = 64."""
    rows = []
    for scene in scenes(folder):
        for (factor, depth), paper in zip(
            scene.low.items(), PUBLISHED.get(scene.name, ()), strict=False
        ):
            target = resize.bicubic(depth, scene.truth.shape)
            filtered = bilateral.domain_transform(target, scene.photo, 8 * factor, 64)
            rmse = scene.rmse(filtered, full=factor == 2)
            rows.append({"scene": scene.name, "factor": factor, "rmse": rmse, "paper": paper})
    return rows or None
