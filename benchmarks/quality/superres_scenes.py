"""Read the super-resolution benchmark of Ferstl et al. 2013, or make a scene from Motorcycle."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skimage import io

from benchmarks.common import middlebury
from benchmarks.common.published import FACTORS, SCENES
from bilateral import BlockMeans

Map = NDArray[np.float64]

WINDOW = (slice(1080), slice(1320))
"""The pixels that the paper's numbers are over."""
QUICK_SHAPE = (192, 256)


@dataclass(frozen=True)
class Scene:
    """A photograph, its true depth, and noisy maps at lower resolutions by factor."""

    name: str
    photo: NDArray[np.uint8]
    truth: Map  # NaN where it is unknown
    low: dict[int, Map]
    authors: dict[int, Map]  # the paper's own outputs, where they are there

    def rmse(self, depth: NDArray[Any], *, full: bool = False) -> float:
        error = depth.astype(np.float64) - self.truth
        return rms(error if full else error[WINDOW])


def rms(error: Map) -> float:
    return float(np.sqrt(np.nanmean(error**2)))


def scenes(folder: Path) -> Iterator[Scene]:
    """The scenes of the benchmark that are in the folder."""
    for name in SCENES:
        inputs, outputs = folder / "_input" / f"{name}_big", folder / "barronpoole" / f"{name}_big"
        try:
            truth = _map(folder / "_gth" / f"{name}_big.png")
            photo = io.imread(inputs / f"{name}_big_color.png")[..., :3]
            low = {2**f: _map(inputs / f"depth_{f}_n.png") for f in range(1, 5)}
        except FileNotFoundError:
            continue
        files = {2**f: outputs / f"output_{f}_n.png" for f in range(1, 5)}
        authors = {k: _map(file) / 256 for k, file in files.items() if file.exists()}
        yield Scene(name, photo, truth, low, authors)


def made(quick: bool = False) -> Scene:
    """scikit-image's Motorcycle with noise like that of Ferstl et al.'s maps: 640 / depth."""
    photo, _, disparity = middlebury.motorcycle()
    rows, columns = (size // 16 * 16 for size in disparity.shape)
    truth = 3 * disparity[:rows, :columns].astype(np.float64)  # to 8-bit grey levels, about
    rng, low = np.random.default_rng(0), {}
    for k in FACTORS:
        shape = (rows // k, columns // k)
        blocks = BlockMeans(np.zeros(shape), (rows, columns))
        known, means = blocks.means(np.isfinite(truth)), blocks.means(np.nan_to_num(truth))
        depth = np.where(known > 0.99, means, np.nan)
        low[k] = depth + rng.normal(size=shape) * 640 / np.maximum(depth, 40)
    height, width = QUICK_SHAPE if quick else (rows, columns)
    crops = {k: depth[: height // k, : width // k] for k, depth in low.items()}
    return Scene("motorcycle", photo[:height, :width], truth[:height, :width], crops, {})


def _map(path: Path) -> Map:
    return np.asarray(io.imread(path), np.float64)
