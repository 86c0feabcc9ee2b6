"""Choose the dtype of a computation and convert results to the requested dtype."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bilateral.validation.messages import quote

Array = NDArray[Any]

_REAL_KINDS = "buif"
"""NumPy's codes of bool, unsigned integer, signed integer and floating point."""


def is_real(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype holds real numbers: bool, integers or floating point."""
    return dtype.kind in _REAL_KINDS


def compute_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype to compute with: float64 where float32 would lose digits of the values."""
    # float32 holds integers exactly up to 24 bits.
    wide = dtype.itemsize > 4 if dtype.kind == "f" else dtype.itemsize >= 4
    return np.dtype(np.float64 if wide else np.float32)


def result_dtype(value: DTypeLike) -> np.dtype[Any]:
    """Return the argument `dtype` as a real NumPy dtype."""
    try:
        dtype = np.dtype(value)
    except Exception:  # NumPy's parser of dtypes also raises SyntaxError and others
        raise TypeError(f"dtype: expected a real dtype, got {quote(value)}.") from None
    if not is_real(dtype):
        raise TypeError(f"dtype: expected a real dtype, got {dtype}.")
    return dtype


def as_dtype(values: Array, dtype: np.dtype[Any]) -> Array:
    """Convert values to a dtype: round for integers, and clip to the range of the dtype."""
    if values.dtype == dtype:
        return values
    if dtype.kind == "f":
        if dtype.itemsize < values.dtype.itemsize:
            values = np.clip(values, np.finfo(dtype).min, np.finfo(dtype).max)
        return values.astype(dtype, copy=False)
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    rounded = np.rint(values)
    # Floating point may lack the largest integer: clip at the largest number below it first.
    top = rounded.dtype.type(high)
    if int(top) > high:
        top = np.nextafter(top, rounded.dtype.type(0))
    integers = np.clip(rounded, low, top).astype(dtype)
    if int(top) < high:
        integers[rounded > top] = high
    return integers


def exact_in_float64(name: str, values: Array) -> None:
    """Raise if an integer is too large for float64 to distinguish it from its neighbours."""
    if values.size > 0:
        integer_range(name, int(values.min()), int(values.max()))


def integer_range(name: str, low: int, high: int) -> None:
    """Raise if float64 cannot hold all integers between two."""
    if max(-low, high) > 2**53:
        raise ValueError(
            f"{name}: expected integers from -2**53 to 2**53, which float64 holds exactly, got "
            f"values from {low} to {high}. Subtract an offset or divide first, or convert to "
            f"float64 to accept its rounding."
        )
