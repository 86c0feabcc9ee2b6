"""OpenEXR: half, float and 32-bit unsigned channels, by the format's own library."""

import contextlib
import io
import os
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.io.limits import check_size
from bilateral.io.options import Options
from bilateral.io.problems import CannotHoldError, FileError

Array = NDArray[Any]

HOLDS = "float16, float32 and uint32; gray, RGB or RGBA"
_ORDER = "RGBA"
_lock = threading.Lock()


def decode(data: bytes, options: Options) -> Array:
    """(H, W) for one channel, (H, W, 3) or (H, W, 4) for R, G, B and A."""
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
        raise FileError("integer channels beside floating point ones are not supported.")
    return planes[0] if len(planes) == 1 else np.stack(planes, axis=-1)


def encode(array: Array) -> bytes:
    """Gray as the channel Y, compressed without loss."""
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
    """The library prints what it finds wrong, to both streams; we raise one error instead."""
    try:
        kept = os.dup(2)
    except OSError:  # closed
        kept = -1
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        if kept >= 0:
            os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            if kept >= 0:
                os.dup2(kept, 2)
                os.close(kept)
