"""The one command: ``python -m benchmarks.filters [--data DIR]``, from the repository's root."""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import command, machine, photos
from benchmarks.filters import median, quality, report, speed
from benchmarks.photos import Photo
from benchmarks.worker import probe


def main() -> None:
    options = command.options(
        "filters",
        "The domain transform and the median against authors, paper and peers.",
        data="a folder with domain_transform/, depth_superres/ and hires/; what lacks is left out",
        quick="one repeat of one photograph's middle megapixel",
        repeats=15,
        opencv="ximgproc's dtFilter",
    )
    command.write("filters", measure(options), report.as_text, options.output)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    circumstances = command.circumstances()
    counts = (1, 2) if machine.cores() >= 2 else (1,)
    python = options.opencv_python
    opencv = probe(python, speed.OPENCV)
    data = options.data or Path("no-data")
    return {
        **circumstances,
        "versions": circumstances["versions"] | (opencv or {}),
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
