"""The median filter against OpenCV's and SciPy's: ``python -m benchmarks.filters.median``.

`measure` returns one row per dtype and window, `as_text` a table of them.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

import bilateral
from benchmarks.speed import photos
from benchmarks.speed.machine import Others, cores, cpu_model
from benchmarks.speed.report import table
from benchmarks.speed.timing import Timing, clock

WORKER = Path(__file__).with_name("median_worker.py")
SIZES = (3, 5)
SCIPY_REPEATS = 3
HOLES = 0.05

Image = NDArray[Any]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.filters.median")
    parser.add_argument("--data", type=Path, metavar="DIR", help="photographs (scikit-image's own)")
    parser.add_argument("--repeats", type=int, metavar="N", default=15)
    parser.add_argument("--threads", type=int, metavar="N", default=min(2, cores()))
    parser.add_argument("--opencv-python", metavar="PYTHON", default="/usr/bin/python3")
    options = parser.parse_args()
    photo = next(photos.photographs(options.data)).pixels
    rows = measure(photo, options.opencv_python, options.threads, options.repeats)
    print(f"{cpu_model()}, {options.threads} threads, {photo.shape[1]} x {photo.shape[0]}\n")
    print(as_text(rows))


def measure(
    photo: NDArray[np.uint8], opencv_python: str, threads: int, repeats: int
) -> list[dict[str, Any]]:
    """Time every case in turns. OpenCV's times are None where its Python has none."""
    bilateral.set_num_threads(threads)
    cases = images(photo)
    with tempfile.TemporaryDirectory() as folder:
        for name, image in cases.items():
            np.save(Path(folder) / name, image)
        opencv = OpenCV(opencv_python, folder, threads)
        with opencv:
            return [
                compare(name, image, size, opencv, repeats)
                for name, image in cases.items()
                for size in SIZES
            ]


def images(photo: NDArray[np.uint8]) -> dict[str, Image]:
    """The photograph in gray with some noise, so that values are many, in each dtype."""
    rng = np.random.default_rng(0)
    gray = photo @ np.array([0.299, 0.587, 0.114], np.float32)
    gray = np.clip(gray + rng.normal(0, 5, gray.shape), 0, 255).astype(np.float32)
    holes = np.where(rng.uniform(size=gray.shape) < HOLES, np.float32(np.nan), gray)
    return {
        "uint8": gray.astype(np.uint8),
        "uint16": (gray * 257).astype(np.uint16),
        "float32": gray,
        "float64": gray.astype(np.float64),
        f"float32, {HOLES:.0%} NaN": holes,
    }


def compare(name: str, image: Image, size: int, opencv: "OpenCV", repeats: int) -> dict[str, Any]:
    seconds: dict[str, list[float]] = {"copy": [], "ours": [], "opencv": [], "scipy": []}
    others = Others()
    by_opencv = opencv.filters(image)
    for turn in range(repeats + 1):  # the first is a warm-up
        seconds["copy"].append(clock(image.copy)[0])
        taken, ours = clock(bilateral.median, image, size)
        seconds["ours"].append(taken)
        if by_opencv:
            taken, theirs = opencv.median(name, size)
            seconds["opencv"].append(taken)
            inside = (slice(size // 2, -(size // 2)),) * 2  # the borders differ
            same(ours[inside], theirs[inside], "OpenCV")
        if turn <= SCIPY_REPEATS and not np.isnan(image).any():
            taken, theirs = clock(ndimage.median_filter, image, size, mode="reflect")
            seconds["scipy"].append(taken)
            same(ours, theirs, "SciPy")
    timings = {peer: Timing.of(times[1:]) if times else None for peer, times in seconds.items()}
    return {"image": name, "size": size, **timings, "other_work": others.cores()}


def same(ours: Image, theirs: Image, peer: str) -> None:
    if not np.array_equal(ours, theirs):
        raise RuntimeError(f"our medians are not {peer}'s")


class OpenCV:
    """OpenCV's filter in a process of its own; a context manager."""

    def __init__(self, python: str, folder: str, threads: int) -> None:
        self._folder, self._threads = Path(folder), threads
        try:
            subprocess.run([python, "-I", str(WORKER)], capture_output=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            self._process = None
            return
        self._process = subprocess.Popen(
            [python, "-I", str(WORKER), folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "OpenCV":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.communicate()

    def filters(self, image: Image) -> bool:
        """Whether it is there and takes such an image."""
        known = ("uint8", "uint16", "float32")
        return self._process is not None and image.dtype in known and not np.isnan(image).any()

    def median(self, name: str, size: int) -> tuple[float, Image]:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"image": name, "size": size, "threads": self._threads}
        print(json.dumps(request), file=self._process.stdin, flush=True)
        seconds = float(json.loads(self._process.stdout.readline()))
        return seconds, np.load(self._folder / "median.npy")


def as_text(rows: list[dict[str, Any]]) -> str:
    header = ("image", "window", "copy", "ours, ms", "OpenCV", "ratio", "SciPy", "ratio", "others")
    lines = []
    for row in rows:
        cells = [row["image"], f"{row['size']} x {row['size']}"]
        cells += [_spread(row["copy"]), _spread(row["ours"])]
        for peer in ("opencv", "scipy"):
            timing = row[peer]
            cells.append(_spread(timing))
            cells.append("" if timing is None else f"{timing.median / row['ours'].median:.1f}")
        busy = row["other_work"]
        cells.append("unknown" if busy is None else f"{busy:.1f}")
        lines.append(cells)
    return (
        "## Median filter: medians (quartiles) in ms; copy: a copy of the image by NumPy; "
        "others: cores busy with the peers or other work\n\n" + table(header, lines)
    )


def _spread(timing: Timing | None) -> str:
    if timing is None:
        return ""
    return f"{timing.median * 1e3:.2f} ({timing.low * 1e3:.2f} .. {timing.high * 1e3:.2f})"


if __name__ == "__main__":
    main()
