"""Read and write PNG with 8 or 16 bits per channel, by imagecodecs.

Pillow would reduce colour pictures of 16 bits to 8.
"""

import io
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.io.errors import CannotHoldError, FileError
from bilateral.io.limits import check_size
from bilateral.io.options import Options
from bilateral.io.orientation import from_exif, upright

Array = NDArray[Any]

HOLDS = "uint8 and uint16; gray, gray and alpha, RGB or RGBA"
_CHANNELS = {0: 1, 2: 3, 3: 4, 4: 2, 6: 4}
"""Number of channels by PNG colour type. A palette (3) may have transparent colours."""
_PALETTE = 3
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PIXEL_CHUNKS = (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND")
# Level 3 takes a third of the default level's time and compresses depth maps about as well.
_COMPRESSION = {"level": 3}


def decode(data: bytes, options: Options) -> Array:
    """Return the pixels of a PNG file; for a palette its colours, or its indices as labels."""
    import imagecodecs

    if data[12:16] != b"IHDR" or len(data) < 29:
        raise FileError("the header is damaged.")
    width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    depth, color_type = data[24], data[25]
    channels = _CHANNELS.get(color_type, 4)
    dtype = np.uint16 if depth == 16 else np.uint8
    check_size((height, width, channels), dtype, options.limit)
    pixel_data, exif, has_transparency = _split_chunks(data)
    if has_transparency and channels in (1, 3):
        check_size((height, width, channels + 1), dtype, options.limit)
    as_indices = color_type == _PALETTE and options.labels
    array = _palette_indices(pixel_data) if as_indices else imagecodecs.png_decode(pixel_data)
    return array if exif is None else upright(array, from_exif(exif))


def encode(array: Array) -> bytes:
    """Return a PNG file with the bit depth of the array."""
    import imagecodecs

    if array.dtype not in (np.uint8, np.uint16):
        raise CannotHoldError
    if not (array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (2, 3, 4))):
        raise CannotHoldError
    return bytes(imagecodecs.png_encode(np.ascontiguousarray(array), **_COMPRESSION))


def _palette_indices(data: bytes) -> Array:
    from PIL import PngImagePlugin

    with PngImagePlugin.PngImageFile(io.BytesIO(data)) as picture:
        return np.array(picture)


def _split_chunks(data: bytes) -> tuple[bytes, bytes | None, bool]:
    """Return a PNG file with only the chunks that pixels need, and the EXIF data.

    The third value tells whether a chunk declares a transparent colour, which adds a channel.
    The checksums of these chunks are verified here. Other chunks are removed because libpng
    prints their errors to stderr. A second header is refused: libpng decodes by the last one.
    """
    parts, exif, names = [_SIGNATURE], None, []
    at, name = len(_SIGNATURE), b""
    while name != b"IEND":
        length, name = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        end = at + 12 + length
        if end > len(data):
            raise FileError("the file ends too early.")
        if name in _PIXEL_CHUNKS:
            if zlib.crc32(data[at + 4 : end - 4]) != int.from_bytes(data[end - 4 : end], "big"):
                raise FileError(f"is damaged: the checksum of a chunk {name.decode()} is wrong.")
            parts.append(data[at:end])
            names.append(name)
        elif name == b"eXIf":
            exif = data[at + 8 : end - 4]
        elif not name[:1].islower():
            raise FileError("is damaged: it has a critical chunk of an unknown type.")
        at = end
    if names.count(b"IHDR") != 1:
        raise FileError("is damaged: it declares its size twice.")
    return b"".join(parts), exif, b"tRNS" in names
