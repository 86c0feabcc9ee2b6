"""Collect warnings by the thread that issued them, to print them at the end."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bilateral
from bilateral import ConvergenceWarning
from bilateral.cli.files.mistakes import ZerosWarning
from bilateral.validation import ZeroDepthWarning

_PACKAGE = str(Path(bilateral.__file__).parent)

_logs: dict[int, list[str]] = {}
"""The log of each thread, by its identifier."""


@contextmanager
def collect_warnings(log: list[str]) -> Iterator[None]:
    """Append warnings of this thread to `log`. Requires `redirect_warnings` around it."""
    _logs[threading.get_ident()] = log
    try:
        yield
    finally:
        del _logs[threading.get_ident()]


@contextmanager
def redirect_warnings() -> Iterator[None]:
    """Send the warnings of this package to the log of their thread; discard all others.

    Warnings of other libraries do not help the users of a command.
    """

    def append(message: Warning | str, category: type[Warning], filename: str, *_: Any) -> None:
        if issubclass(category, ZeroDepthWarning):  # the command line has its own, once per run
            return
        about_inputs = issubclass(category, UserWarning) and filename.startswith(_PACKAGE)
        if about_inputs or issubclass(category, ConvergenceWarning | ZerosWarning):
            _logs.get(threading.get_ident(), []).append(" ".join(str(message).split()))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = append  # type: ignore[assignment]
        yield
