"""Turn photographs upright, as the orientation tag of EXIF and TIFF says."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

TAG = 0x0112
"""Number of the orientation tag in EXIF and TIFF."""


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


def from_exif(data: bytes) -> object:
    """Return the orientation in a block of EXIF data, or None if it cannot be read."""
    from PIL import Image

    exif = Image.Exif()
    try:
        exif.load(data)
        return exif.get(TAG)
    except Exception:  # broken EXIF data does not make the photograph unreadable
        return None
