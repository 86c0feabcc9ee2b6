"""Define an experiment's cells, which are measured one by one and can be cached.

An experiment is a module that makes one page of the paper's results: NAME, TITLE, the data set it
is for (DATA; None: always scikit-image's pictures), `cells(setting)`, `summary(values, setting)`
for everything that tables and figures show, ready for JSON, `as_text(results)` for the tables in
Markdown with everything in which we are behind, and, optionally, `draw(values, results, folder)`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.common import photos
from benchmarks.common.data import Data
from benchmarks.common.photos import Photo

Results = dict[str, Any]
Values = Mapping[str, Any]

QUICK_SHAPE = (256, 320)


@dataclass(frozen=True)
class Setting:
    """The options of a run."""

    data: Data
    quick: bool
    repeats: int
    python: str | None
    """A Python whose OpenCV can do the benchmark's call."""
    opencv: dict[str, str]
    """Versions of OpenCV and its NumPy."""
    threads: tuple[int, ...]
    any_python: str | None = None
    """The Python of --opencv-python, whatever its OpenCV can do."""
    paper: bool = False
    """Whether to measure only the paper's tables."""


@dataclass(frozen=True)
class Cell:
    """One measurement."""

    name: str
    work: Callable[[], Any]
    """Returns plain Python objects, timings or arrays."""
    inputs: tuple[Path, ...] = ()
    """The files that it reads."""
    depends: str = ""
    """Anything else that its value depends on, such as a peer's version."""


def per_photograph(
    work: Callable[[Photo, Setting], Any], setting: Setting, at_most: int = 20
) -> Iterator[Cell]:
    """Make a cell for each photograph, which is read when the cell is measured."""
    folder = setting.data.photographs()
    paths: list[Path] = [] if folder is None else photos.files(folder)
    count = 1 if setting.quick else at_most
    for path in paths[:count]:
        yield Cell(path.stem, partial(_measure, work, setting, photos.read, path), (path,))
    if not paths:
        read = photos.small if setting.quick else photos.own
        for name in list(photos.OWN)[:count]:
            yield Cell(name, partial(_measure, work, setting, read, name))


def _measure(
    work: Callable[[Photo, Setting], Any],
    setting: Setting,
    read: Callable[[Any], Photo],
    source: Any,
) -> Any:
    photo = read(source)
    if setting.quick:
        photo = replace(photo, pixels=photos.centre(photo.pixels, *QUICK_SHAPE))
    return work(photo, setting)
