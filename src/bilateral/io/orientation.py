"""Turn photographs upright, as the orientation tag of EXIF and TIFF says."""

import re
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

TAG = 0x0112
"""Number of the orientation tag in EXIF and TIFF."""
_EXIF_PREFIX = b"Exif\0\0"
_INTEGERS = {1: "B", 3: "H", 4: "I"}
"""Types of unsigned integers: their number in TIFF, and their letter in `struct`."""
_XMP_TAG = re.compile(rb'tiff:Orientation(?:="|>)([1-8])')


def upright(array: Array, orientation: object) -> Array:
    """Turn and mirror an image by its EXIF orientation, 1 to 8.

    Parameters
    ----------
    array : (H, W, ...) array
    orientation : object
        Value of the tag in the file. Any other value than 1 to 8 leaves the image as it is.

    Returns
    -------
    array

    Examples
    --------
    >>> import numpy as np
    >>> upright(np.array([[1, 2], [3, 4]]), 6).tolist()
    [[3, 1], [4, 2]]
    """
    if not isinstance(orientation, int) or not 2 <= orientation <= 8:
        return array
    if orientation >= 5:
        array = array.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        array = array[::-1]
    if orientation in (2, 3, 6, 7):
        array = array[:, ::-1]
    return np.ascontiguousarray(array)


def from_exif(data: bytes) -> int | None:
    """Return the orientation in a block of EXIF data, or None if it has none or is broken.

    Pillow would issue warnings about broken data, and the filters of warnings belong to all
    threads.
    """
    data = data.removeprefix(_EXIF_PREFIX)
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(data[:4])
    if order is None:
        return None
    try:
        (start,) = struct.unpack_from(f"{order}I", data, 4)
        (count,) = struct.unpack_from(f"{order}H", data, start)
        for at in range(start + 2, start + 2 + 12 * count, 12):
            tag, kind, values = struct.unpack_from(f"{order}HHI", data, at)
            if tag == TAG and kind in _INTEGERS and values == 1:
                return int(struct.unpack_from(order + _INTEGERS[kind], data, at + 8)[0])
    except struct.error:  # broken EXIF data does not make the photograph unreadable
        pass
    return None


def from_xmp(data: bytes) -> int | None:
    """Return the orientation in a block of XMP data, or None if it has none."""
    match = _XMP_TAG.search(data)
    return None if match is None else int(match[1])
