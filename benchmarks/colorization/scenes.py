"""Gray pictures with strokes, from a folder or made from scikit-image's photographs."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skimage import data, io, transform

from bilateral import color
from bilateral.cli.demo.strokes import strokes

Picture = NDArray[np.uint8]

_DIFFERENT = 0.01 * 255  # summed over RGB: where a marked picture differs, somebody painted
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
    """One for each subfolder with `gray`, `marked`, and `original` or `levin_result`.

    Strokes get the colours of the original where there is one: those painted differ from it.
    """
    for path in sorted(path for path in folder.iterdir() if path.is_dir()):
        found = {file.stem: file for file in sorted(path.iterdir())}
        if not {"gray", "marked"} <= found.keys() or not {"original", _RESULT} & found.keys():
            continue
        gray, marked = _rgb(found["gray"]), _rgb(found["marked"])
        painted = np.abs(gray.astype(int) - marked).sum(axis=2) > _DIFFERENT
        original = _rgb(found["original"]) if "original" in found else None
        authors = _rgb(found[_RESULT]) if _RESULT in found else None
        colours = marked if original is None else original
        yield Scene(path.name, gray[..., 0], colours, painted, original, authors)


def made() -> Iterator[Scene]:
    """Photographs that come with scikit-image, with strokes of their true colours."""
    for name in ("coffee", "chelsea", "astronaut"):
        yield _made(name, getattr(data, name)())


def megapixel() -> Scene:
    """A photograph of one megapixel, for the speed."""
    photo = data.coffee()
    side = np.sqrt(1e6 / (photo.shape[0] * photo.shape[1]))
    shape = [round(side * n) for n in photo.shape[:2]]
    large = transform.resize(photo, shape, order=3, preserve_range=True)
    return _made("coffee", np.clip(np.rint(large), 0, 255).astype(np.uint8))


def _made(name: str, photo: Picture) -> Scene:
    gray = np.rint(color.luma(photo)).astype(np.uint8)
    return Scene(name, gray, photo, strokes(gray.shape, _STROKES), photo, None)


def _rgb(path: Path) -> Picture:
    pixels: NDArray[Any] = io.imread(path)
    if pixels.ndim == 2:
        pixels = np.repeat(pixels[..., np.newaxis], 3, axis=2)
    return np.ascontiguousarray(pixels[..., :3])
