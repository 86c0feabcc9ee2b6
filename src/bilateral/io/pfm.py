"""Read and write PFM (portable float map): float32, gray or RGB, rows from bottom to top."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.io.errors import CannotHoldError, FileError
from bilateral.io.limits import check_size
from bilateral.io.options import Options

Array = NDArray[Any]

HOLDS = "float32, gray or RGB"
_HEADER = re.compile(
    rb"P([Ff])\s+(\d{1,9})\s+(\d{1,9})\s+([-+]?[0-9.]{1,20}(?:[eE][-+]?\d{1,3})?)\s"
)


def decode(data: bytes, options: Options) -> Array:
    """Return the values of a PFM file. Only the sign of its scale is used: the byte order."""
    header = _HEADER.match(data)
    if header is None:
        raise FileError("the header is damaged: expected width, height and scale.")
    scale = float(header[4])
    if scale == 0:
        raise FileError("the header is damaged: the scale is 0.")
    channels = (3,) if header[1] == b"F" else ()
    shape = (int(header[3]), int(header[2]), *channels)
    check_size(shape, np.float32, options.limit)
    count = int(np.prod(shape, dtype=np.int64))
    if len(data) - header.end() < 4 * count:
        raise FileError(
            f"the file ends too early: expected {4 * count:,} bytes of values, "
            f"got {len(data) - header.end():,}."
        )
    values = np.frombuffer(data, "<f4" if scale < 0 else ">f4", count, header.end())
    return np.ascontiguousarray(values.reshape(shape)[::-1], np.float32)


def encode(array: Array) -> bytes:
    """Return a PFM file: little-endian, with the scale -1."""
    if array.dtype != np.float32 or not (array.ndim == 2 or array.shape[2:] == (3,)):
        raise CannotHoldError
    height, width = array.shape[:2]
    header = f"P{'f' if array.ndim == 2 else 'F'}\n{width} {height}\n-1.0\n"
    return header.encode() + np.ascontiguousarray(array[::-1], "<f4").tobytes()
