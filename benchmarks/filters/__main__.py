"""The one command: ``python -m benchmarks.filters [--data DIR]``, from the repository's root."""

import argparse
import datetime
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import machine, photos
from benchmarks.filters import median, quality, report, speed
from benchmarks.photos import Photo
from benchmarks.tables import as_json
from benchmarks.worker import probe


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.filters",
        description="The domain transform and the median against authors, paper and peers.",
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="a folder with domain_transform/, depth_superres/ and hires/; what lacks is left out",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        default=Path("benchmark-results"),
        help="where to write filters.json and filters.md (%(default)s)",
    )
    parser.add_argument(
        "--repeats", type=int, metavar="N", default=15, help="after one warm-up (%(default)s)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="one repeat of one photograph's middle megapixel"
    )
    parser.add_argument(
        "--opencv-python",
        metavar="PYTHON",
        default="/usr/bin/python3",
        help="a Python whose cv2 has ximgproc's dtFilter (%(default)s)",
    )
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error(f"--repeats: expected at least 1, got {options.repeats}.")
    if options.quick:
        options.repeats = 1
    return options


def main() -> None:
    options = arguments()
    results = measure(options)
    text = report.as_text(results)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "filters.json").write_text(as_json(results))
    (options.output / "filters.md").write_text(text)
    print(text)
    print(f"Written: {options.output / 'filters.json'}, {options.output / 'filters.md'}")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    load = os.getloadavg()[0]  # others' work on the machine, before ours adds to it
    counts = (1, 2) if machine.cores() >= 2 else (1,)
    python = options.opencv_python
    opencv = probe(python, speed.OPENCV)
    data = options.data or Path("no-data")
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": {"cpu": machine.cpu_model(), "cores": machine.cores(), "load_before": load},
        "versions": machine.versions() | (opencv or {}),
        "settings": {
            "repeats": options.repeats,
            "quick": options.quick,
            "threads": counts,
            "sigma_xy": speed.SIGMA_XY,
            "sigma_rgb": speed.SIGMA_RGB,
            "iterations": speed.ITERATIONS,
        },
        "targets": report.TARGETS,
        "opencv_skipped": None if opencv else skipped(python),
        "authors": quality.authors(data / "domain_transform"),
        "superres": quality.superres(data / "depth_superres"),
        "speed": measure_speed(options, python if opencv else None, counts),
        "median": median.compare(next(photographs(options)), python, counts, options.repeats),
    }


def measure_speed(
    options: argparse.Namespace, python: str | None, counts: tuple[int, ...]
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for photo in photographs(options):
        rows += speed.compare(photo, python, counts, options.repeats)
    return rows


def photographs(options: argparse.Namespace) -> Iterator[Photo]:
    folder = options.data / "hires" if options.data else None
    for photo in photos.photographs(folder if folder and folder.is_dir() else None):
        if options.quick:
            yield replace(photo, pixels=photos.centre(photo.pixels, *photos.QUICK_SHAPE))
            return
        yield photo


def skipped(python: str) -> str:
    """What to say where OpenCV's filter is missing."""
    return (
        f"OpenCV skipped: {python} has no cv2 with ximgproc's dtFilter. "
        f"On Debian and Ubuntu: apt-get install python3-opencv."
    )


if __name__ == "__main__":
    main()
