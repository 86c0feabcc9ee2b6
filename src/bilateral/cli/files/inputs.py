"""Read input files as the library needs them: photographs, maps, scores, labels and masks."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral import io
from bilateral.io.messages import printable, size_text

Array = NDArray[Any]


@dataclass(frozen=True)
class Reader:
    """Reads files with the limit, the NPZ key and the TIFF page of a command."""

    limit: int = io.LIMIT
    key: str | None = None
    page: int | None = None

    def array(self, path: Path, *, labels: bool = False) -> Array:
        """Read any array."""
        key = self.key if path.suffix.lower() == ".npz" else None
        return io.read(path, limit=self.limit, key=key, page=self.page, labels=labels)

    def photo(self, path: Path) -> Array:
        """Read a photograph, gray or RGB, without its alpha channel."""
        return without_alpha(self.array(path))

    def single_channel(self, path: Path, *, labels: bool = False) -> Array:
        """Read an array with one number per pixel, also from a gray picture saved as RGB."""
        array = self.array(path, labels=labels)
        gray = one_channel(array)
        if gray is None:
            raise io.FileError(
                f"{printable(path)}: expected one number per pixel, got {size_text(array.shape)}. "
                f"Choose a page of a TIFF file with --page, or save it as a gray picture."
            )
        return gray

    def scores(self, path: Path) -> Array:
        """Read class scores from pages or channels; the classes become the last axis.

        Unsigned integers are scaled from the range of their dtype to 0 to 1.
        """
        array = self.array(path)
        if array.ndim == 3 and path.suffix.lower() in (".tif", ".tiff") and self.page is None:
            first_page = io.read(path, limit=self.limit, page=0)
            array = np.moveaxis(array, 0, -1) if first_page.ndim == 2 else array
        if array.dtype.kind == "u" and array.size and array.max() > 1:
            array = array / np.float32(np.iinfo(array.dtype).max)
        return array[..., 0] if array.ndim == 3 and array.shape[-1] == 1 else array

    def labels(self, path: Path) -> Array:
        """Read labels; in a black and white picture, white is the label 1."""
        array = self.single_channel(path, labels=True)
        return array // 255 if np.isin(array, (0, 255)).all() else array

    def optional_single_channel(self, path: Path | None) -> Array | None:
        """Read an array with one number per pixel, or return None without a path."""
        return None if path is None else self.single_channel(path)

    def optional_mask(self, path: Path | None) -> Array | None:
        """Read a picture as a mask, true where it is not 0, or return None without a path."""
        return None if path is None else np.asarray(self.single_channel(path) != 0)


def without_alpha(array: Array) -> Array:
    """Return a photograph, gray or RGB, without its alpha channel."""
    if array.ndim >= 3 and array.shape[-1] in (2, 4):
        array = array[..., :-1]
    return array[..., 0] if array.ndim >= 3 and array.shape[-1] == 1 else array


def one_channel(array: Array) -> Array | None:
    """Return one number per pixel, also of a gray picture stored as RGB; None for colours."""
    if array.ndim == 3 and array.shape[-1] in (2, 4):
        array = array[..., :-1]
    if array.ndim == 3 and (array == array[..., :1]).all():
        array = array[..., 0]
    return array if array.ndim == 2 else None
