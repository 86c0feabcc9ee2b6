"""Where results go, in which format and dtype."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral import io
from bilateral.cli.files.pairing import PREVIEW, UsageError
from bilateral.io import atomic, formats
from bilateral.io.messages import printable

Array = NDArray[Any]

STDOUT = "-"
_FLOATING = (".pfm", ".exr")
_EIGHT_BITS = (".jpg", ".jpeg", ".bmp")


def suffix_of(name: str | None) -> str | None:
    """The suffix that ``--format`` means, with or without its dot."""
    if name is None:
        return None
    suffix = "." + name.lower().removeprefix(".")
    if suffix not in formats.SUFFIXES:
        known = ", ".join(sorted(suffix[1:] for suffix in formats.SUFFIXES))
        raise UsageError(f"--format: expected one of {known}, got {printable(name)}.")
    return suffix


def place(
    output: str, many: bool, suffix: Callable[[Path], str], wanted: str | None
) -> Callable[[Path, str], Path]:
    """Where the result of each input goes.

    Parameters
    ----------
    output : str
        What was given: a folder where there are many files, or ends with a slash.
    many : bool
    suffix : function
        The suffix of the result of an input, unless `wanted` says so.
    wanted : str, optional

    Returns
    -------
    function of an input and of its key
    """
    folder = many or output.endswith(os.sep) or os.path.isdir(output)
    if many and output == STDOUT:
        raise UsageError("--output: many results do not fit into stdout; name a folder.")
    if many and formats.by_suffix(output) and not os.path.isdir(output):
        raise UsageError(f"--output: expected a folder for many files, got {printable(output)}.")
    if not folder and output != STDOUT and formats.by_suffix(output) is None:
        known = ", ".join(sorted(formats.SUFFIXES))
        raise UsageError(f"--output: expected a name with one of {known}, got {printable(output)}.")

    def where(path: Path, key: str) -> Path:
        if not folder and output != STDOUT:
            return Path(output)
        name = (key if many else path.stem) + (wanted or suffix(path))
        return Path(name) if output == STDOUT else Path(output, name)

    return where


def dtype_for(raw: np.dtype[Any], asked: str | None, suffix: str) -> np.dtype[Any]:
    """The result's dtype: as asked, or the input's if the format can hold it."""
    if asked is not None:
        return parse_dtype(asked)
    if suffix in _FLOATING and raw.kind in "bui" and raw.itemsize <= 2:
        return np.dtype(np.float32)
    return np.dtype(np.uint8) if raw.kind == "b" else raw


def parse_dtype(name: str) -> np.dtype[Any]:
    """A dtype of real numbers by its name."""
    try:
        found = np.dtype(name)
    except TypeError:
        found = np.dtype(object)
    if found.kind not in "uif":
        raise UsageError(f"--dtype: expected one such as uint16 or float32, got {name!r}.")
    return found


def photo_for(array: Array, suffix: str) -> Array:
    """A photograph in a dtype that the format holds: rounding it is no loss to speak of."""
    if suffix in _EIGHT_BITS or (suffix == ".png" and array.dtype.kind == "f"):
        return eight_bits(array)
    if suffix in _FLOATING and array.dtype.kind == "u":
        return (array / np.float32(np.iinfo(array.dtype).max)).astype(np.float32)
    return array


def eight_bits(photo: Array) -> Array:
    """For display."""
    if photo.dtype == np.uint8:
        return photo
    white = np.iinfo(photo.dtype).max if photo.dtype.kind in "ui" else 1
    scaled = np.nan_to_num(photo.astype(np.float64) * (255 / white), nan=0, posinf=255, neginf=0)
    return np.clip(np.rint(scaled), 0, 255).astype(np.uint8)


def save(path: Path, data: bytes, *, to_stdout: bool = False, force: bool = False) -> None:
    """Write a file, or its bytes to stdout."""
    if to_stdout:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    make_folder(path.parent)
    atomic.write_bytes(path, data, overwrite=force)


def make_folder(folder: Path) -> None:
    """Make a folder, and those around it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise io.FileError(
            f"{printable(folder)}: cannot be made a folder: {error.strerror}."
        ) from None


def preview_of(path: Path) -> Path:
    """Where the preview of a result goes."""
    return path.with_name(path.stem + PREVIEW)


def must_not_exist(path: Path, force: bool) -> None:
    """Refuse before the work rather than after it."""
    if not force and path.is_file():
        raise io.FileError(f"{printable(path)}: exists already. Replace it with --force.")
