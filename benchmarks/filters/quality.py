"""The domain transform against published results: its authors' picture and the paper's table."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skimage import io

import bilateral

Map = NDArray[np.float64]

# Ferstl et al.'s depth maps x2, x4, x8, x16: the paper's row "Domain Transform".
PUBLISHED = {"books": (1.80, 2.40, 3.23, 4.44), "art": (3.95, 4.76, 6.14, 8.49)}
WINDOW = (slice(1080), slice(1320))  # the paper's, but for the x2 entries of its baselines


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
        "rms": _rms(ours - theirs),
        "rms_uint8": _rms(_uint8(ours, theirs)),
    }


def _uint8(ours: Map, theirs: NDArray[np.uint8]) -> Map:
    return np.asarray(np.rint(ours) - theirs)


def superres(folder: Path) -> list[dict[str, Any]] | None:
    """RMSE of the filter alone on bicubic depth, sigma_xy = 8 * 2^f, sigma_rgb = 64."""
    rows = []
    for scene, published in PUBLISHED.items():
        inputs = folder / "_input" / f"{scene}_big"
        try:
            truth = io.imread(folder / "_gth" / f"{scene}_big.png").astype(np.float64)
            photo = io.imread(inputs / f"{scene}_big_color.png")[..., :3]
            maps = [io.imread(inputs / f"depth_{f}_n.png").astype(np.float64) for f in range(1, 5)]
        except FileNotFoundError:
            continue
        for f, (depth, paper) in enumerate(zip(maps, published, strict=True), start=1):
            target = bicubic(depth, 2**f)[: truth.shape[0], : truth.shape[1]]
            error = bilateral.domain_transform(target, photo, 8 * 2**f, 64) - truth
            rmse = _rms(error if f == 1 else error[WINDOW])
            rows.append({"scene": scene, "factor": 2**f, "rmse": rmse, "paper": paper})
    return rows or None


def bicubic(values: Map, factor: int) -> Map:
    """Enlarge with a = -0.5, half-pixel centres and replicated borders."""
    rows, columns = (_cubic_matrix(size, factor) for size in values.shape)
    enlarged: Map = rows @ values @ columns.T
    return enlarged


def _cubic_matrix(size: int, factor: int) -> Map:
    """Weights of each old sample in each new one."""
    position = (np.arange(size * factor) + 0.5) / factor - 0.5
    left = np.floor(position).astype(int)
    matrix = np.zeros((size * factor, size))
    for sample in (left - 1, left, left + 1, left + 2):
        t = np.abs(position - sample)
        near, far = 1.5 * t**3 - 2.5 * t**2 + 1, -0.5 * t**3 + 2.5 * t**2 - 4 * t + 2
        weight = np.where(t <= 1, near, far)
        np.add.at(matrix, (np.arange(len(t)), np.clip(sample, 0, size - 1)), weight)
    return matrix


def _rms(error: Map) -> float:
    return float(np.sqrt(np.mean(error**2)))
