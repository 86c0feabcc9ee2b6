"""Check the scores of a segmentation: probabilities or logits of classes."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bilateral.validation.arrays import real_array
from bilateral.validation.dtypes import compute_dtype, result_dtype
from bilateral.validation.messages import quote

Array = NDArray[Any]

_SUM_TOLERANCE = 0.01
"""Largest distance from 1 of a sum of probabilities that are rounded to half precision or to two
digits."""


class Scores(NamedTuple):
    """Checked scores of classes, with the shape and dtype of the result."""

    values: Array
    """(h, w, K) in float32 or float64; (h, w, 1) for a foreground."""
    logits: bool
    """Whether the scores are logits rather than probabilities."""
    finite: bool
    """Whether all values and their sums over the classes are finite."""
    layout: tuple[int, ...]
    """The axes of the result's shape after height and width: (K,), or () for a foreground."""
    dtype: np.dtype[Any]


def scores(
    name: str,
    value: ArrayLike,
    logits: bool | None,
    shape: tuple[int, ...],
    dtype: DTypeLike | None,
    hidden: Array | None = None,
) -> Scores:
    """Return probabilities or logits of K classes (h, w, K) or of a foreground (h, w).

    Their size need not be the image's, `shape`. Scores where the map `hidden` is true become NaN.
    """
    array = _score_array(name, value, shape)
    if logits is not None and not isinstance(logits, bool | np.bool_):
        raise TypeError(f"logits: expected True, False or None, got {quote(logits)}.")
    values = array[..., np.newaxis] if array.ndim == 2 else array
    if values.shape[2] == 1 and array.dtype.kind in "ui" and not logits:
        _zeros_and_ones(name, values)
    values = np.ascontiguousarray(values, compute_dtype(array.dtype))
    if hidden is not None and hidden.shape == values.shape[:2]:
        values = np.where(hidden[..., np.newaxis], values.dtype.type(np.nan), values)
    low, sums, finite = _lowest_and_sums(values)
    several_classes, most = values.shape[2] > 1, sums.max(initial=1)
    if logits is None:
        least = sums.min(initial=1) if several_classes else 1.0
        logits = are_logits(low, least, most)
    elif not logits and not are_probabilities(low, 1.0 if several_classes else most):
        raise ValueError(
            f"{name}: expected probabilities from 0 to 1, since logits=False, got "
            f"{low if low < 0 else most}. Leave logits out, or give logits=True."
        )
    default = array.dtype.newbyteorder("=") if array.dtype.kind == "f" else np.dtype(np.float32)
    layout = () if array.ndim == 2 else (array.shape[2],)
    result = default if dtype is None else result_dtype(dtype)
    return Scores(values, bool(logits), finite, layout, result)


def _score_array(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Array:
    array = real_array(name, value)
    if array.ndim not in (2, 3) or array.size == 0:
        raise ValueError(
            f"{name}: expected shape (h, w, K), or (h, w) for a foreground, with at least one "
            f"value, got {array.shape}. Channels come last."
        )
    if array.ndim == 3 and array.shape[1:] == shape and array.shape[:2] != shape:
        raise ValueError(
            f"{name}: expected channels last, (h, w, K), got shape {array.shape} for an image of "
            f"{shape}. Move the axis: np.moveaxis({name}, 0, -1)."
        )
    return array


def _lowest_and_sums(values: Array) -> tuple[Any, Array, bool]:
    """The lowest value, the sums over the classes, and whether all of them are finite.

    If not all are finite, only pixels with finite values count.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        low, sums = values.min(), values @ np.ones(values.shape[2], values.dtype)
    if np.isfinite(sums).all():
        return low, sums, True
    whole = np.isfinite(values).all(axis=2)
    # -inf can be a logit but never a probability.
    low_if_none = -np.inf if np.isneginf(values).any() else np.inf
    low = values[whole].min(initial=np.inf) if whole.any() else low_if_none
    with np.errstate(over="ignore"):
        return low, values[whole].sum(axis=1), False


def are_logits(low: float, least: float, most: float) -> bool:
    """Whether scores cannot be probabilities, by the lowest score and the range of the sums."""
    return bool(low < 0 or max(most - 1, 1 - least) > _SUM_TOLERANCE)


def are_probabilities(low: float, high: float) -> bool:
    """Whether scores in this range may be probabilities."""
    return bool(low >= 0 and high <= 1 + _SUM_TOLERANCE)


def _zeros_and_ones(name: str, values: Array) -> None:
    low, high = values.min(), values.max()
    if low < 0 or high > 1:
        raise ValueError(
            f"{name}: expected 0 and 1, since it is one channel of integers, got values from {low} "
            f"to {high}. For a mask of 0 and 255 give {name} > 0, for a map of labels "
            f"np.eye(K)[{name}], for logits {name}.astype(np.float32)."
        )


def some_scores(known: Array) -> None:
    """Raise if the classes of no pixel are known."""
    if not known.any():
        raise ValueError(
            "probabilities: expected finite values at one pixel at least, got none: all are NaN or "
            "infinite, ignored, or have no confidence. Check `ignore`, the confidence and the "
            "network's output."
        )
