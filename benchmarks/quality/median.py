"""Time our median filter in turns with OpenCV's and SciPy's, on a gray photograph with noise."""

import time
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

import bilateral
from benchmarks.common import opencv
from benchmarks.common.machine import Others
from benchmarks.common.opencv import Worker
from benchmarks.common.photos import Photo
from benchmarks.common.tables import OTHERS, table
from benchmarks.common.timing import Stopwatch, Timing, clock, in_turns, stopwatch

OPENCV_IMAGES = ("uint8", "uint16", "float32")
SIZES = (3, 5)
SCIPY_REPEATS = 3
HOLES = 0.05

Image = NDArray[Any]


def compare(
    photo: Photo, python: str | None, thread_counts: tuple[int, ...], repeats: int
) -> list[dict[str, Any]]:
    """One row per dtype and window. OpenCV may use as many threads as our largest count."""
    cases = images(photo)
    missing = python is None or opencv.probe(python, "median") is None
    with nullcontext() if missing else Worker(str(python), cases) as peer:
        return [
            _compare(name, image, size, peer, thread_counts, repeats)
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
    name: str,
    image: Image,
    size: int,
    peer: Worker | None,
    thread_counts: tuple[int, ...],
    repeats: int,
) -> dict[str, Any]:
    calls: dict[Any, Stopwatch] = {"copy": stopwatch(image.copy)}
    calls |= {n: on_threads(n, bilateral.median, image, size) for n in thread_counts}
    if name not in OPENCV_IMAGES:
        peer = None
    if peer:
        threads = thread_counts[-1]
        peer.run("median", name, size, threads=threads, save=True)
        inside = (slice(size // 2, -(size // 2)),) * 2  # the borders differ
        _same(bilateral.median(image, size)[inside], peer.result()[inside], "OpenCV")
        calls["opencv"] = lambda: peer.run("median", name, size, threads=threads)["seconds"]
    others = Others(lambda: time.process_time() + (peer.cpu_seconds if peer else 0.0))
    times = in_turns(calls, repeats)
    return {
        "image": name,
        "size": size,
        "ours": {threads: times[threads] for threads in thread_counts},
        "copy": times["copy"],
        "opencv": times.get("opencv"),
        "other_work": others.cores(),
        "scipy": _scipy(image, size, min(repeats, SCIPY_REPEATS)),
    }


def on_threads(threads: int, function: Any, *arguments: Any) -> Stopwatch:
    """A stopwatch that sets the number of threads before its clock starts."""

    def call() -> float:
        bilateral.set_num_threads(threads)
        return clock(function, *arguments)[0]

    return call


def _scipy(image: Image, size: int, repeats: int) -> Timing | None:
    if np.isnan(image).any():
        return None
    runs = [clock(ndimage.median_filter, image, size, mode="reflect") for _ in range(repeats)]
    _same(bilateral.median(image, size), runs[0][1], "SciPy")
    return Timing.of([seconds for seconds, _ in runs])


def _same(ours: Image, theirs: Image, peer: str) -> None:
    if not np.array_equal(ours, theirs):
        raise RuntimeError(f"our medians differ from those of {peer}")


def as_text(rows: list[dict[str, Any]], thread_counts: tuple[int, ...]) -> str:
    """The section of the report."""

    def ratio(row: dict[str, Any], peer: str) -> float | None:
        best = row["ours"][thread_counts[-1]].median
        return row[peer].median / best if row[peer] else None

    ratios = [{f"{peer}_ratio": ratio(row, peer) for peer in ("opencv", "scipy")} for row in rows]
    return (
        "## Median filter\n\n"
        "ms, median (quartiles), in turns; copy: the image by NumPy, a lower bound; other work: "
        "cores that other processes kept busy. The results equal the peers' bit by bit.\n\n"
        + table(
            [row | more for row, more in zip(rows, ratios, strict=True)],
            "image | {image}, {size} x {size}; copy | {copy}",
            *(f"ours, {n} threads | {{ours[{n}]}}" for n in thread_counts),
            "OpenCV | {opencv}; SciPy | {scipy}; OpenCV / ours | {opencv_ratio:.1f}",
            "SciPy / ours | {scipy_ratio:.1f}",
            OTHERS,
        )
    )
