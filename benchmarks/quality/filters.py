"""Compare the domain transform and the median with their authors, the paper and peers."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage
from skimage import io

import bilateral
from benchmarks.common import Array, opencv, photos
from benchmarks.common.cells import Setting
from benchmarks.common.machine import Others
from benchmarks.common.opencv import Worker
from benchmarks.common.photos import Photo
from benchmarks.common.tables import OTHERS, at_least, at_most, bullets, page, table
from benchmarks.common.timing import Stopwatch, Timing, clock, in_turns, stopwatch
from benchmarks.quality.superres import rms

TITLE, REPEATS, OPENCV = "Filters", 15, "domain transform"

Row = dict[str, Any]

QUICK_SHAPE, SIZES = (1024, 1024), (3, 5)
SIGMA_XY, SIGMA_RGB, ITERATIONS = 30.0, 51.0, 3
DTYPES, OPENCV_MEDIANS = ("uint8", "float32"), ("uint8", "uint16", "float32")
SCIPY_REPEATS, HOLES = 3, 0.05


def measure(setting: Setting) -> Row:
    source = photos.photographs(setting.data.photographs())
    images = list(islice(source, 1)) if setting.quick else list(source)
    if setting.quick:
        images = [Photo(p.name, photos.centre(p.pixels, *QUICK_SHAPE)) for p in images]
    counts, repeats = setting.threads, setting.repeats
    sigmas = {"sigma_xy": SIGMA_XY, "sigma_rgb": SIGMA_RGB, "iterations": ITERATIONS}
    run = {"repeats": repeats, "quick": setting.quick, "threads": counts}
    return {
        "settings": run | sigmas,
        "authors": authors(setting.data.folder("domain_transform")),
        "speed": [row for photo in images for row in speed(photo, setting)],
        "median": medians(images[0], setting.any_python, counts, repeats),
    }


def authors(folder: Path | None) -> Row | None:
    """RMS difference from Gastal & Oliveira's own output, in grey levels."""
    if folder is None:
        return None
    photo = io.imread(folder / "statue.png")[..., :3]
    theirs = io.imread(folder / "dt_authors_statue_RF_ss30_sc0.2.png")[..., :3]
    ours = bilateral.domain_transform(photo.astype(np.float64), photo, 30, 0.2 * 255)
    return {
        **{"picture": "statue", "rms": rms(ours - theirs)},
        "rms_uint8": rms(np.rint(ours) - theirs),
    }


def in_turns_with_opencv(
    ours: Callable[[], Any], call: Any, peer: Any, counts: Any, repeats: int, **more: Stopwatch
) -> Row:
    """Time our function by threads, `more`, and the worker's call with our largest count."""

    def on_threads(threads: int) -> Stopwatch:
        return lambda: (bilateral.set_num_threads(threads), clock(ours)[0])[1]

    calls: dict[Any, Stopwatch] = more | {threads: on_threads(threads) for threads in counts}
    if peer:
        calls["opencv"] = lambda: peer.run(*call, threads=counts[-1])["seconds"]
    others = Others(lambda: time.process_time() + (peer.cpu_seconds if peer else 0.0))
    times = in_turns(calls, repeats)
    theirs = times.get("opencv")
    return {
        "ours": {threads: times[threads] for threads in counts},
        "opencv": theirs,
        "ratio": theirs.median / times[counts[-1]].median if theirs else None,
        "other_work": others.cores(),
        **{name: times[name] for name in more},
    }


def speed(photo: Photo, setting: Setting) -> list[Row]:
    arrays, rows = {"photo": photo.pixels}, []
    arrays |= {dtype: photo.pixels.astype(dtype) for dtype in DTYPES}
    settings = SIGMA_XY, SIGMA_RGB, ITERATIONS
    with nullcontext() if setting.python is None else Worker(setting.python, arrays) as peer:
        for dtype in DTYPES:
            call, difference = ("domain transform", f"photo {dtype}", *settings), None

            def ours(image: Array = arrays[dtype]) -> Array:
                return bilateral.domain_transform(image, photo.pixels, *settings)

            if peer:
                peer.run(*call, threads=setting.threads[-1], save=True)
                difference = rms(ours() - peer.result().astype(np.float64))
            times = in_turns_with_opencv(ours, call, peer, setting.threads, setting.repeats)
            row = {"photo": photo.name, "megapixels": photo.pixels[..., 0].size / 1e6}
            rows.append(row | {"dtype": dtype, "rms_difference": difference, **times})
    return rows


