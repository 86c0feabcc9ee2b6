"""Read and write arrays larger than memory, a few rows at a time: TIFF, Zarr and NPY."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.io.errors import FileError, MissingPackageError
from bilateral.io.large.rows import RowReader, RowWriter, regroup
from bilateral.io.messages import one_line, printable

__all__ = [
    "SUFFIXES",
    "RowReader",
    "RowWriter",
    "can_stream",
    "create",
    "open_rows",
    "regroup",
    "suffix_of",
]

Array = NDArray[Any]

SUFFIXES = (".tif", ".tiff", ".zarr", ".npy")
"""Suffixes of the formats that can be read and written in rows."""


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Return the suffix that names the format; an array of a group in a Zarr folder has its own."""
    parts = os.fspath(path).replace(os.sep, "/").rstrip("/").split("/")
    if any(part.lower().endswith(".zarr") for part in parts):
        return ".zarr"
    return os.path.splitext(parts[-1])[1].lower()


def can_stream(path: str | os.PathLike[str]) -> bool:
    """Whether a path names a file of a format that can be read in rows."""
    return suffix_of(path) in SUFFIXES


def open_rows(path: str | os.PathLike[str], page: int | None = None) -> RowReader:
    """Open an array for reading.

    Parameters
    ----------
    path : path
        A tiled or stripped TIFF file, a Zarr array of version 2 or 3, or an NPY file.
    page : int, optional
        Page of a TIFF file; the first one by default.
    """
    with _named(path):
        return _NamedReader(path, _open(path, page or 0))


def _open(path: str | os.PathLike[str], page: int) -> RowReader:
    suffix = suffix_of(path)
    if suffix == ".zarr":
        from bilateral.io.large.zarr import open_zarr

        return open_zarr(path)
    if suffix == ".npy":
        from bilateral.io.large.npy import NpyRows

        return NpyRows(path)
    from bilateral.io.large.tiff import TiffRows

    return TiffRows(path, page)


class _NamedReader:
    """A reader whose errors name the file."""

    def __init__(self, path: str | os.PathLike[str], reader: RowReader) -> None:
        self._path, self._reader = path, reader
        self.shape, self.dtype, self.row_step = reader.shape, reader.dtype, reader.row_step
        self.zarr_format = reader.zarr_format

    def rows(self, start: int, stop: int) -> Array:
        """Read some rows."""
        with _named(self._path):
            return self._reader.rows(start, stop)

    def close(self) -> None:
        """Close the file."""
        self._reader.close()


@contextmanager
def _named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what goes wrong while a file is read into errors that name it."""
    try:
        yield
    except MemoryError:
        raise
    except ModuleNotFoundError as error:
        raise _missing(path, error) from None
    except FileError as error:
        raise FileError(f"{printable(path)}: {error}") from None
    except OSError as error:
        raise FileError(f"{printable(path)}: cannot be read: {one_line(error)}.") from None
    except Exception as error:  # codecs raise exceptions of many types
        message = f"{printable(path)}: is damaged or not a valid {suffix_of(path)[1:]} file: "
        raise FileError(message + one_line(error)) from error


def create(
    path: str | os.PathLike[str], shape: tuple[int, ...], dtype: Any, zarr_format: int | None = None
) -> RowWriter:
    """Return a writer of an array at a path whose suffix names the format."""
    suffix, kind = suffix_of(path), np.dtype(dtype)
    try:
        if suffix == ".zarr":
            from bilateral.io.large.zarr import ZarrWriter

            return ZarrWriter(path, shape, kind, zarr_format or 3)
        if suffix == ".npy":
            from bilateral.io.large.npy import NpyWriter

            return NpyWriter(path, shape, kind)
        from bilateral.io.large.tiff import TiffRowsWriter

        return TiffRowsWriter(path, shape, kind)
    except ModuleNotFoundError as error:
        raise _missing(path, error) from None


def _missing(path: str | os.PathLike[str], error: ModuleNotFoundError) -> MissingPackageError:
    return MissingPackageError(
        f"{printable(path)}: this format needs the package {error.name}. "
        f"Install it: pip install 'bilateral[large]'."
    )
