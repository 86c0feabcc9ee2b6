"""How much a file may unpack to: a small file can claim any size."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bilateral.io.problems import FileError

LIMIT = 1 << 30
"""Bytes of one picture or array in memory, unless asked for more."""


def check_size(shape: Sequence[int], dtype: Any, limit: int) -> None:
    """Refuse an array that is empty or too large, before any memory is taken for it.

    Parameters
    ----------
    shape : sequence of int
        As the file's header claims.
    dtype : dtype
    limit : int
        In bytes.
    """
    if not shape or min(shape) < 1:
        raise FileError(f"expected at least one pixel, got the size {size_text(shape)}.")
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size > limit:
        raise FileError(
            f"{size_text(shape)} pixels would take {_megabytes(size)} MB of memory, more than the "
            f"{_megabytes(limit)} MB allowed. Raise the limit (--limit) if the file is trusted."
        )


def check_bytes(size: int, limit: int) -> None:
    """Refuse to read a file larger than the array it may hold."""
    if size > limit:
        raise FileError(
            f"the file has {_megabytes(size)} MB, more than the {_megabytes(limit)} MB allowed. "
            f"Raise the limit (--limit) if the file is trusted."
        )


def size_text(shape: Sequence[int]) -> str:
    """A shape as people write it, such as 480 x 640 x 3."""
    return " x ".join(map(str, shape)) or "of a single number"


def _megabytes(size: int) -> str:
    return f"{max(1, -(-size // 1_000_000)):,}"
