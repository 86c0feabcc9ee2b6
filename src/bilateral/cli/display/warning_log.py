"""Collect warnings by the thread that issued them, to print them at the end."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bilateral
from bilateral import ConvergenceWarning
from bilateral.cli.wording import zeros_warning
from bilateral.validation import ZeroDepthWarning

_PACKAGE = str(Path(bilateral.__file__).parent)

_logs: dict[int, list[str]] = {}
"""The log of each thread, by its identifier."""
_discarded: dict[int, tuple[type[Warning], ...]] = {}
"""Categories that a thread discards, by its identifier."""


@contextmanager
def collect_warnings(log: list[str]) -> Iterator[None]:
    """Append warnings of this thread to `log`. Requires `redirect_warnings` around it."""
    _logs[threading.get_ident()] = log
    try:
        yield
    finally:
        del _logs[threading.get_ident()]


@contextmanager
def discard_warnings(categories: tuple[type[Warning], ...]) -> Iterator[None]:
    """Discard warnings of these categories in this thread."""
    _discarded[threading.get_ident()] = categories
    try:
        yield
    finally:
        del _discarded[threading.get_ident()]


@contextmanager
def redirect_warnings() -> Iterator[None]:
    """Send the warnings of this package to the log of their thread; discard all others.

    Warnings of other libraries do not help the users of a command.
    """

    def append(message: Warning | str, category: type[Warning], filename: str, *_: Any) -> None:
        thread = threading.get_ident()
        if issubclass(category, _discarded.get(thread, ())):
            return
        about_inputs = issubclass(category, UserWarning) and filename.startswith(_PACKAGE)
        if about_inputs or issubclass(category, ConvergenceWarning):
            text = str(message)
            if isinstance(message, ZeroDepthWarning):
                text = zeros_warning(message.fraction)
            _logs.get(thread, []).append(" ".join(text.split()))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = append  # type: ignore[assignment]
        yield
