"""Check confidences and weights: one finite number per pixel, 0 or above."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bilateral.validation.arrays import real_array, real_per_pixel
from bilateral.validation.messages import position

Array = NDArray[Any]

_FLOAT32_LARGE = 1e30
"""Sums of confidences above this, or below its inverse, may leave the range of float32."""


def confidence(
    value: ArrayLike | None, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Array | None:
    """Return a confidence per pixel, or None for 1 everywhere.

    Only the shape is checked here: `confidence_value` reports a wrong value after the core has
    summed the confidences. The result is float64 instead of float32 if float32 cannot hold it.
    """
    if value is None:
        return None
    values = real_per_pixel("confidence", value, shape, "All channels of a target share it.")
    if dtype == np.float32 and values.dtype.kind == "f" and values.dtype.itemsize > 4:
        largest = values.max()
        if largest > _FLOAT32_LARGE or 0 < largest < 1 / _FLOAT32_LARGE:
            dtype = np.dtype(np.float64)
    return np.ascontiguousarray(values, dtype=dtype)


def confidence_value(values: Array | None, invalid: int | None) -> None:
    """Raise if the sum over the pixels met an invalid confidence; `invalid` is its flat index."""
    if invalid is None or values is None:
        return
    index = [int(i) for i in np.unravel_index(invalid, values.shape)]
    raise _wrong_weight("confidence", values, index)


def pixel_weights(
    name: str, value: ArrayLike | None, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Array:
    """Return a weight per pixel; 1 everywhere for None."""
    if value is None:
        return np.ones(shape, dtype)
    values = real_per_pixel(name, value, shape, "All channels share it.").astype(dtype, copy=False)
    wrong = ~((values >= 0) & np.isfinite(values))
    if wrong.any():
        raise _wrong_weight(name, values, np.argwhere(wrong)[0].tolist())
    return values


def _wrong_weight(name: str, values: Array, index: Sequence[int]) -> ValueError:
    return ValueError(
        f"{name}: expected finite numbers, 0 or above, got {values[tuple(index)]} at "
        f"{position(index)}. Set it to 0 where there is no data."
    )


def normalized_weights(
    value: ArrayLike | None, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Array | None:
    """Return a weight per pixel, divided by the largest weight, or None for 1 everywhere."""
    if value is None:
        return None
    weights = pixel_weights("weights", value, shape, np.dtype(np.float64))
    largest = weights.max()
    if largest == 0:
        raise ValueError("weights: expected a number above 0 somewhere, got 0 everywhere.")
    return np.ascontiguousarray(weights / largest, dtype=dtype)


def some_weight(has_data: bool) -> None:
    """Raise if no pixel of an image has a finite value and a weight above 0."""
    if not has_data:
        raise ValueError(
            "image: expected at least one pixel with a finite value and a weight above 0, got "
            "none. Check the weights, and NaNs in the image."
        )


def loss_weights(value: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return the weights that a loss gave to residuals: finite, 0 or above, one per pixel."""
    weights = real_array("loss.weight", value)
    if weights.shape != shape:
        raise ValueError(
            f"loss.weight: expected an array like its argument, shape {shape}, got {weights.shape}."
        )
    wrong = ~((weights >= 0) & np.isfinite(weights))
    if wrong.any():
        raise ValueError(
            f"loss.weight: expected finite numbers, 0 or above, got {weights[wrong][0]}. "
            f"It is rho'(e) / e, also at e = 0."
        )
    return np.ascontiguousarray(weights, dtype=np.float64)
