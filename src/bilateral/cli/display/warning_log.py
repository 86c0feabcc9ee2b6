"""Warnings, kept apart by the thread they come from, for the end of the program."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bilateral.info import ConvergenceWarning

_listeners: dict[int, list[str]] = {}


@contextmanager
def collected(found: list[str]) -> Iterator[None]:
    """What is warned of in this thread, while `listening`."""
    _listeners[threading.get_ident()] = found
    try:
        yield
    finally:
        del _listeners[threading.get_ident()]


@contextmanager
def listening() -> Iterator[None]:
    """Keep warnings for the end; warnings of other libraries are none of the user's business."""

    def keep(message: Warning | str, category: type[Warning], *_: Any) -> None:
        if issubclass(category, ConvergenceWarning):
            _listeners.get(threading.get_ident(), []).append(" ".join(str(message).split()))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = keep  # type: ignore[assignment]
        yield
