"""PNG of 8 and 16 bits, by imagecodecs: Pillow reads only 8 of a colour picture's 16."""

import io
import zlib
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
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_NEEDED = (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND")
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
    needed, exif = _sorted_out(data)
    indices = kind == _PALETTE and options.labels
    array = _indices(needed) if indices else imagecodecs.png_decode(needed)
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


def _sorted_out(data: bytes) -> tuple[bytes, bytes | None]:
    """Only the chunks that pixels need, checked: of others' faults libpng tells on stderr; EXIF."""
    parts, exif = [_SIGNATURE], None
    at, name = len(_SIGNATURE), b""
    while name != b"IEND":
        length, name = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        end = at + 12 + length
        if end > len(data):
            raise FileError("the file ends too early.")
        if name in _NEEDED:
            if zlib.crc32(data[at + 4 : end - 4]) != int.from_bytes(data[end - 4 : end], "big"):
                raise FileError(f"is damaged: a checksum of {name.decode()} is wrong.")
            parts.append(data[at:end])
        elif name == b"eXIf":
            exif = data[at + 8 : end - 4]
        elif not name[:1].islower():
            raise FileError("is damaged: an unknown part that cannot be left out.")
        at = end
    return b"".join(parts), exif
