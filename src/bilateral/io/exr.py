"""Read and write OpenEXR by its own library: float16, float32 and uint32 channels."""

import importlib.util
import io
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.io import exr_process
from bilateral.io.errors import CannotHoldError
from bilateral.io.options import Options

Array = NDArray[Any]

HOLDS = "float16, float32 and uint32; gray, RGB or RGBA"
_ORDER = "RGBA"
_lock = threading.Lock()


def decode(data: bytes, options: Options) -> Array:
    """Return (H, W) for one channel, (H, W, 3) or (H, W, 4) for R, G, B and A.

    OpenEXR prints errors to stdout and stderr. So a process of its own decodes the file: only
    that process has streams that no other thread prints to.
    """
    if importlib.util.find_spec("OpenEXR") is None:
        raise ModuleNotFoundError(name="OpenEXR")
    return exr_process.decode(data, options.limit)


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
