"""Pictures and maps as the tasks want them, from files as people have them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral import io
from bilateral import validation as checks
from bilateral.cli.commands.options import Shared
from bilateral.io.messages import printable, size_text

Array = NDArray[Any]


@dataclass(frozen=True)
class Reader:
    """Reads files by what they are for."""

    limit: int = io.LIMIT
    key: str | None = None
    page: int | None = None

    def any(self, path: Path, *, labels: bool = False) -> Array:
        """Whatever the file holds."""
        key = self.key if path.suffix.lower() == ".npz" else None
        return io.read(path, limit=self.limit, key=key, page=self.page, labels=labels)

    def photo(self, path: Path) -> Array:
        """Gray or RGB; transparency is left out."""
        array = self.any(path)
        if array.ndim >= 3 and array.shape[-1] in (2, 4):
            array = array[..., :-1]
        return array[..., 0] if array.ndim >= 3 and array.shape[-1] == 1 else array

    def plane(self, path: Path, *, labels: bool = False) -> Array:
        """One number per pixel; a gray picture that is stored as RGB will do."""
        array = self.any(path, labels=labels)
        if array.ndim == 3 and array.shape[-1] in (2, 4):
            array = array[..., :-1]
        if array.ndim == 3 and (array == array[..., :1]).all():
            array = array[..., 0]
        if array.ndim != 2:
            raise io.FileError(
                f"{printable(path)}: expected one number per pixel, got {size_text(array.shape)}. "
                f"Choose a page of a TIFF file with --page, or save it as a gray picture."
            )
        return array

    def scores(self, path: Path) -> Array:
        """Classes last, from pages or channels; a picture's range becomes 0 to 1."""
        array = self.any(path)
        if array.ndim == 3 and path.suffix.lower() in (".tif", ".tiff") and self.page is None:
            first = io.read(path, limit=self.limit, page=0)
            array = np.moveaxis(array, 0, -1) if first.ndim == 2 else array
        if array.dtype.kind == "u" and array.size and array.max() > 1:
            array = array / np.float32(np.iinfo(array.dtype).max)
        return array[..., 0] if array.ndim == 3 and array.shape[-1] == 1 else array

    def labels(self, path: Path) -> Array:
        """Numbers of classes; a picture in black and white holds 0 and 1."""
        array = self.plane(path, labels=True)
        return array // 255 if np.isin(array, (0, 255)).all() else array

    def optional_plane(self, path: Path | None) -> Array | None:
        """A confidence, where one is given."""
        return None if path is None else self.plane(path)

    def optional_mask(self, path: Path | None) -> Array | None:
        """True where a picture is not 0, where one is given."""
        return None if path is None else np.asarray(self.plane(path) != 0)


def reader(shared: Shared) -> Reader:
    """As the options say."""
    return Reader(shared.limit * 1_000_000, shared.key, shared.page)


@dataclass(frozen=True)
class Unit:
    """What the numbers of a map mean. Floating point is in units already."""

    scale: float = 1.0
    """Units per step of an integer."""
    invalid: Sequence[float] = ()
    """Numbers, as in the file, that mean unknown."""

    def values(self, raw: Array) -> Array:
        """In units, and NaN where unknown."""
        unknown = np.isin(raw, self.invalid)
        if raw.dtype.kind == "f":
            return np.where(unknown, np.nan, raw).astype(raw.dtype) if unknown.any() else raw
        exact = np.float32 if raw.dtype.itemsize <= 2 else np.float64
        values: Array = raw.astype(exact)
        if self.scale != 1:
            values = values * exact(self.scale)
        values[unknown] = np.nan
        return values

    def exact(self, raw: Array) -> np.dtype[Any]:
        """For results that are rounded once, at the end."""
        return raw.dtype if raw.dtype.kind == "f" else np.dtype(np.float64)

    def stored(self, values: Array, dtype: np.dtype[Any]) -> Array:
        """As a file has them: integers are steps, and unknown is the first invalid number."""
        if dtype.kind == "f":
            return values.astype(dtype, copy=False)
        steps = values / self.scale if self.scale != 1 else values
        unknown = self.invalid[0] if self.invalid else 0
        return checks.as_dtype(np.where(np.isnan(steps), unknown, steps), dtype)
