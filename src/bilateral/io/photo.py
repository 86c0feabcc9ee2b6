"""JPEG and BMP, of 8 bits, by Pillow, which does not take half a JPEG for a whole one."""

import io
import threading
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bilateral.io.limits import check_size
from bilateral.io.options import Options
from bilateral.io.orientation import TAG, upright
from bilateral.io.problems import CannotHoldError

if TYPE_CHECKING:
    from PIL.ImageFile import ImageFile

Array = NDArray[Any]

HOLDS = "uint8, gray or RGB"
_QUALITY = 95
_lock = threading.Lock()  # what is done about warnings is common to all threads


def decode_jpeg(data: bytes, options: Options) -> Array:
    """Gray or RGB, turned upright."""
    from PIL import JpegImagePlugin

    with _lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of broken EXIF data: it is still a photograph
        picture = JpegImagePlugin.JpegImageFile(io.BytesIO(data))
        try:
            orientation = picture.getexif().get(TAG)
        except Exception:
            orientation = None
    with picture:
        return upright(_pixels(picture, options), orientation)


def decode_bmp(data: bytes, options: Options) -> Array:
    """Gray or RGB."""
    from PIL import BmpImagePlugin

    with BmpImagePlugin.BmpImageFile(io.BytesIO(data)) as picture:
        return _pixels(picture, options)


def encode_jpeg(array: Array) -> bytes:
    """Of a quality at which nobody sees the loss."""
    return _encode(array, "JPEG", quality=_QUALITY, subsampling=0)


def encode_bmp(array: Array) -> bytes:
    """Not compressed."""
    return _encode(array, "BMP")


def _pixels(picture: "ImageFile", options: Options) -> Array:
    width, height = picture.size
    check_size((height, width, 4), np.uint8, options.limit)
    if options.labels and picture.mode == "P":
        return np.array(picture)
    return np.array(picture if picture.mode == "L" else picture.convert(_mode(picture)))


def _mode(picture: "ImageFile") -> str:
    """What to turn it into: black and white are gray, and so is a palette of grays."""
    return "L" if picture.mode == "1" else "RGB"


def _encode(array: Array, name: str, **options: Any) -> bytes:
    from PIL import Image

    if array.dtype != np.uint8 or not (array.ndim == 2 or array.shape[2:] == (3,)):
        raise CannotHoldError
    stream = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(array)).save(stream, name, **options)
    return stream.getvalue()
