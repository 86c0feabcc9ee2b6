"""Cache small constant tensors, since a CUDA graph cannot copy them to the device itself."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")


class _Holders(threading.local):
    """The lists of this thread that collect values: threads may record graphs side by side."""

    def __init__(self) -> None:
        self.lists: list[list[Any]] = []


_holders = _Holders()


def constant(values: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return a cached, read-only tensor of a number or of nested tuples of numbers."""
    return hold(_cached_tensor(values, dtype, device))


@lru_cache(maxsize=256)
def _cached_tensor(values: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(values, dtype=dtype, device=device)


def hold(value: T) -> T:
    """Return a cached value, and keep it alive for each graph that is being recorded.

    The cache may drop the value while the graph still reads its memory.
    """
    for held in _holders.lists:
        held.append(value)
    return value


@contextmanager
def holding() -> Iterator[list[Any]]:
    """Collect all values that pass through `hold` in this context."""
    held: list[Any] = []
    _holders.lists.append(held)
    try:
        yield held
    finally:
        _holders.lists.pop()
