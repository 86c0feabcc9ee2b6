"""Check the saved states of objects: a damaged or foreign state raises ValueError."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bilateral.validation.arrays import finite_values
from bilateral.validation.messages import quote

Array = NDArray[Any]


def state(name: str, value: object, version: int, entries: Collection[str]) -> dict[str, Any]:
    """Return the entries of a saved state, without its version."""
    if not isinstance(value, Mapping):
        raise damaged_state(name, f"expected a dict, got {quote(value)}")
    if value.get("version") != version:
        raise ValueError(
            f"{name}: expected a state of version {version}, got version "
            f"{quote(value.get('version'))}. Load it with the version of bilateral that saved it."
        )
    missing = [entry for entry in entries if entry not in value]
    if missing:
        raise damaged_state(name, f"expected the entry {missing[0]!r}, got none")
    return {key: entry for key, entry in value.items() if key != "version"}


def state_array(name: str, value: object, dtypes: Collection[DTypeLike], axes: int) -> Array:
    """Return a contiguous array of one of some dtypes, in the byte order of this machine."""
    if not isinstance(value, np.ndarray) or value.ndim != axes:
        what = f"shape {value.shape}" if isinstance(value, np.ndarray) else quote(value)
        raise damaged_state(name, f"expected an array with {axes} axes, got {what}")
    dtype = value.dtype.newbyteorder("=")
    if dtype not in [np.dtype(allowed) for allowed in dtypes]:
        raise damaged_state(name, f"unexpected dtype {value.dtype}")
    return np.ascontiguousarray(value, dtype)


def state_features(
    name: str, value: object, shape: tuple[int, ...], channels: Collection[int]
) -> Array:
    """Return the features of the pixels of a grid: (*shape, C) with a C of `channels`, finite."""
    dtypes = (np.uint8, np.uint16, np.float32, np.float64)
    pixels = state_array(name, value, dtypes, len(shape) + 1)
    if pixels.shape[:-1] != shape or pixels.shape[-1] not in channels:
        expected = " or ".join(str((*shape, count)) for count in channels)
        raise damaged_state(name, f"expected pixels of shape {expected}, got {pixels.shape}")
    finite_values(name, pixels)
    return pixels


def state_numbers(name: str, value: object, count: int) -> list[float]:
    """Return a list of `count` numbers, none of them negative or NaN."""
    numbers = np.asarray(value)
    if numbers.shape != (count,) or numbers.dtype != np.float64:
        raise damaged_state(name, f"expected {count} numbers, got {quote(value)}")
    if not (numbers >= 0).all():
        raise damaged_state(name, f"expected numbers of at least 0, got {quote(value)}")
    return [float(number) for number in numbers]


def damaged_state(name: str, problem: object) -> ValueError:
    """Return the error of a damaged state."""
    return ValueError(f"{name}: {problem}. The saved state is damaged: make the object again.")
