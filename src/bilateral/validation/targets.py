"""Check targets of a solve, depth maps, and the solution that a solve starts from."""

from collections.abc import Collection
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bilateral.validation.arrays import (
    finite_values,
    real_array,
    real_per_pixel,
    shape_of_pixels,
    two_axes,
)
from bilateral.validation.depth_maps import size_hint
from bilateral.validation.dtypes import compute_dtype, result_dtype
from bilateral.validation.messages import quote

Array = NDArray[Any]
T = TypeVar("T")


class Target(NamedTuple):
    """A checked target, with the shape and dtype of the result."""

    values: Array
    """(H, W, K) or, of a video, (T, H, W, K), in the dtype to compute with."""
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def target(
    value: ArrayLike,
    shape: tuple[int, ...],
    dtype: DTypeLike | None,
    precise: bool = False,
    name: str = "target",
    native: Collection[Any] = (),
) -> Target:
    """Return a map of shape `shape` or (*shape, K), of any real dtype.

    Its values are float64 if they or the result need it, or if the solve is `precise`. They stay
    as they are if they and the result have one of the `native` dtypes.
    """
    values = real_array(name, value)
    result = values.dtype if dtype is None else result_dtype(dtype)
    shape_of_pixels(name, values, shape)
    original_shape = values.shape
    compute = np.result_type(compute_dtype(values.dtype), compute_dtype(result))
    if precise:
        compute = np.dtype(np.float64)
    if values.dtype == result and result in native:
        compute = result
    values = np.ascontiguousarray(values, dtype=compute).reshape(*shape, -1)
    return Target(values, original_shape, result)


def depth_target(
    value: ArrayLike, shape: tuple[int, ...], dtype: DTypeLike | None, name: str = "depth"
) -> Target:
    """Return a depth map (H, W) of the reference's size, of any real dtype."""
    depth = real_array(name, value)
    values = real_per_pixel(name, depth, shape, size_hint(depth.shape, shape))
    return target(values, shape, dtype, name=name)


def metric_depth(value: ArrayLike, shape: tuple[int, ...], dtype: DTypeLike | None) -> Target:
    """Return metric depths (H, W) of the size of a relative map, of any real dtype."""
    hint = "Put the metric values at their pixels in the relative map, NaN elsewhere."
    values = real_per_pixel("metric", real_array("metric", value), shape, hint)
    return target(values, shape, dtype, name="metric")


def relative_depth(value: ArrayLike) -> NDArray[np.float64]:
    """Return a relative depth map (H, W): real and finite."""
    values = real_array("relative", value)
    if values.ndim == 3 and values.shape[2] == 1:
        values = values[..., 0]
    two_axes("relative", values)
    relative = np.ascontiguousarray(values, np.float64)
    finite_values("relative", relative[..., np.newaxis])
    return relative


def lowres_depth(
    name: str, value: ArrayLike, invalid: tuple[float, ...], dtype: DTypeLike | None
) -> Target:
    """Return a depth map (H, W) of any size, NaN where it is not finite or has an invalid value."""
    depth = real_array(name, value)
    two_axes(name, depth)
    result = depth.dtype if dtype is None else result_dtype(dtype)
    values = depth.astype(np.result_type(compute_dtype(depth.dtype), compute_dtype(result)))
    values[~np.isfinite(values) | np.isin(depth, invalid)] = np.nan
    return Target(values, depth.shape, result)


def some_known(name: str, known: Array, *, positive: bool = False) -> None:
    """Raise if no pixel of a depth map is known; `positive`: known values are above 0."""
    if not known.any():
        raise ValueError(
            f"{name}: expected at least one known pixel, got none: all are "
            f"{'not above 0, ' if positive else ''}NaN or infinite, equal to an invalid value, or "
            f"0 in mask or confidence. Check these, and the file that the map comes from."
        )


def some_data(problem: T | None) -> T:
    """Return the problem, or raise if it is None because no pixel of the target has data."""
    if problem is None:
        raise ValueError(
            "target: expected at least one pixel with a finite value and a confidence above 0, "
            "got none. Check the mask, and NaNs in the target."
        )
    return problem


def warm_start(value: ArrayLike, like: Target) -> Array:
    """Return an earlier solution in pixel space: finite, of the target's shape."""
    if isinstance(value, str):
        raise TypeError(f"warm_start: expected an array like target or 'last', got {quote(value)}.")
    values = real_array("warm_start", value)
    if values.shape != like.shape:
        raise ValueError(
            f"warm_start: expected the target's shape {like.shape}, got {values.shape}."
        )
    if not np.isfinite(values).all():
        raise ValueError("warm_start: expected finite values, got NaN or infinity.")
    return np.ascontiguousarray(values, dtype=like.values.dtype).reshape(like.values.shape)


def last_solution(shape: tuple[int, ...] | None, like: Target) -> None:
    """Raise if a solver's last solution does not exist (None) or has another shape."""
    if shape is None:
        raise ValueError(
            "warm_start: expected an earlier solve by this solver for 'last', got none yet. "
            "Leave warm_start out for the first one."
        )
    if shape != like.values.shape:
        raise ValueError(
            f"warm_start: expected a last solution of the target's shape with channels, "
            f"{like.values.shape}, got one of {shape}. Leave warm_start out, or give an array."
        )
