"""Share the memory of a device between all recordings: one lock, and memory given back together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")

_locks: dict[torch.device, Any] = {}
_owners: list[Callable[[torch.device], None]] = []


def lock_of(device: torch.device) -> Any:
    """Return the lock of a device; whoever makes or replays a recording there holds it.

    A thread may take it again: while a solve's grid is in use, a function of it may be replayed.
    """
    return _locks.setdefault(device, threading.RLock())  # atomic


def owner(drop: Callable[[torch.device], None]) -> Callable[[torch.device], None]:
    """Register a function that drops recordings of a device; its caller has the lock."""
    _owners.append(drop)
    return drop


def drop_recordings(device: torch.device) -> None:
    """Give back the memory of all recordings of a device; the caller has the lock."""
    for drop in _owners:
        drop(device)
    torch.cuda.empty_cache()


def free_memory(device: torch.device) -> None:
    """Give back the memory of all recordings of a device."""
    with lock_of(device):
        drop_recordings(device)


def retry_without_recordings(function: Callable[..., T]) -> Callable[..., T]:
    """Call a function again without recordings if the memory of the current device is too small."""

    @wraps(function)
    def run(*args: Any) -> T:
        try:
            return function(*args)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
        free_memory(torch.device("cuda", torch.cuda.current_device()))
        return function(*args)

    return run


def can_record(tensor: Tensor) -> bool:
    """Whether calls with a tensor can be recorded: not on the CPU, nor in a caller's recording."""
    return tensor.is_cuda and not torch.cuda.is_current_stream_capturing()


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether the memory of the device was too small."""
    # The end of a failed recording may raise an error of its own.
    return any(isinstance(e, torch.OutOfMemoryError) for e in (error, error.__context__))
