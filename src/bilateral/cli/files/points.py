"""Read points as a map: from a picture, or from a list of x, y and value."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.cli.files.inputs import Reader
from bilateral.cli.files.mistakes import read_map
from bilateral.io.errors import FileError
from bilateral.io.messages import os_reason, printable, size_text

Array = NDArray[Any]

TEXT_SUFFIXES = (".csv", ".txt", ".xyz")
_ROW = "x, y and value"
_MANY_OUTSIDE = 0.1
"""Part of the points outside of the photograph that is worth a warning."""


def is_list(path: Path) -> bool:
    """Whether the suffix of a file is that of a list in text."""
    return path.suffix.lower() in TEXT_SUFFIXES


def read_points(reader: Reader, path: Path, photo_path: Path) -> Array:
    """Read a map of points with the size of the photograph, NaN where a list has no point."""
    if is_list(path):
        rows = parse_rows(_text(path, reader.limit), printable(path))
    elif path.suffix.lower() in (".npy", ".npz"):
        rows = reader.array(path)
        if rows.ndim != 2 or rows.shape[1] != 3:
            return reader.single_channel(path)
    else:
        return read_map(reader, path, photo_path, "bilateral complete POINTS REFERENCE")
    return scatter(rows, reader.photo(photo_path).shape[:2], printable(path))


def parse_rows(text: str, name: str) -> Array:
    """Return the numbers of a text, one row of x, y and value per line.

    Commas, semicolons or blanks separate numbers. A first line of names, empty lines, and lines
    that start with # do not count.
    """
    rows: list[list[float]] = []
    lines = enumerate(text.replace(",", " ").replace(";", " ").splitlines(), start=1)
    data = [(number, line.split()) for number, line in lines if not line.lstrip().startswith("#")]
    data = [(number, words) for number, words in data if words]
    for index, (number, words) in enumerate(data):
        try:
            row = [float(word) for word in words]
        except ValueError:
            if index == 0:
                continue
            row = []
        if len(row) != 3:
            raise FileError(
                f"{name}: line {number}: expected {_ROW}, got {' '.join(words)[:40]!r}."
            )
        rows.append(row)
    if not rows:
        raise FileError(f"{name}: expected lines of {_ROW}, got none.")
    return np.array(rows)


def scatter(rows: Array, shape: tuple[int, ...], name: str) -> Array:
    """Write points to their pixels; (0, 0) is the centre of the first pixel.

    Of several points in one pixel, the one with the median value counts. Points outside of the
    photograph do not count.
    """
    x, y, value = rows.T.astype(np.float64)
    finite = np.isfinite(rows).all(axis=1)
    with np.errstate(invalid="ignore"):
        inside = finite & (x > -0.5) & (y > -0.5) & (x < shape[1] - 0.5) & (y < shape[0] - 0.5)
    if not inside.any():
        raise FileError(
            f"{name}: expected points within the photograph with {size_text(shape)} pixels, got "
            f"none. The columns are {_ROW}, with x and y in pixels from the top left."
        )
    outside = int(finite.sum() - inside.sum())
    if outside > _MANY_OUTSIDE * finite.sum():
        warnings.warn(
            f"{name}: {outside} of {int(finite.sum())} points lie outside of the photograph with "
            f"{size_text(shape)} pixels and do not count. The columns are {_ROW}.",
            stacklevel=2,
        )
    pixel = np.rint(y[inside]).astype(np.int64) * shape[1] + np.rint(x[inside]).astype(np.int64)
    value = value[inside]
    order = np.lexsort((value, pixel))
    pixels, first, count = np.unique(pixel[order], return_index=True, return_counts=True)
    out = np.full(shape, np.nan, np.float32)
    out.ravel()[pixels] = value[order][first + (count - 1) // 2]
    return out


def _text(path: Path, limit: int) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
        if len(data) > limit:
            raise FileError(f"{printable(path)}: has more than {limit} bytes.")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise FileError(f"{printable(path)}: cannot be read: {os_reason(error)}.") from None
    except UnicodeDecodeError:
        raise FileError(f"{printable(path)}: expected lines of {_ROW} in UTF-8.") from None
