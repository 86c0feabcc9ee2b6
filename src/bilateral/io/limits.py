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
    if size > limit:
        raise FileError(
            f"{size_text(shape)} pixels would take {_megabytes(size)} MB of memory, more than the "
            f"{_megabytes(limit)} MB allowed. Raise the limit (--limit) if you trust the file."
        )


def check_bytes(size: int, limit: int) -> None:
    """Refuse to read a file that is larger than the largest allowed array."""
    if size > limit:
        raise FileError(
            f"the file has {_megabytes(size)} MB, more than the {_megabytes(limit)} MB allowed. "
            f"Raise the limit (--limit) if you trust the file."
        )


def _megabytes(size: int) -> str:
    return f"{max(1, -(-size // 1_000_000)):,}"
