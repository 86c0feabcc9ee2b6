"""Draw chunks of an image, and compare results in blocks with those in memory."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

import bilateral

Array = npt.NDArray[Any]


@st.composite
def chunks(draw: st.DrawFn, shape: tuple[int, ...], least: int = 1) -> list[list[int]]:
    """Sizes of chunks along y and x: from `least` pixels to the whole image."""
    sizes = []
    for length in shape[:2]:
        parts: list[int] = []
        while sum(parts) < length:
            rest = length - sum(parts)
            smallest = min(least, rest)
            parts.append(draw(st.just(smallest) | st.just(rest) | st.integers(smallest, rest)))
        sizes.append(parts)
    return sizes


def same_bits(a: Array, b: Array) -> bool:
    """Whether two arrays have the same shape, dtype and bits."""
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def outcome(call: Callable[[], Any]) -> Any:
    """Return the result of a call, or the error that it raises; warnings do not matter."""
    with warnings.catch_warnings(), np.errstate(over="ignore"):
        warnings.simplefilter("ignore", bilateral.ConvergenceWarning)
        try:
            return call()
        except ValueError as error:
            return str(error)
