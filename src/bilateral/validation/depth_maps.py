"""Check how a map and its photograph fit: swapped arguments, sizes, zeros that mean unknown."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]

SUSPICIOUS_ZEROS = 1e-3
"""Warn if at least this fraction of the known pixels is 0."""
_GAP = 0.05
"""Smallest distance of the other values from 0, relative to the largest values."""
_SAME_RATIO = 0.05
"""Aspect ratios that differ by less than this fraction are the same."""


class ZeroDepthWarning(UserWarning):
    """Zeros in a depth map look like missing data."""

    def __init__(self, message: str, fraction: float = 0.0) -> None:
        super().__init__(message)
        self.fraction = fraction
        """Fraction of the known pixels that are 0."""


def depth_not_swapped(task: str, name: str, depth: ArrayLike, reference: ArrayLike) -> None:
    """Raise if a depth map has three channels and its photograph has one."""
    shape, other = _shape(depth), _shape(reference)
    if _channels(shape) in (3, 4) and _channels(other) == 1:
        raise ValueError(
            f"{name}: expected one number per pixel, got shape {shape}, and reference has shape "
            f"{other}: the two look swapped. The order is {task}({name}, reference); the keywords "
            f"{name}= and reference= work in any order."
        )


def add_swap_hint(error: ValueError, reference: ArrayLike, target: ArrayLike) -> None:
    """Add to an error about the reference that it and the target look swapped, if they do."""
    if str(error).startswith("reference:") and _looks_swapped(reference, target):
        error.args = (
            f"{error} The target is an 8-bit RGB image: the two look swapped. The order is "
            f"solve(reference, target); the keywords reference= and target= work in any order.",
        )


def warn_if_swapped(reference: ArrayLike, target: ArrayLike, stacklevel: int) -> None:
    """Warn if the reference looks like a depth map and the target like its photograph."""
    if getattr(reference, "dtype", None) == np.uint16 and _looks_swapped(reference, target):
        warnings.warn(
            "reference is a 16-bit map and target an 8-bit RGB image: the two look swapped. "
            "The order is solve(reference, target), where the reference is the photograph.",
            UserWarning,
            stacklevel + 1,
        )


def _looks_swapped(reference: ArrayLike, target: ArrayLike) -> bool:
    is_photo = getattr(target, "dtype", None) == np.uint8 and _channels(_shape(target)) == 3
    return is_photo and _channels(_shape(reference)) == 1


def _shape(value: ArrayLike) -> tuple[int, ...]:
    """The shape of an array; () for anything else, which other checks refuse or convert."""
    shape = getattr(value, "shape", ())
    return tuple(shape) if isinstance(shape, tuple) else ()


def _channels(shape: tuple[int, ...]) -> int | None:
    """The number of channels of an image; None for other shapes."""
    if len(shape) == 2:
        return 1
    return shape[2] if len(shape) == 3 else None


def size_hint(shape: tuple[int, ...], expected: tuple[int, ...]) -> str:
    """Say what to do with a depth map whose size differs from its photograph's."""
    if len(shape) != 2 or 0 in shape:
        return "Resize it to the reference first."
    ratio = (shape[0] * expected[1]) / (shape[1] * expected[0])
    if max(ratio, 1 / ratio) > 1 + _SAME_RATIO:
        return "The two have different aspect ratios: crop or warp one of them first."
    if shape[0] <= expected[0] and shape[1] <= expected[1]:
        return "bilateral.tasks.superres_depth(depth, reference) enlarges it."
    return "Resize it to the reference first."


def hole_value(invalid: tuple[float, ...], dtype: np.dtype[Any]) -> float:
    """Return the value of holes in a result: the first invalid value, or NaN."""
    value = invalid[0] if invalid else np.nan
    if dtype.kind != "f" and not (value == np.rint(value) and _is_in_range(value, dtype)):
        raise ValueError(
            f"keep_holes: expected an invalid value that {dtype} can hold, got "
            f"{invalid[0] if invalid else 'none'}. Give one, such as invalid=0, or a "
            f"floating-point dtype, whose holes are NaN."
        )
    return value


def _is_in_range(value: float, dtype: np.dtype[Any]) -> bool:
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return low <= value <= high


def warn_of_zeros(name: str, values: Array, known: Array, stacklevel: int) -> None:
    """Warn if zeros in a depth map look like missing data: no other value is near 0."""
    data = values[known]
    others = data[data != 0]
    fraction = 1 - others.size / data.size
    if fraction < SUSPICIOUS_ZEROS or others.size == 0:
        return
    low, next_, high = np.percentile(others, (1, 5, 99), method="lower")
    # If 0 is one of few equidistant levels, or the other level of a mask, it is no gap.
    above = others[others > low]
    level = 2 * (above.min() - low) if above.size else low
    if low <= max(_GAP * high, next_ - low, level):
        return
    message = (
        f"{name}: {100 * fraction:.2g} % of the known pixels are 0, and nearly all others are far "
        f"from 0. If 0 marks unknown pixels, give invalid=0; otherwise they count as depths."
    )
    warnings.warn(ZeroDepthWarning(message, fraction), stacklevel=stacklevel + 1)
