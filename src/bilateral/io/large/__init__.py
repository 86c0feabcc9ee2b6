"""Read and write arrays larger than memory, a few rows at a time: TIFF, Zarr and NPY."""

import os
from typing import Any

import numpy as np

from bilateral.io.errors import FileError, MissingPackageError
from bilateral.io.large.rows import RowReader, RowWriter, regroup
from bilateral.io.messages import one_line, printable

__all__ = ["SUFFIXES", "RowReader", "RowWriter", "can_stream", "create", "open_rows", "regroup"]

SUFFIXES = (".tif", ".tiff", ".zarr", ".npy")
"""Suffixes of the formats that can be read and written in rows."""


def can_stream(path: str | os.PathLike[str]) -> bool:
    """Whether a path names a file of a format that can be read in rows."""
    return os.path.splitext(os.fspath(path).rstrip("/"))[1].lower() in SUFFIXES


def open_rows(path: str | os.PathLike[str], page: int | None = None) -> RowReader:
    """Open an array for reading.

    Parameters
    ----------
    path : path
        A tiled or stripped TIFF file, a Zarr array of version 2 or 3, or an NPY file.
    page : int, optional
        Page of a TIFF file; the first one by default.
    """
    suffix = os.path.splitext(os.fspath(path).rstrip("/"))[1].lower()
    try:
        if suffix == ".zarr":
            from bilateral.io.large.zarr import open_zarr

            return open_zarr(path)
        if suffix == ".npy":
            from bilateral.io.large.npy import NpyRows

            return NpyRows(path)
        from bilateral.io.large.tiff import TiffRows

        return TiffRows(path, page or 0)
    except ModuleNotFoundError as error:
        raise _missing(path, error) from None
    except FileError as error:
        raise FileError(f"{printable(path)}: {error}") from None
    except OSError as error:
        raise FileError(f"{printable(path)}: cannot be read: {one_line(error)}.") from None
    except Exception as error:  # codecs raise exceptions of many types
        message = f"{printable(path)}: is damaged or not a valid {suffix[1:]} file: "
        raise FileError(message + one_line(error)) from error


def create(
    path: str | os.PathLike[str], shape: tuple[int, ...], dtype: Any, zarr_format: int | None = None
) -> RowWriter:
    """Return a writer of an array at a path whose suffix names the format."""
    suffix, kind = os.path.splitext(os.fspath(path).rstrip("/"))[1].lower(), np.dtype(dtype)
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
