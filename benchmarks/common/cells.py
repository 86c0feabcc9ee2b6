"""Define an experiment's cells, which are measured one by one and can be cached.

An experiment is a module that makes one page of the paper's results: NAME, TITLE, the data set it
is for (DATA; None: always scikit-image's pictures), `cells(setting)`, `summary(values, setting)`
for everything that tables and figures show, ready for JSON, `as_text(results)` for the tables in
Markdown with everything in which we are behind, and, optionally, `draw(values, results, folder)`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
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
    data: Data
    quick: bool
    repeats: int
    python: str | None  # whose OpenCV can do the benchmark's call
    opencv: dict[str, str]  # versions of OpenCV and its NumPy
    threads: tuple[int, ...]
    any_python: str | None = None  # that of --opencv-python, whatever its OpenCV can do
    paper: bool = False  # measure only the paper's tables
    output: Path = Path("benchmark-results")  # folder of the reports and pictures
    peers: Path | None = None  # folder of the originals that we replace
    only: tuple[str, ...] = ()  # parts of the benchmark to measure; all if empty


@dataclass(frozen=True)
class Cell:
    """One measurement: its work returns plain Python objects, timings or arrays."""

    name: str
    work: Callable[[], Any]
    inputs: tuple[Path, ...] = ()  # the files that it reads
    depends: str = ""  # anything else that its value depends on, such as a peer's version


def per_photograph(
    work: Callable[[Photo, Setting], Any], setting: Setting, at_most: int = 20
) -> Iterator[Cell]:
    """Make a cell for each photograph, which is read when the cell is measured."""
    folder = setting.data.photographs()
    paths = photos.files(folder) if folder else []
    for source in (paths or [Path(name) for name in photos.OWN])[: 1 if setting.quick else at_most]:
        inputs = (source,) if paths else ()
        yield Cell(source.stem, partial(_measure, work, setting, source, bool(paths)), inputs)


def _measure(
    work: Callable[[Photo, Setting], Any], setting: Setting, source: Path, given: bool
) -> Any:
    if not setting.quick:
        return work(photos.read(source) if given else photos.own(source.name), setting)
    pixels = photos.read(source).pixels if given else photos.OWN[source.name]()
    return work(Photo(source.stem, photos.centre(pixels, *QUICK_SHAPE)), setting)
