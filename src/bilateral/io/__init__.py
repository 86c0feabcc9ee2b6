"""Read and write pictures and maps in files, without loss of bits.

Each format has its own module, which is imported with the first file of that format; `formats`
lists them. This package prints nothing. Every problem with a file raises a `FileError` whose
message is one line.
"""

import os
import stat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.io import atomic, formats
from bilateral.io.errors import CannotHoldError, FileError, MissingPackageError
from bilateral.io.limits import LIMIT, check_bytes
from bilateral.io.messages import one_line, os_reason, printable, size_text
from bilateral.io.options import Options

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
    """Read a picture or an array, in the dtype of the file.

    The format is recognized by the content of the file. A file whose suffix names another format
    is refused.

    Parameters
    ----------
    path : path
        A PNG, JPEG, PFM, TIFF, EXR, NPY, NPZ or BMP file.
    limit : int
        Maximum size in bytes of the array, and of each array that it is decoded from.
    key : str, optional
        Name of the array in an NPZ file. Required if the file has several arrays and none of them
        is named `data`.
    page : int, optional
        Page of a TIFF file, counted from 0. By default, all pages are read.
    labels : bool
        Return the indices of a palette instead of its colours.

    Returns
    -------
    (H, W) or (H, W, C) array
        Photographs are turned upright as EXIF says. Several pages add an axis before the others.
        NPY and NPZ files may hold any shape.

    Raises
    ------
    FileError
        The file cannot be read; the message names the file and the reason.
    MissingPackageError
        The format needs a package that is not installed; the message says how to install it.

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
        return decode(_file_bytes(path, limit), options, os.fspath(path))
    except MissingPackageError:
        raise
    except FileError as error:
        raise FileError(f"{printable(path)}: {error}") from error.__cause__


def write(
    path: str | os.PathLike[str], array: Array, *, overwrite: bool = True, pages: bool = False
) -> None:
    """Write an array in the format that the path's suffix names.

    The file is written completely or not at all.

    Parameters
    ----------
    path : path
    array : (H, W) or (H, W, C) array
        Its dtype must be one that the format can store.
    overwrite : bool
        Allow to replace an existing file.
    pages : bool
        Store each element of the first axis as a page of a TIFF file.

    Raises
    ------
    FileError
        The file cannot be written, or the format cannot store the array.
    MissingPackageError
        The format needs a package that is not installed; the message says how to install it.
    """
    atomic.write_bytes(path, encode(array, path, pages=pages), overwrite=overwrite)


def decode(data: bytes, options: Options, name: str = "") -> Array:
    """Return the array in the bytes of a file.

    Parameters
    ----------
    data : bytes
    options : Options
    name : str
        Name of the file. Its suffix, if it is known, must agree with the content.
    """
    if not data:
        raise FileError("the file is empty.")
    detected, claimed = formats.by_content(data), formats.by_suffix(name)
    if detected is None:
        raise FileError(
            f"is no {claimed.name} file by its content; check the file and its name."
            if claimed
            else f"is no {formats.names()} file."
        )
    if claimed not in (None, detected):
        raise FileError(
            f"is a {detected.name} file by its content; rename it to end with "
            f"{detected.suffixes[0]}."
        )
    try:
        array: Array = detected.decode()(data, options)
    except FileError:
        raise
    except ModuleNotFoundError as error:
        raise detected.missing_package(error.name) from None
    except MemoryError:
        raise FileError("does not fit into memory.") from None
    except Exception as error:  # codecs raise exceptions of many types
        message = f"is damaged or not a valid {detected.name} file: {one_line(error)}"
        raise FileError(message) from error
    return array


def encode(array: Array, name: str | os.PathLike[str], *, pages: bool = False) -> bytes:
    """Return the bytes of a file in the format that the suffix of `name` names.

    Parameters
    ----------
    array : (H, W) or (H, W, C) array
    name : path
    pages : bool
        Store each element of the first axis as a page of a TIFF file.
    """
    target = formats.by_suffix(os.fspath(name))
    if target is None:
        raise FileError(
            f"{printable(name)}: expected a name that ends with one of "
            f"{', '.join(sorted(formats.SUFFIXES))}."
        )
    array = np.asarray(array)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    try:
        if pages and target.name == "TIFF":
            return target.encode()(array, pages=True)
        return target.encode()(array)
    except CannotHoldError:
        raise FileError(
            f"{printable(name)}: {target.name} holds {target.holds()}; "
            f"got {array.dtype}, {size_text(array.shape)}. Choose .npy, .tif or another --dtype."
        ) from None
    except ModuleNotFoundError as error:
        raise target.missing_package(error.name) from None


def _file_bytes(path: str | os.PathLike[str], limit: int) -> bytes:
    try:
        # O_NONBLOCK: opening a pipe must not wait for its writer.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            status = os.fstat(file.fileno())
            if stat.S_ISDIR(status.st_mode):
                raise FileError("is a folder, expected a file.")
            if not stat.S_ISREG(status.st_mode):
                raise FileError("is no regular file, but a device or a pipe.")
            check_bytes(status.st_size, limit)
            return file.read(status.st_size)
    except ValueError:  # a null character in the name
        raise FileError("is not a valid file name.") from None
    except OSError as error:
        raise FileError(f"cannot be read: {os_reason(error)}.") from None
