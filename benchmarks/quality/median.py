"""Time our median filter in turns with OpenCV's and SciPy's, on a gray photograph with noise."""

from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

import bilateral
from benchmarks.common import opencv
from benchmarks.common.opencv import Worker
from benchmarks.common.photos import Photo
from benchmarks.common.tables import OTHERS, table
from benchmarks.common.timing import Timing, clock, stopwatch
from benchmarks.common.turns import Row, with_opencv

OPENCV_IMAGES = ("uint8", "uint16", "float32")
SIZES = (3, 5)
SCIPY_REPEATS = 3
HOLES = 0.05

Image = NDArray[Any]


def compare(photo: Photo, python: str | None, counts: tuple[int, ...], repeats: int) -> list[Row]:
    """One row per dtype and window. OpenCV may use as many threads as our largest count."""
    cases = images(photo)
    missing = python is None or opencv.probe(python, "median") is None
    with nullcontext() if missing else Worker(str(python), cases) as peer:
        return [
            _compare(name, image, size, peer if name in OPENCV_IMAGES else None, counts, repeats)
            for name, image in cases.items()
            for size in SIZES
        ]


def images(photo: Photo) -> dict[str, Image]:
    """One image in several dtypes, and one with holes."""
    rng = np.random.default_rng(0)
    gray = photo.pixels @ np.array([0.299, 0.587, 0.114], np.float32)
    gray = np.clip(gray + rng.normal(0, 5, gray.shape), 0, 255).astype(np.float32)
    return {
        "uint8": gray.astype(np.uint8),
        "uint16": (gray * 257).astype(np.uint16),
        "float32": gray,
        "float64": gray.astype(np.float64),
        f"float32, {HOLES:.0%} NaN": np.where(rng.uniform(size=gray.shape) < HOLES, np.nan, gray),
    }


def _compare(
    name: str, image: Image, size: int, peer: Worker | None, counts: tuple[int, ...], repeats: int
) -> Row:
    def check(theirs: Image) -> None:
        inside = (slice(size // 2, -(size // 2)),) * 2  # the borders differ
        _same(bilateral.median(image, size)[inside], theirs[inside], "OpenCV")

    ours, call = (bilateral.median, image, size), ("median", name, size)
    more = {"copy": stopwatch(image.copy)}
    row = with_opencv(ours, call, peer, check, counts, repeats, more)
    scipy = _scipy(image, size, min(repeats, SCIPY_REPEATS))
    ratio = scipy.median / row["ours"][counts[-1]].median if scipy else None
    return {"image": name, "size": size, "scipy": scipy, "scipy_ratio": ratio, **row}


def _scipy(image: Image, size: int, repeats: int) -> Timing | None:
    if np.isnan(image).any():
        return None
    runs = [clock(ndimage.median_filter, image, size, mode="reflect") for _ in range(repeats)]
    _same(bilateral.median(image, size), runs[0][1], "SciPy")
    return Timing.of([seconds for seconds, _ in runs])


def _same(ours: Image, theirs: Image, peer: str) -> None:
    if not np.array_equal(ours, theirs):
        raise RuntimeError(f"our medians differ from those of {peer}")


def as_text(rows: list[Row], thread_counts: tuple[int, ...]) -> str:
    """The section of the report."""
    return (
        "## Median filter\n\n"
        "ms, median (quartiles), in turns; copy: the image by NumPy, a lower bound; other work: "
        "cores that other processes kept busy. The results equal the peers' bit by bit.\n\n"
        + table(
            rows,
            "image | {image}, {size} x {size}; copy | {copy}",
            *(f"ours, {n} threads | {{ours[{n}]}}" for n in thread_counts),
            "OpenCV | {opencv}; SciPy | {scipy}; OpenCV / ours | {ratio:.1f}",
            "SciPy / ours | {scipy_ratio:.1f}",
            OTHERS,
        )
    )
