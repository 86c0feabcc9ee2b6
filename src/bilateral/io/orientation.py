"""Which way up a photograph is: cameras store it as the sensor lay, and say how to turn it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

TAG = 0x0112
"""Of EXIF and TIFF."""


def upright(array: Array, orientation: object) -> Array:
    """Turn and mirror an image as EXIF's orientation, 1 to 8, says; others change nothing.

    Parameters
    ----------
    array : (H, W, ...) array
    orientation : object
        As found in the file.

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


def from_exif(data: bytes) -> object:
    """The orientation in a block of EXIF data; None where it cannot be read."""
    from PIL import Image

    exif = Image.Exif()
    try:
        exif.load(data)
        return exif.get(TAG)
    except Exception:  # a photograph with broken EXIF data is still a photograph
        return None