def medians(photo: Photo, python: str | None, counts: tuple[int, ...], repeats: int) -> list[Row]:
    """One row per dtype and window, on a gray photograph with noise."""
    rng = np.random.default_rng(0)
    gray = photo.pixels @ np.array([0.299, 0.587, 0.114], np.float32)
    gray = np.clip(gray + rng.normal(0, 5, gray.shape), 0, 255).astype(np.float32)
    images = {
        "uint8": gray.astype(np.uint8),
        "uint16": (gray * 257).astype(np.uint16),
        "float32": gray,
        "float64": gray.astype(np.float64),
        f"float32, {HOLES:.0%} NaN": np.where(rng.uniform(size=gray.shape) < HOLES, np.nan, gray),
    }
    missing = python is None or opencv.probe(python, "median") is None
    with nullcontext() if missing else Worker(str(python), images) as peer:
        return [
            _median(name, image, size, peer if name in OPENCV_MEDIANS else None, counts, repeats)
            for name, image in images.items()
            for size in SIZES
        ]


def _median(
    name: str, image: Array, size: int, peer: Worker | None, counts: tuple[int, ...], repeats: int
) -> Row:
    call, inside = ("median", name, size), (slice(size // 2, -(size // 2)),) * 2
    if peer:  # OpenCV's borders differ
        peer.run(*call, threads=counts[-1], save=True)
        _same(bilateral.median(image, size)[inside], peer.result()[inside], "OpenCV")
    copy = stopwatch(image.copy)
    ours = lambda: bilateral.median(image, size)  # noqa: E731
    row = in_turns_with_opencv(ours, call, peer, counts, repeats, copy=copy)
    scipy = None
    if not np.isnan(image).any():
        count = min(repeats, SCIPY_REPEATS)
        runs = [clock(ndimage.median_filter, image, size, mode="reflect") for _ in range(count)]
        _same(ours(), runs[0][1], "SciPy")
        scipy = Timing.of([seconds for seconds, _ in runs])
    ratio = scipy.median / row["ours"][counts[-1]].median if scipy else None
    return {"image": name, "size": size, "scipy": scipy, "scipy_ratio": ratio, **row}


def _same(ours: Array, theirs: Array, peer: str) -> None:
    if not np.array_equal(ours, theirs):
        raise RuntimeError(f"our medians differ from those of {peer}")


def as_text(results: Row) -> str:
    settings, author = results["settings"], results["authors"]
    ours = [f"ours, {n} threads | {{ours[{n}]}}" for n in settings["threads"]]
    ratios = [row["ratio"] for row in results["speed"] if row["ratio"]]
    targets = []
    if author:
        targets.append(
            f"RMS difference from the authors' output on {author['picture']}, in grey levels: "
            f"{at_most(author['rms'], 1.0, '.3f')}, rounded {author['rms_uint8']:.3f}"
        )
    if ratios:
        targets.append(f"OpenCV's dtFilter / ours, minimum: {at_least(min(ratios), 1.0)}")
    return page(
        f"## Against OpenCV's dtFilter (DTF_RF), {settings['threads'][-1]} threads",
        f"RGB along itself, {settings['iterations']} iterations; ms, median (quartiles) of "
        f"{settings['repeats']} repeats in turns; other work: cores busy with other processes.",
        table(
            results["speed"],
            "photograph | {photo}, {megapixels:.1f} MP, {dtype}",
            *ours,
            "OpenCV | {opencv}; ratio | {ratio:.2f}; RMS difference | {rms_difference:.3f}",
            OTHERS,
        ),
        "## Median filter",
        "ms, median (quartiles), in turns; copy: a lower bound. Results equal the peers' exactly.",
        table(
            results["median"],
            "image | {image}, {size} x {size}; copy | {copy}",
            *ours,
            "OpenCV | {opencv}; SciPy | {scipy}; OpenCV / ours | {ratio:.1f}",
            "SciPy / ours | {scipy_ratio:.1f}",
            OTHERS,
        ),
        bullets("## Targets", targets or ["skipped: no data of the authors and no OpenCV"]),
    )
