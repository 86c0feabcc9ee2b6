"""PNG of 8 and 16 bits, by imagecodecs: Pillow reads only 8 of a colour picture's 16."""

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.io.limits import check_size
from bilateral.io.options import Options
from bilateral.io.orientation import from_exif, upright
from bilateral.io.problems import CannotHoldError, FileError

Array = NDArray[Any]

HOLDS = "uint8 and uint16; gray, gray and alpha, RGB or RGBA"
_CHANNELS = {0: 1, 2: 3, 3: 4, 4: 2, 6: 4}
_PALETTE = 3
# Depth maps compress about as well, in a third of the default's time.
_FAST = {"level": 3}


def decode(data: bytes, options: Options) -> Array:
    """Pixels as they are in the file; a palette's colours, or its indices if those are labels."""
    import imagecodecs

    if data[12:16] != b"IHDR" or len(data) < 29:
        raise FileError("the header is damaged.")
    width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    depth, kind = data[24], data[25]
    shape = (height, width, _CHANNELS.get(kind, 4))
    check_size(shape, np.uint16 if depth == 16 else np.uint8, options.limit)
    indices = kind == _PALETTE and options.labels
    array = _indices(data) if indices else imagecodecs.png_decode(data)
    exif = _chunk(data, b"eXIf")
    return array if exif is None else upright(array, from_exif(exif))


def encode(array: Array) -> bytes:
    """Of the array's own depth."""
    import imagecodecs

    if array.dtype not in (np.uint8, np.uint16):
        raise CannotHoldError
    if not (array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (2, 3, 4))):
        raise CannotHoldError
    return bytes(imagecodecs.png_encode(np.ascontiguousarray(array), **_FAST))


def _indices(data: bytes) -> Array:
    from PIL import PngImagePlugin

    with PngImagePlugin.PngImageFile(io.BytesIO(data)) as picture:
        return np.array(picture)


def _chunk(data: bytes, wanted: bytes) -> bytes | None:
    """The first chunk of a name."""
    at = 8
    while at + 12 <= len(data):
        length, name = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        if name == wanted:
            return data[at + 8 : at + 8 + length]
        at += 12 + length
    return None
