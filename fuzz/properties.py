"""Properties of results that several harnesses check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bilateral
from fuzz.call import require

Array = NDArray[Any]


def known_pixels(target: Array, confidence: Array | None, axes: int = 2) -> Array:
    """Mark the pixels with data, (H, W)."""
    shape = target.shape[:axes]
    known = np.asarray(np.isfinite(target).reshape(*shape, -1).all(axis=-1))
    return known if confidence is None else known & (np.asarray(confidence) > 0)


def like(x: Any, target: Array, dtype: Any = None) -> Array:
    """Require an array of the target's shape, native, of its dtype or the one asked for."""
    expected = target.dtype if dtype is None else np.dtype(dtype)
    require(isinstance(x, np.ndarray), "no array", type(x))
    require(x.shape == target.shape, "another shape", x.shape, target.shape)
    same = x.dtype.newbyteorder("=") == expected.newbyteorder("=")
    require(same, "another dtype", x.dtype, expected)
    return np.asarray(x)


def finite(x: Array) -> None:
    """Require finite numbers."""
    require(np.isfinite(x).all(), "not finite", x)


def within(x: Array, target: Array, known: Array, margin: float = 0.0) -> None:
    """Require values within the range of the known ones, by channel, up to rounding.

    `margin` is a part of the range.
    """
    values = target[known].astype(np.float64).reshape(int(known.sum()), -1)
    low, high = values.min(axis=0), values.max(axis=0)
    got = x.astype(np.float64).reshape(-1, values.shape[1])
    if x.dtype.kind in "iu":
        room = 1 + margin * (high - low)
    elif x.dtype.kind == "b":
        return
    else:
        digits = max(float(np.finfo(x.dtype).eps), 1e-7 if target.itemsize < 8 else 1e-15)
        room = 4 * digits * np.maximum(abs(low), abs(high)) + margin * (high - low)
        room += float(np.finfo(x.dtype).smallest_subnormal)
    least, most = got.min(axis=0), got.max(axis=0)
    require((least >= low - room).all(), "below the known values", least, low)
    require((most <= high + room).all(), "above the known values", most, high)


def same_bits(a: Array, b: Array, why: str) -> None:
    """Require equal bits."""
    same = a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
    require(same, f"other bits with {why}", a, b)


def with_threads(threads: int, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a function with another number of threads."""
    before = bilateral.get_num_threads()
    bilateral.set_num_threads(threads)
    try:
        return function(*args, **options)
    finally:
        bilateral.set_num_threads(before)


def close(a: Array, b: Array, bound: float, what: str) -> None:
    """Require a root mean square difference of at most `bound`."""
    error = float(np.sqrt(np.mean((a.astype(np.float64) - b.astype(np.float64)) ** 2)))
    require(error <= bound, what, error, bound)
