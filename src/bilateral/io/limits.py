"""Limit the memory that a file may take: the header of a small file can claim any size."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bilateral.io.errors import FileError
from bilateral.io.messages import size_text

LIMIT = 1 << 30
"""Default limit for one picture or array in memory, in bytes."""


def check_size(shape: Sequence[int], dtype: Any, limit: int) -> None:
    """Refuse an array that is empty or too large, before memory is allocated for it.

    Parameters
    ----------
    shape : sequence of int
        Shape that the header of the file claims.
    dtype : dtype
    limit : int
        Maximum size of the array in bytes.
    """
    if not shape or min(shape) < 1:
        raise FileError(f"expected at least one pixel, got the size {size_text(shape)}.")
    size = math.prod(shape) * np.dtype(dtype).itemsize
    check_memory(f"{size_text(shape)} pixels", size, limit)


def check_memory(part: str, size: int, limit: int) -> None:
    """Refuse a part of a file that takes more memory than allowed.

    Parameters
    ----------
    part : str
        Name of the part in the message, in the plural.
    size : int
        Memory in bytes.
    limit : int
    """
    _refuse_above(limit, size, f"{part} would take {_megabytes(size)} MB of memory")


def check_bytes(size: int, limit: int) -> None:
    """Refuse to read a file that is larger than the largest allowed array."""
    _refuse_above(limit, size, f"the file has {_megabytes(size)} MB")


def _refuse_above(limit: int, size: int, claim: str) -> None:
    if size > limit:
        raise FileError(
            f"{claim}, more than the {_megabytes(limit)} MB allowed. "
            f"Raise the limit (--limit) if you trust the file."
        )


def _megabytes(size: int) -> str:
    return f"{max(1, -(-size // 1_000_000)):,}"
