"""Choose the path, format and dtype of each result, and write it."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral import io
from bilateral.cli.display.console import write_stdout
from bilateral.cli.errors import UsageError
from bilateral.cli.files.sources import PREVIEW_SUFFIX
from bilateral.io import atomic, formats
from bilateral.io.errors import AlreadyExistsError
from bilateral.io.messages import printable

Array = NDArray[Any]

STDOUT = "-"
_FILE_SUFFIX = re.compile(r"\.(?!v\d)[a-z][a-z0-9]{1,4}", re.IGNORECASE)
"""Suffix of a file rather than of a folder, whose name may end with a number or a version."""
_FLOAT_FORMATS = (".pfm", ".exr")
_EIGHT_BIT_FORMATS = (".jpg", ".jpeg", ".bmp")


def format_suffix(name: str | None) -> str | None:
    """Return the suffix that ``--format`` names, with or without its dot."""
    if name is None:
        return None
    suffix = "." + name.lower().removeprefix(".")
    if suffix not in formats.SUFFIXES:
        listed = ", ".join(sorted(suffix[1:] for suffix in formats.SUFFIXES))
        raise UsageError(f"--format: expected one of {listed}, got {printable(name)}.")
    return suffix


def output_paths(
    output: str, many: bool, default_suffix: Callable[[Path], str], suffix: str | None
) -> Callable[[Path, str], Path]:
    """Return the function that gives the result of each input its path.

    Parameters
    ----------
    output : str
        Value of ``--output``. It names a folder if there are many files, if it ends with a slash,
        or if it exists as a folder.
    many : bool
        Whether there are many files.
    default_suffix : function
        Returns the suffix of the result of an input, if `suffix` is None.
    suffix : str, optional
        Suffix of all results in a folder.

    Returns
    -------
    function of the path and the key of an input
    """
    is_folder = output.endswith(os.sep) or os.path.isdir(output)
    in_folder = many or is_folder
    if many and output == STDOUT:
        raise UsageError("--output: stdout can take only one result; name a folder for many.")
    if many and not is_folder and _FILE_SUFFIX.fullmatch(Path(output).suffix):
        raise UsageError(
            f"--output: expected a folder for many files, got {printable(output)}. A folder may "
            f"have this name if a slash follows it."
        )
    if not in_folder and output != STDOUT and formats.by_suffix(output) is None:
        listed = ", ".join(sorted(formats.SUFFIXES))
        raise UsageError(
            f"--output: expected a name that ends with one of {listed}, got {printable(output)}."
        )

    def output_path(path: Path, key: str) -> Path:
        if not in_folder and output != STDOUT:
            return Path(output)
        name = output_name(key if many else "", path) + (suffix or default_suffix(path))
        return Path(name) if output == STDOUT else Path(output, name)

    return output_path


def output_name(key: str, path: Path) -> str:
    """Return the name of a result in its folder, without suffix.

    The parts of a key name folders and a file that are not hidden and not outside of the folder.
    The name of a file whose key has no such part is that of the input.

    Examples
    --------
    >>> output_name("scene/1", Path("in/depth1.png"))
    'scene/1'
    >>> output_name("", Path("in/depth.png"))
    'depth'
    """
    parts = [part.lstrip(".") for part in key.split("/")]
    return "/".join(part for part in parts if part) or path.stem


def output_dtype(raw: np.dtype[Any], requested: str | None, suffix: str) -> np.dtype[Any]:
    """Return the dtype of a result: the requested one, or the input's if the format allows it."""
    if requested is not None:
        return parse_dtype(requested)
    if suffix in _FLOAT_FORMATS and raw.kind in "bui" and raw.itemsize <= 2:
        return np.dtype(np.float32)
    return np.dtype(np.uint8) if raw.kind == "b" else raw


def parse_dtype(name: str) -> np.dtype[Any]:
    """Return the dtype of real numbers with this name."""
    try:
        dtype = np.dtype(name)
    except TypeError:
        dtype = np.dtype(object)
    if dtype.kind not in "uif":
        raise UsageError(f"--dtype: expected a name such as uint16 or float32, got {name!r}.")
    return dtype


def photo_for_format(array: Array, suffix: str) -> Array:
    """Convert a photograph to a dtype that the format can store. The rounding is invisible."""
    if suffix in _EIGHT_BIT_FORMATS or (suffix == ".png" and array.dtype.kind == "f"):
        return to_uint8(array)
    if suffix in _FLOAT_FORMATS and array.dtype.kind == "u":
        return (array / np.float32(np.iinfo(array.dtype).max)).astype(np.float32)
    return array


def to_uint8(photo: Array) -> Array:
    """Convert a photograph to uint8 for display."""
    if photo.dtype == np.uint8:
        return photo
    white = np.iinfo(photo.dtype).max if photo.dtype.kind in "ui" else 1
    scaled = np.nan_to_num(photo.astype(np.float64) * (255 / white), nan=0, posinf=255, neginf=0)
    return np.clip(np.rint(scaled), 0, 255).astype(np.uint8)


def save(
    path: Path,
    data: bytes,
    *,
    to_stdout: bool = False,
    force: bool = False,
    repeated: bool = False,
) -> None:
    """Write the bytes of a file to its path or to stdout; a repeated job may find its result."""
    if to_stdout:
        write_stdout(data)
        return
    make_folder(path.parent)
    atomic.write_bytes(path, data, overwrite=force, accept_same=repeated)


def make_folder(folder: Path) -> None:
    """Make a folder and its parents."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"{printable(folder)}: the folder cannot be made: {error.strerror}."
        raise io.FileError(message) from None


def preview_path(path: Path) -> Path:
    """Return the path of the preview of a result."""
    return path.with_name(path.stem + PREVIEW_SUFFIX)


def refuse_unknown_format(path: Path) -> None:
    """Refuse a result whose suffix names no format, before the work rather than after it."""
    if formats.by_suffix(path) is None:
        raise io.FileError(
            f"{printable(path)}: expected a name that ends with one of "
            f"{', '.join(sorted(formats.SUFFIXES))}. Choose a format with --format."
        )


def refuse_existing(path: Path, force: bool) -> None:
    """Refuse to replace a file without ``--force``, before the work rather than after it."""
    if not force and path.is_file():
        raise AlreadyExistsError(printable(path))
