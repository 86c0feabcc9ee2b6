"""Wall-clock times, and what is reported of them."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


@dataclass(frozen=True)
class Timing:
    """Median and quartiles of repeated measurements, in seconds."""

    median: float
    low: float
    high: float
    repeats: int

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Timing":
        low, median, high = (float(q) for q in np.percentile(seconds, [25, 50, 75]))
        return cls(median, low, high, len(seconds))


def clock(function: Callable[..., T], *arguments: Any, **options: Any) -> tuple[float, T]:
    """Seconds of one call, and its result."""
    began = time.perf_counter()
    result = function(*arguments, **options)
    return time.perf_counter() - began, result


def repeated(function: Callable[..., Any], repeats: int, *arguments: Any, **options: Any) -> Timing:
    """Time a call `repeats` times after one warm-up."""
    function(*arguments, **options)
    return Timing.of([clock(function, *arguments, **options)[0] for _ in range(repeats)])


def geometric_mean(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))
