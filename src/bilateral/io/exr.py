"""Read and write OpenEXR by its own library: float16, float32 and uint32 channels."""

import contextlib
import io
import os
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.io.errors import CannotHoldError, FileError
from bilateral.io.limits import check_size
from bilateral.io.options import Options

Array = NDArray[Any]

HOLDS = "float16, float32 and uint32; gray, RGB or RGBA"
_ORDER = "RGBA"
_lock = threading.Lock()


def decode(data: bytes, options: Options) -> Array:
    """Return (H, W) for one channel, (H, W, 3) or (H, W, 4) for R, G, B and A."""
    import OpenEXR

    with _lock, _silence():
        with OpenEXR.File(io.BytesIO(data), header_only=True, num_threads=0) as file:
            low, high = file.header()["dataWindow"]
            width, height = (int(b) - int(a) + 1 for a, b in zip(low, high, strict=True))
            count = max(1, len(file.header()["channels"]))
        check_size((height, width, count), np.float32, options.limit)
        with OpenEXR.File(io.BytesIO(data), separate_channels=True, num_threads=0) as file:
            pixels = {name: np.array(c.pixels) for name, c in file.channels().items()}
    names = [name for name in _ORDER if name in pixels]
    if len(pixels) == 1:
        names = list(pixels)
    elif names not in (["R", "G", "B"], ["R", "G", "B", "A"]):
        listed = ", ".join(ascii(name)[1:-1][:40] for name in list(pixels)[:12])
        raise FileError(f"expected one channel, or R, G, B (and A), got: {listed or 'none'}.")
    planes = [pixels[name] for name in names]
    if {plane.shape for plane in planes} != {(height, width)}:
        raise FileError("channels of different sizes are not supported.")
    if len({plane.dtype.kind for plane in planes}) > 1:
        raise FileError("a mix of integer and floating point channels is not supported.")
    return planes[0] if len(planes) == 1 else np.stack(planes, axis=-1)


def encode(array: Array) -> bytes:
    """Return an EXR file, compressed without loss. Gray is stored as the channel Y."""
    import OpenEXR

    if array.dtype not in (np.float16, np.float32, np.uint32):
        raise CannotHoldError
    if array.ndim == 2:
        channels = {"Y": np.ascontiguousarray(array)}
    elif array.ndim == 3 and array.shape[2] in (3, 4):
        channels = {
            name: np.ascontiguousarray(array[..., i])
            for i, name in enumerate(_ORDER[: array.shape[2]])
        }
    else:
        raise CannotHoldError
    header = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
    stream = io.BytesIO()
    with _lock:
        OpenEXR.File(header, channels, num_threads=0).write(stream)
    return stream.getvalue()


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Discard stdout and stderr: OpenEXR prints its errors there, and we raise one instead."""
    try:
        stderr_copy = os.dup(2)
    except OSError:  # stderr is closed
        stderr_copy = -1
    with open(os.devnull, "w") as null, contextlib.redirect_stdout(null):
        if stderr_copy >= 0:
            os.dup2(null.fileno(), 2)
        try:
            yield
        finally:
            if stderr_copy >= 0:
                os.dup2(stderr_copy, 2)
                os.close(stderr_copy)
