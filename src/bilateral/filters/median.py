"""Median filter: remove the noise of single vertices after a slice."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral import validation
from bilateral.backends import cpu

Array = NDArray[Any]


def median(image: ArrayLike, size: int = 5) -> Array:
    """Replace every value by the median of the size x size values around it.

    Beyond its border, the image is continued by its mirror image, border pixels included (NumPy's
    ``pad`` mode "symmetric"). Each channel is filtered separately.

    Parameters
    ----------
    image : (H, W) or (H, W, K) array
        The image to filter, of any real dtype. uint8, uint16, float32 and float64 are filtered
        directly. Other dtypes are converted to one of them without loss; integers beyond 2**53
        raise an error, and floating point longer than float64 is rounded to float64. NaN is a
        missing value: the median is that of the other values in the window, or the mean of the
        middle two if their number is even, as in ``numpy.nanmedian`` (for -inf and inf: -inf). The
        result is NaN only where all values of the window are NaN.
    size : {3, 5}
        Side of the window in pixels.

    Returns
    -------
    array of the same shape and dtype

    Examples
    --------
    >>> import numpy as np
    >>> import bilateral
    >>> image = np.ones((4, 5))
    >>> image[1, 2] = 100
    >>> image[3, 4] = np.nan
    >>> bool((bilateral.median(image, size=3) == 1).all())
    True
    """
    values = validation.image("image", image)
    size = validation.one_of("size", size, (3, 5))
    pixels = np.ascontiguousarray(_comparable(values)).reshape(*values.shape[:2], -1)
    return _restored(cpu.median(pixels, size), values.dtype).reshape(values.shape)


# With their sign bit flipped, signed integers sort like unsigned ones.
_SIGN = {1: np.uint8(0x80), 2: np.uint16(0x8000)}


def _comparable(values: Array) -> Array:
    """Convert values to a dtype of the core that sorts them in the same order."""
    kind, size = values.dtype.kind, values.dtype.itemsize
    if kind == "f":
        return values.astype(np.float32 if size <= 4 else np.float64, copy=False)
    if kind == "b":
        return values.view(np.uint8)
    if size > 2:
        return values.astype(np.float64)
    return values if kind == "u" else values.view(f"u{size}") ^ _SIGN[size]


def _restored(medians: Array, dtype: np.dtype[Any]) -> Array:
    """Invert `_comparable`."""
    if dtype.kind == "b" or (dtype.kind == "u" and dtype.itemsize <= 2):
        return medians.view(dtype)
    if dtype.kind == "i" and dtype.itemsize <= 2:
        medians = medians ^ _SIGN[dtype.itemsize]
        return medians.view(dtype)
    return medians.astype(dtype, copy=False)
