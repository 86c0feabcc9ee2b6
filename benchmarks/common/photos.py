"""Read the photographs to measure on; crop and tile them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from skimage import data, io, transform

from benchmarks.cuda.drawn import mirrored

Image = NDArray[np.uint8]

# All three lie inside scikit-image's wheel: nothing is downloaded.
PICTURES = data.astronaut, data.chelsea, data.coffee
OWN: dict[str, Callable[[], Image]] = {picture.__name__: picture for picture in PICTURES}
OWN_ENLARGEMENT, OWN_SHAPE = 4, (1600, 2560)
OWN_RECIPE = (
    f"scikit-image's own pictures, enlarged {OWN_ENLARGEMENT} times (bicubic) and mirrored at "
    f"their borders to {OWN_SHAPE[1]} x {OWN_SHAPE[0]}"
)
NONE = "--data: expected a folder with *.jpg or *.png files, got {}."


class Photo(NamedTuple):
    name: str
    pixels: Image


def photographs(folder: Path | None) -> Iterator[Photo]:
    """Read the photographs of a folder, by name; without a folder, our own."""
    if folder is not None and not files(folder):
        raise SystemExit(NONE.format(folder))
    yield from map(read, files(folder)) if folder else map(own, OWN)


def recipe(folder: Path | None) -> str:
    return OWN_RECIPE if folder is None else "from a folder"


def files(folder: Path) -> list[Path]:
    return sorted(path for kind in ("*.jpg", "*.png") for path in folder.glob(kind))


def read(path: Path) -> Photo:
    return Photo(path.stem, rgb(io.imread(path)))


def own(name: str) -> Photo:
    pixels = OWN[name]()
    height, width = (OWN_ENLARGEMENT * side for side in pixels.shape[:2])
    return Photo(name, mirrored(resized(pixels, (height, width)), *OWN_SHAPE))


def resized(pixels: Image, shape: tuple[int, int]) -> Image:
    resize: Callable[..., NDArray[np.float64]] = transform.resize
    large = resize(pixels, shape, order=3, preserve_range=True)
    return np.asarray(np.clip(np.rint(large), 0, 255), np.uint8)


def nearest(low: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Give each pixel the value of the low-resolution pixel that it lies in."""
    pairs = zip(shape, low.shape, strict=True)
    return low[np.ix_(*(((np.arange(n) + 0.5) * m / n).astype(np.intp) for n, m in pairs))]


def centre(pixels: NDArray[Any], height: int, width: int) -> NDArray[Any]:
    top, left = max(0, pixels.shape[0] - height) // 2, max(0, pixels.shape[1] - width) // 2
    return pixels[top : top + height, left : left + width].copy()


def rgb(pixels: NDArray[Any]) -> Image:
    if pixels.dtype != np.uint8:
        pixels = np.rint(pixels / np.iinfo(pixels.dtype).max * 255).astype(np.uint8)
    colors = pixels[..., np.newaxis] if pixels.ndim == 2 else pixels[..., :3]
    return np.ascontiguousarray(np.broadcast_to(colors, (*pixels.shape[:2], 3)))
