"""Measure wall-clock times and summarize them by median and quartiles."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
Stopwatch = Callable[[], float]


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

    def __format__(self, spec: str) -> str:
        """Format as ``median (low .. high)`` in ms; ``ms``: the median; ``us``: in microseconds."""
        if spec == "ms":
            return ms(self.median)
        unit = microseconds if spec == "us" else ms
        return f"{unit(self.median)} ({unit(self.low)} .. {unit(self.high)})"


def short(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def ms(seconds: float) -> str:
    return short(1e3 * seconds)


def microseconds(seconds: float) -> str:
    return f"{1e6 * seconds:,.1f}"


def clock(function: Callable[..., T], *arguments: Any, **options: Any) -> tuple[float, T]:
    began = time.perf_counter()
    result = function(*arguments, **options)
    return time.perf_counter() - began, result


def stopwatch(function: Callable[..., Any], *arguments: Any, **options: Any) -> Stopwatch:
    return lambda: clock(function, *arguments, **options)[0]


def repeated(function: Callable[..., Any], repeats: int, *arguments: Any, **options: Any) -> Timing:
    return in_turns({"": stopwatch(function, *arguments, **options)}, repeats)[""]


def in_turns(calls: Mapping[Any, Stopwatch], repeats: int, warm_ups: int = 1) -> dict[Any, Timing]:
    """Time several calls alternately, so that other work on the machine slows all of them alike."""
    seconds: dict[Any, list[float]] = {name: [] for name in calls}
    for _ in range(warm_ups + repeats):
        for name, call in calls.items():
            seconds[name].append(call())
    return {name: Timing.of(values[warm_ups:]) for name, values in seconds.items()}


def geometric_mean(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))
