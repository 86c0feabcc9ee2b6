"""The domain transform against published results: its authors' picture and the paper's table."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skimage import io

import bilateral
from benchmarks.paper import published
from benchmarks.superres.scenes import rms, scenes
from bilateral.filters import resize

Map = NDArray[np.float64]


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
        for factor, depth in scene.low.items():
            paper = published.superres("domain transform", scene.name, factor)
            target = resize.bicubic(depth, scene.truth.shape)
            filtered = bilateral.domain_transform(target, scene.photo, 8 * factor, 64)
            rmse = scene.rmse(filtered, full=factor == 2)
            rows.append({"scene": scene.name, "factor": factor, "rmse": rmse, "paper": paper})
    return rows or None
