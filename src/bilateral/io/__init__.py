"""Pictures and maps from files and to files, every bit kept.

One module per format, imported when the first such file turns up; `formats` has the list.
Nothing here prints, and every problem with a file is a `FileError` of one line.
"""

import os
import stat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.io import atomic, formats
from bilateral.io.limits import LIMIT, check_bytes, size_text
from bilateral.io.options import Options
from bilateral.io.problems import (
    CannotHoldError,
    FileError,
    MissingPackageError,
    first_line,
    reason,
    shown,
)

Array = NDArray[Any]

__all__ = ["LIMIT", "FileError", "MissingPackageError", "decode", "encode", "read", "write"]


def read(
    path: str | os.PathLike[str],
    *,
    limit: int = LIMIT,
    key: str | None = None,
    page: int | None = None,
    labels: bool = False,
) -> Array:
    """Read a picture or an array, in the dtype that the file has.

    The content decides on the format; a name that says otherwise is an error.

    Parameters
    ----------
    path : path
        PNG, JPEG, PFM, TIFF, EXR, NPY, NPZ or BMP.
    limit : int
        The most bytes the array may take.
    key : str, optional
        The name of the array in an NPZ file; needed where there are several and none is `data`.
    page : int, optional
        Of a TIFF file, counted from 0. By default all of them.
    labels : bool
        Take a palette's indices rather than its colours.

    Returns
    -------
    (H, W) or (H, W, C) array
        Photographs upright as EXIF says. Several pages are one more axis, before the others. NPY
        and NPZ may hold any shape.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from bilateral import io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "depth.pfm")
    ...     io.write(file, np.array([[1.5, np.inf]], np.float32))
    ...     io.read(file)
    array([[1.5, inf]], dtype=float32)
    """
    options = Options(limit, key, page, labels)
    try:
        return decode(_bytes(path, limit), options, os.fspath(path))
    except MissingPackageError:
        raise
    except FileError as problem:
        raise FileError(f"{shown(path)}: {problem}") from problem.__cause__


def write(
    path: str | os.PathLike[str], array: Array, *, overwrite: bool = True, pages: bool = False
) -> None:
    """Write an array in the format that the path's suffix names, completely or not at all.

    Parameters
    ----------
    path : path
    array : (H, W) or (H, W, C) array
        Of a dtype that the format holds.
    overwrite : bool
        Whether a file of that name may be replaced.
    pages : bool
        Whether the first axis counts the pages of a TIFF file.
    """
    atomic.write_bytes(path, encode(array, path, pages=pages), overwrite=overwrite)


def decode(data: bytes, options: Options, name: str = "") -> Array:
    """The array in the bytes of a file; `name` is what it must agree with."""
    if not data:
        raise FileError("the file is empty.")
    found, claimed = formats.by_content(data), formats.by_suffix(name)
    if found is None:
        raise FileError(
            f"is no {claimed.name} file, whatever its name says."
            if claimed
            else f"is no {formats.names()} file."
        )
    if claimed not in (None, found):
        raise FileError(
            f"is a {found.name} file by its content; rename it to end with {found.suffixes[0]}."
        )
    try:
        array: Array = found.decode()(data, options)
    except FileError:
        raise
    except ModuleNotFoundError as error:
        raise found.missing(error.name) from None
    except MemoryError:
        raise FileError("does not fit into memory.") from None
    except Exception as error:  # codecs raise all kinds of things
        raise FileError(f"is damaged, or no proper {found.name}: {first_line(error)}") from error
    return array


def encode(array: Array, name: str | os.PathLike[str], *, pages: bool = False) -> bytes:
    """The bytes of a file whose format the suffix of `name` tells."""
    wanted = formats.by_suffix(os.fspath(name))
    if wanted is None:
        raise FileError(
            f"{shown(name)}: expected a name that ends with one of "
            f"{', '.join(sorted(formats.SUFFIXES))}."
        )
    array = np.asarray(array)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    try:
        if pages and wanted.name == "TIFF":
            return wanted.encode()(array, pages=True)
        return wanted.encode()(array)
    except CannotHoldError:
        raise FileError(
            f"{shown(name)}: {wanted.name} holds {wanted.holds()}; "
            f"got {array.dtype}, {size_text(array.shape)}. Choose .npy, .tif or another --dtype."
        ) from None
    except ModuleNotFoundError as error:
        raise wanted.missing(error.name) from None


def _bytes(path: str | os.PathLike[str], limit: int) -> bytes:
    try:
        # Not to wait for the other end of a pipe.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            status = os.fstat(file.fileno())
            if stat.S_ISDIR(status.st_mode):
                raise FileError("is a folder, expected a file.")
            if not stat.S_ISREG(status.st_mode):
                raise FileError("is no regular file.")
            check_bytes(status.st_size, limit)
            return file.read(limit + 1)
    except ValueError:  # a null character in the name
        raise FileError("is no name of a file.") from None
    except OSError as error:
        raise FileError(f"cannot be read: {reason(error)}.") from None
