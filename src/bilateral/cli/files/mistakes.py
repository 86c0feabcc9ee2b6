"""Recognize frequent mistakes with input files, and say what to do."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.cli.files.inputs import Reader
from bilateral.io.errors import FileError
from bilateral.io.messages import printable, size_text

Array = NDArray[Any]

_SUM_DEVIATION = 0.02
"""Largest deviation of a sum of probabilities from 1 by rounding."""


def read_map(reader: Reader, path: Path, photo_path: Path, order: str) -> Array:
    """Read a map with one number per pixel; say so if it is swapped with its photograph.

    Parameters
    ----------
    reader : Reader
    path, photo_path : Path
        The map and its photograph, as given.
    order : str
        The command with the names of its arguments, for the message.
    """
    try:
        return reader.single_channel(path)
    except FileError:
        if _look_swapped(reader, path, photo_path):
            raise _swapped(path, photo_path, "has one number per pixel", order) from None
        raise


def refuse_gray_strokes(path: Path, photo: Array, strokes_path: Path, strokes: Array) -> None:
    """Refuse a coloured picture to colorize together with strokes without colours."""
    has_alpha = strokes.ndim == 3 and strokes.shape[-1] in (2, 4)
    if _has_colours(photo) and not has_alpha and not _has_colours(strokes):
        order = "bilateral colorize GRAY SCRIBBLES"
        raise _swapped(path, strokes_path, "has no colours", order)


def refuse_photo_as_scores(path: Path, scores: Array, photo_path: Path, photo: Array) -> None:
    """Refuse a colour picture as class scores if the photograph looks like scores."""
    is_picture = path.suffix.lower() not in (".npy", ".npz")
    if is_picture and _has_colours(scores) and not _sums_to_one(scores) and _is_scores(photo):
        order = "bilateral segment PROBABILITIES IMAGE"
        raise _swapped(path, photo_path, "looks like a mask or class scores", order)


def refuse_smaller_map(path: Path, values: Array, photo: Array) -> None:
    """Refuse a map that is smaller than its photograph, for commands that need equal sizes."""
    if _is_smaller(values, photo):
        raise FileError(
            f"{printable(path)}: has {size_text(values.shape)} pixels, fewer than the photograph "
            f"with {size_text(photo.shape[:2])}. Enlarge it first: bilateral superres DEPTH "
            f"REFERENCE -o PATH"
        )


def refuse_smaller_photo(path: Path, values: Array, photo_path: Path, photo: Array) -> None:
    """Refuse to enlarge a map that is larger than its photograph."""
    if photo.ndim in (2, 3) and _is_smaller(photo[..., 0] if photo.ndim == 3 else photo, values):
        raise FileError(
            f"{printable(path)}: has {size_text(values.shape)} pixels, more than the photograph "
            f"{printable(photo_path)} with {size_text(photo.shape[:2])}: the two look swapped. "
            f"The order is: bilateral superres DEPTH REFERENCE"
        )


def refuse_holes(path: Path, raw: Array, depth: Array, kind: str) -> None:
    """Refuse a map with unknown pixels for `defocus`; name the command that fills them."""
    holes = ~(depth > 0) if kind == "depth" else ~np.isfinite(depth)
    if not holes.any():
        return
    value = raw[holes][0]
    option = f" --invalid {value:g}" if np.isfinite(value) else ""
    expected = "numbers above 0" if kind == "depth" else "finite numbers"
    raise FileError(
        f"{printable(path)}: expected {expected}, got {value:g} in {_percent(holes)} of the "
        f"pixels. Fill these holes first: bilateral depth DEPTH IMAGE -o PATH{option}"
    )


def _look_swapped(reader: Reader, path: Path, photo_path: Path) -> bool:
    """Return whether a map is a colour picture and its photograph has one number per pixel."""
    try:
        return _has_colours(reader.array(path)) and reader.single_channel(photo_path).size > 0
    except FileError:
        return False


def _swapped(path: Path, other: Path, other_kind: str, order: str) -> FileError:
    return FileError(
        f"{printable(path)}: is a colour picture, and {printable(other)} {other_kind}: the two "
        f"look swapped. The order is: {order}"
    )


def _percent(pixels: Array) -> str:
    return f"{100 * float(pixels.mean()):.2g} %"


def _is_smaller(array: Array, other: Array) -> bool:
    pairs = list(zip(array.shape, other.shape, strict=False))
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


def _has_colours(array: Array) -> bool:
    """Return whether an array is a picture with three different colour channels."""
    is_rgb = array.ndim == 3 and array.shape[-1] in (3, 4)
    return is_rgb and bool((array[..., :3] != array[..., :1]).any())


def _is_scores(array: Array) -> bool:
    return array.ndim == 2 or array.shape[-1] > 4 or _sums_to_one(array)


def _sums_to_one(scores: Array) -> bool:
    """Return whether the last axis holds probabilities, on any scale."""
    totals = scores.sum(axis=-1, dtype=np.float64)
    return float(np.ptp(totals)) <= _SUM_DEVIATION * float(np.max(totals))
