"""Read and write JPEG and BMP with 8 bits per channel, by Pillow.

Pillow refuses a truncated JPEG file; some other libraries return half of the picture.
"""

import io
import threading
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bilateral.io.errors import CannotHoldError
from bilateral.io.limits import check_size
from bilateral.io.options import Options
from bilateral.io.orientation import TAG, upright

if TYPE_CHECKING:
    from PIL.ImageFile import ImageFile

Array = NDArray[Any]

HOLDS = "uint8, gray or RGB"
_QUALITY = 95
_lock = threading.Lock()  # all threads share Python's warning filters


def decode_jpeg(data: bytes, options: Options) -> Array:
    """Return the pixels of a JPEG file, gray or RGB, turned upright."""
    from PIL import JpegImagePlugin

    with _lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow warns of broken EXIF data; the pixels are fine
        picture = JpegImagePlugin.JpegImageFile(io.BytesIO(data))
        try:
            orientation = picture.getexif().get(TAG)
        except Exception:
            orientation = None
    with picture:
        return upright(_pixels(picture, options), orientation)


def decode_bmp(data: bytes, options: Options) -> Array:
    """Return the pixels of a BMP file, gray or RGB."""
    from PIL import BmpImagePlugin

    with BmpImagePlugin.BmpImageFile(io.BytesIO(data)) as picture:
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
    if options.labels and picture.mode == "P":
        return np.array(picture)
    return np.array(picture if picture.mode == "L" else picture.convert(_target_mode(picture)))


def _target_mode(picture: "ImageFile") -> str:
    """Return the Pillow mode to convert to: gray for 1-bit pictures, else RGB."""
    return "L" if picture.mode == "1" else "RGB"


def _encode(array: Array, name: str, **options: Any) -> bytes:
    from PIL import Image

    if array.dtype != np.uint8 or not (array.ndim == 2 or array.shape[2:] == (3,)):
        raise CannotHoldError
    stream = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(array)).save(stream, name, **options)
    return stream.getvalue()
