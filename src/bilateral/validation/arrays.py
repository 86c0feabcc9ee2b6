"""Check arrays: real numbers, shapes and finite values."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral.validation.dtypes import compute_dtype, exact_in_float64, is_real
from bilateral.validation.messages import position, quote

Array = NDArray[Any]


def real_array(name: str, value: ArrayLike) -> Array:
    """Return an array of real numbers, of any shape, whose integers are exact in float64."""
    array = any_real_array(name, value)
    if array.dtype.kind in "iu" and array.dtype.itemsize > 4:
        exact_in_float64(name, array)
    return array


def any_real_array(name: str, value: ArrayLike) -> Array:
    """Return an aligned array of real numbers, of any shape; integers may exceed float64."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(
            f"{name}: expected a plain array, got a masked array. "
            f"Fill it first, for example with .filled(np.nan)."
        )
    try:
        array = np.asarray(value)
    except Exception as error:  # `__array__` of other libraries raises any error
        raise ValueError(f"{name}: expected an array, got {quote(value)}: {error}") from None
    if not is_real(array.dtype):
        raise TypeError(
            f"{name}: expected real numbers, got dtype {array.dtype}. "
            f"Convert it first, for example with .astype(np.float32)."
        )
    return aligned(array)


def aligned(array: Array) -> Array:
    """Return the array, or a copy if an element may lie at an odd address, as in packed records."""
    return array if array.flags.aligned else array.copy()


def floating_array(name: str, value: ArrayLike) -> Array:
    """Return an array of any shape: floating point as it is, any other dtype as float64."""
    values = real_array(name, value)
    return values if values.dtype.kind == "f" else values.astype(np.float64)


def image(name: str, value: ArrayLike) -> Array:
    """Return an array (H, W) or (H, W, K) of any real dtype, with at least one value."""
    values = real_array(name, value)
    if values.ndim not in (2, 3) or values.size == 0:
        raise ValueError(
            f"{name}: expected shape (H, W) or (H, W, K) with at least one value, "
            f"got {values.shape}. Channels come last."
        )
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def map_2d(name: str, value: ArrayLike, like: tuple[str, Array] | None = None) -> Array:
    """Return a map (H, W) in float32 or float64.

    `like` is the name of another map and the map: both must have one shape.
    """
    values = real_array(name, value)
    if like is not None:
        same_shape(name, values.shape, like[0], like[1].shape)
    two_axes(name, values)
    return values.astype(compute_dtype(values.dtype), copy=False)


def two_axes(name: str, values: Array) -> None:
    """Raise unless an array has the shape (H, W) and at least one value."""
    if values.ndim != 2 or values.size == 0:
        raise ValueError(
            f"{name}: expected shape (H, W) with at least one value, got {values.shape}."
        )


def vertex_values(name: str, value: ArrayLike, n_vertices: int) -> Array:
    """Return an array (n_vertices,) or (n_vertices, K) in float32 or float64."""
    values = real_array(name, value)
    if values.ndim not in (1, 2) or values.shape[0] != n_vertices or values.size == 0:
        raise ValueError(
            f"{name}: expected shape ({n_vertices},) or ({n_vertices}, K), one row per vertex, "
            f"got {values.shape}."
        )
    return np.ascontiguousarray(values, dtype=compute_dtype(values.dtype))


def pixel_values(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return an array of shape `shape` or (*shape, K) in float32 or float64."""
    values = real_array(name, value)
    shape_of_pixels(name, values, shape)
    return np.ascontiguousarray(values, dtype=compute_dtype(values.dtype))


def shape_of_pixels(name: str, values: Array, shape: tuple[int, ...]) -> None:
    """Raise unless an array has the shape of the reference, with or without channels."""
    channels = values.ndim - len(shape)
    if channels not in (0, 1) or values.shape[: len(shape)] != shape or values.size == 0:
        raise ValueError(
            f"{name}: expected shape {shape} or {(*shape, 'K')}, as the reference has, "
            f"got {values.shape}. Resize it to the reference first; channels come last."
        )


def one_per_pixel(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return one number per pixel, in float32 or float64."""
    values = real_per_pixel(name, value, shape, "Resize it first.")
    return np.ascontiguousarray(values, dtype=compute_dtype(values.dtype))


def real_per_pixel(name: str, value: ArrayLike, shape: tuple[int, ...], hint: str) -> Array:
    """Return one real number per pixel, in the dtype of `value`; `hint` ends the message."""
    return _one_per_pixel(name, real_array(name, value), shape, hint)


def _one_per_pixel(name: str, values: Array, shape: tuple[int, ...], hint: str) -> Array:
    if values.shape != shape and values.shape != (*shape, 1):
        raise ValueError(
            f"{name}: expected one number per pixel, shape {shape}, got {values.shape}. {hint}"
        )
    return values.reshape(shape)


def mask(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return one bool per pixel, from bool or integers."""
    values = _one_per_pixel(name, any_real_array(name, value), shape, "Resize it first.")
    if values.dtype.kind == "f":
        raise TypeError(
            f"{name}: expected bool or integers, got dtype {values.dtype}. "
            f"Compare it first, for example {name} > 0.5, or give it as confidence."
        )
    return values.astype(np.bool_)


def finite_values(name: str, pixels: Array) -> None:
    """Raise if an array (..., C) of pixels has a value that is not finite."""
    finite = np.isfinite(pixels)
    if not finite.all():
        at = tuple(np.argwhere(~finite)[0].tolist())
        raise ValueError(
            f"{name}: expected finite values, got {pixels[at]} at {position(at[:-1])}. "
            f"Replace it, for example with np.nan_to_num({name})."
        )


def same_shape(name: str, shape: tuple[int, ...], other: str, expected: tuple[int, ...]) -> None:
    """Raise unless `shape` is that of the argument `other`."""
    if shape != expected:
        raise ValueError(f"{name}: expected the shape of {other}, {expected}, got {shape}.")


def shape_at_least(name: str, shape: tuple[int, ...], other: str, least: tuple[int, ...]) -> None:
    """Raise if `shape` is smaller than that of the argument `other` along an axis."""
    if any(length < low for length, low in zip(shape, least, strict=True)):
        raise ValueError(f"{name}: expected at least the shape of {other}, {least}, got {shape}.")
