"""Read gray pictures with strokes from a folder, or make them from scikit-image's photographs."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from skimage import data, io

from benchmarks.common import photos
from benchmarks.common.photos import rgb
from bilateral import color
from bilateral.cli.demo.strokes import strokes

Picture = NDArray[np.uint8]

_DIFFERENT = 0.01 * 255  # summed over RGB: a marked picture differs this much where a stroke is
_STROKES = 40
_RESULT = "levin_result"


@dataclass(frozen=True)
class Scene:
    name: str
    gray: Picture  # (H, W)
    colours: Picture  # of the strokes
    painted: NDArray[np.bool_]
    original: Picture | None
    authors: Picture | None  # Levin et al.'s own result, which may have fewer rows


def scenes(folder: Path) -> Iterator[Scene]:
    """One scene for each subfolder with `gray`, `marked`, and `original` or `levin_result`.

    Strokes get the colours of the original if there is one: the painted colours differ from it.
    """
    for path in sorted(path for path in folder.iterdir() if path.is_dir()):
        pictures = {file.stem: file for file in sorted(path.iterdir())}
        if not {"gray", "marked"} <= pictures.keys() or not {"original", _RESULT} & pictures.keys():
            continue
        gray, marked = _read(pictures["gray"]), _read(pictures["marked"])
        painted = np.abs(gray.astype(int) - marked).sum(axis=2) > _DIFFERENT
        original = _read(pictures["original"]) if "original" in pictures else None
        authors = _read(pictures[_RESULT]) if _RESULT in pictures else None
        colours = marked if original is None else original
        yield Scene(path.name, gray[..., 0], colours, painted, original, authors)


def made() -> Iterator[Scene]:
    """Photographs that come with scikit-image, with strokes of their true colours."""
    for name in ("coffee", "chelsea", "astronaut"):
        yield _made(name, getattr(data, name)())


def megapixel() -> Scene:
    """A photograph of one megapixel, to measure speed."""
    photo = data.coffee()
    side = np.sqrt(1e6 / (photo.shape[0] * photo.shape[1]))
    height, width = (round(side * n) for n in photo.shape[:2])
    return _made("coffee", photos.resized(photo, (height, width)))


def _made(name: str, photo: Picture) -> Scene:
    gray = np.rint(color.luma(photo)).astype(np.uint8)
    return Scene(name, gray, photo, strokes(gray.shape, _STROKES), photo, None)


def _read(path: Path) -> Picture:
    return rgb(io.imread(path))


def small(scene: Scene, height: int = 160, width: int = 200) -> Scene:
    """A corner of a scene, for quick runs."""
    part = np.s_[:height, :width]
    original = None if scene.original is None else scene.original[part]
    maps = scene.gray[part], scene.colours[part], scene.painted[part]
    return Scene(scene.name, *maps, original, None)
