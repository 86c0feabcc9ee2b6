"""Measure what the paper's tables and the single benchmarks share: data, clocks, peers, reports."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
