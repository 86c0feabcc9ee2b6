"""The photographs that several experiments share, large or, for a quick run, small."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import photos
from benchmarks.paper.cells import Cell, Setting
from benchmarks.photos import Photo

QUICK = (256, 320)


def per_photograph(
    work: Callable[[Photo, Setting], Any], setting: Setting, at_most: int = 20
) -> Iterator[Cell]:
    """A cell for each photograph of about 4 megapixels, which is read when it is its turn."""
    folder = setting.data.photographs()
    found: list[Path] = [] if folder is None else photos.files(folder)
    count = 1 if setting.quick else at_most
    for path in found[:count]:
        yield Cell(path.stem, partial(_from_file, work, path, setting), (path,))
    if not found:
        for name in list(photos.OWN)[:count]:
            yield Cell(name, partial(_from_own, work, name, setting))


def _from_file(work: Callable[[Photo, Setting], Any], path: Path, setting: Setting) -> Any:
    photo = photos.read(path)
    return work(_small(photo) if setting.quick else photo, setting)


def _from_own(work: Callable[[Photo, Setting], Any], name: str, setting: Setting) -> Any:
    small = setting.quick
    return work(_small(Photo(name, photos.OWN[name]())) if small else photos.own(name), setting)


def _small(photo: Photo) -> Photo:
    return replace(photo, pixels=photos.centre(photo.pixels, *QUICK))
