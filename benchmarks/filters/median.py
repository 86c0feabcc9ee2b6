"""Our median filter, OpenCV's and SciPy's, in turns: a photograph in gray with some noise."""

import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

import bilateral
from benchmarks.machine import Others
from benchmarks.photos import Photo
from benchmarks.tables import cores, spread, table
from benchmarks.timing import Timing, clock
from benchmarks.worker import Worker, probe

OPENCV = Path(__file__).with_name("median_worker.py")
OPENCV_IMAGES = ("uint8", "uint16", "float32")
SIZES = (3, 5)
SCIPY_REPEATS = 3
HOLES = 0.05

Image = NDArray[Any]


def compare(
    photo: Photo, python: str, thread_counts: tuple[int, ...], repeats: int
) -> list[dict[str, Any]]:
    """One row per dtype and window. OpenCV may use as many threads as our largest count."""
    cases = images(photo)
    missing = probe(python, OPENCV) is None
    with nullcontext() if missing else Worker(python, OPENCV, cases) as peer:
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
    if name not in OPENCV_IMAGES:
        peer = None
    request = {"image": name, "size": size, "threads": thread_counts[-1]}
    if peer:
        peer.ask(save=True, **request)
        inside = (slice(size // 2, -(size // 2)),) * 2  # the borders differ
        theirs = np.load(peer.folder / "result.npy")
        _same(bilateral.median(image, size)[inside], theirs[inside], "OpenCV")
    seconds: dict[str, list[float]] = {"copy": [], "opencv": []}
    ours: dict[int, list[float]] = {threads: [] for threads in thread_counts}
    others = Others(lambda: time.process_time() + (peer.cpu_seconds if peer else 0.0))
    for _ in range(repeats):
        seconds["copy"].append(clock(image.copy)[0])
        for threads in thread_counts:
            bilateral.set_num_threads(threads)
            ours[threads].append(clock(bilateral.median, image, size)[0])
        if peer:
            seconds["opencv"].append(peer.ask(save=False, **request)["seconds"])
    busy = others.cores()
    return {
        "image": name,
        "size": size,
        "ours": {threads: Timing.of(times) for threads, times in ours.items()},
        **{who: Timing.of(times) if times else None for who, times in seconds.items()},
        "scipy": _scipy(image, size, min(repeats, SCIPY_REPEATS)),
        "other_work": busy,
    }


def _scipy(image: Image, size: int, repeats: int) -> Timing | None:
    if np.isnan(image).any():
        return None
    runs = [clock(ndimage.median_filter, image, size, mode="reflect") for _ in range(repeats)]
    _same(bilateral.median(image, size), runs[0][1], "SciPy")
    return Timing.of([seconds for seconds, _ in runs])


def _same(ours: Image, theirs: Image, peer: str) -> None:
    if not np.array_equal(ours, theirs):
        raise RuntimeError(f"our medians are not {peer}'s")


def as_text(rows: list[dict[str, Any]], thread_counts: tuple[int, ...]) -> str:
    """The section of the report."""
    cells = []
    for row in rows:
        best = row["ours"][thread_counts[-1]].median
        peers = [row["opencv"], row["scipy"]]
        cells.append(
            [
                f"{row['image']}, {row['size']} x {row['size']}",
                spread(row["copy"]),
                *(spread(row["ours"][threads]) for threads in thread_counts),
                *(spread(peer) if peer else "-" for peer in peers),
                *(f"{peer.median / best:.1f}" if peer else "-" for peer in peers),
                cores(row["other_work"]),
            ]
        )
    ours = tuple(f"ours, {threads} threads" for threads in thread_counts)
    header = ("image", "copy", *ours, "OpenCV", "SciPy", "OpenCV / ours", "SciPy / ours", "others")
    return (
        "## Median filter\n\n"
        "ms, median (quartiles), in turns; copy: the image by NumPy, a floor; others: cores that "
        "something else kept busy. The results are the peers', bit by bit.\n\n"
        + table(header, cells)
    )
