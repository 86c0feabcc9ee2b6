"""Read and write JPEG and BMP with 8 bits per channel, by Pillow.

Pillow refuses a truncated JPEG file; some other libraries return half of the picture.
"""

import io
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bilateral.io import jpeg_segments
from bilateral.io.errors import CannotHoldError
from bilateral.io.limits import check_size
from bilateral.io.options import Options
from bilateral.io.orientation import from_exif, from_xmp, upright

if TYPE_CHECKING:
    from PIL.ImageFile import ImageFile

Array = NDArray[Any]

HOLDS = "uint8, gray or RGB"
_QUALITY = 95
_MAX_JUMP = 255
"""Rows that one code of a compressed BMP file may skip."""


def decode_jpeg(data: bytes, options: Options) -> Array:
    """Return the pixels of a JPEG file, gray or RGB, turned upright."""
    from PIL import JpegImagePlugin

    segments = jpeg_segments.split(data)
    orientation = from_exif(segments.exif) or from_xmp(segments.xmp)
    with JpegImagePlugin.JpegImageFile(io.BytesIO(segments.picture)) as picture:
        return upright(_pixels(picture, options), orientation)


def decode_bmp(data: bytes, options: Options) -> Array:
    """Return the pixels of a BMP file, gray or RGB."""
    from PIL import BmpImagePlugin

    with BmpImagePlugin.BmpImageFile(io.BytesIO(data)) as picture:
        if picture.tile and picture.tile[0][0] == "bmp_rle":
            width, height = picture.size
            # Compressed data may go too far, and some versions of Pillow allocate these rows.
            check_size((height + _MAX_JUMP, width), np.uint8, options.limit)
        return _pixels(picture, options)


def encode_jpeg(array: Array) -> bytes:
    """Return a JPEG file of quality 95, at which the loss is invisible."""
    return _encode(array, "JPEG", quality=_QUALITY, subsampling=0)


def encode_bmp(array: Array) -> bytes:
    """Return an uncompressed BMP file."""
    return _encode(array, "BMP")


def _pixels(picture: "ImageFile", options: Options) -> Array:
    width, height = picture.size
    check_size((height, width, 4), np.uint8, options.limit)
    if picture.mode in ("L", "RGB") or (options.labels and picture.mode == "P"):
        return np.array(picture)
    return np.array(picture.convert("L" if picture.mode == "1" else "RGB"))


def _encode(array: Array, name: str, **options: Any) -> bytes:
    from PIL import Image

    if array.dtype != np.uint8 or not (array.ndim == 2 or array.shape[2:] == (3,)):
        raise CannotHoldError
    stream = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(array)).save(stream, name, **options)
    return stream.getvalue()
