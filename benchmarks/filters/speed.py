"""Our domain transform and OpenCV's, in turns: a photograph filtered along itself."""

import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bilateral
from benchmarks.machine import Others
from benchmarks.photos import Photo
from benchmarks.timing import Timing, clock
from benchmarks.worker import Worker

OPENCV = Path(__file__).with_name("opencv_worker.py")
DTYPES = ("uint8", "float32")
SIGMA_XY, SIGMA_RGB, ITERATIONS = 30.0, 51.0, 3


def compare(
    photo: Photo, python: str | None, thread_counts: tuple[int, ...], repeats: int
) -> list[dict[str, Any]]:
    """One row per dtype. OpenCV may use as many threads as our largest count."""
    arrays = {"photo": photo.pixels}
    with nullcontext() if python is None else Worker(python, OPENCV, arrays) as peer:
        return [_compare(photo, dtype, peer, thread_counts, repeats) for dtype in DTYPES]


def _compare(
    photo: Photo, dtype: str, peer: Worker | None, thread_counts: tuple[int, ...], repeats: int
) -> dict[str, Any]:
    image = photo.pixels.astype(dtype)
    request = {
        "dtype": dtype,
        "sigma_xy": SIGMA_XY,
        "sigma_rgb": SIGMA_RGB,
        "iterations": ITERATIONS,
        "threads": thread_counts[-1],
    }
    result = filtered(image, photo)
    difference = None
    if peer:
        peer.ask(save=True, **request)
        theirs = np.load(peer.folder / "result.npy").astype(np.float64)
        difference = float(np.sqrt(np.mean((result - theirs) ** 2)))
    ours: dict[int, list[float]] = {threads: [] for threads in thread_counts}
    opencv: list[float] = []
    others = Others(lambda: time.process_time() + (peer.cpu_seconds if peer else 0.0))
    for _ in range(repeats):
        for threads in thread_counts:
            bilateral.set_num_threads(threads)
            ours[threads].append(clock(filtered, image, photo)[0])
        if peer:
            opencv.append(peer.ask(save=False, **request)["seconds"])
    timings = {threads: Timing.of(seconds) for threads, seconds in ours.items()}
    theirs_median = Timing.of(opencv) if opencv else None
    best = timings[thread_counts[-1]].median
    return {
        "photo": photo.name,
        "megapixels": photo.pixels.shape[0] * photo.pixels.shape[1] / 1e6,
        "dtype": dtype,
        "ours": timings,
        "opencv": theirs_median,
        "ratio": theirs_median.median / best if theirs_median else None,
        "rms_difference": difference,
        "other_work": others.cores(),
    }


def filtered(image: NDArray[Any], photo: Photo) -> NDArray[Any]:
    """The whole call."""
    return bilateral.domain_transform(image, photo.pixels, SIGMA_XY, SIGMA_RGB, ITERATIONS)
