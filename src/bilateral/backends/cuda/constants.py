"""Small tensors that are made once: a graph cannot copy them to the device each time."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")

_holders: list[list[Any]] = []


def constant(values: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A tensor of nested tuples of numbers, not to be written to."""
    return hold(_made(values, dtype, device))


@lru_cache(maxsize=256)
def _made(values: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(values, dtype=dtype, device=device)


def hold(value: T) -> T:
    """Something from a cache, which may forget it: a graph that is being recorded keeps it."""
    for held in _holders:
        held.append(value)
    return value


@contextmanager
def holding() -> Iterator[list[Any]]:
    """Collect what `hold` is given meanwhile."""
    held: list[Any] = []
    _holders.append(held)
    try:
        yield held
    finally:
        _holders.remove(held)
