"""Write data to stdout; print to stderr: messages always, progress only on a terminal."""

import errno
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from bilateral.cli.errors import StdoutError

if TYPE_CHECKING:
    from rich.console import Console

STDOUT_ERRORS = (
    errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF,
)  # fmt: skip
"""Numbers of system errors that `print` raises if stdout cannot be written."""


def write_stdout(data: bytes | str) -> None:
    """Write a result or a line of data to stdout; raise `StdoutError` if that fails."""
    if sys.stdout is None:  # the program was started with stdout closed
        raise StdoutError(errno.EBADF, os.strerror(errno.EBADF))
    try:
        if isinstance(data, bytes):
            sys.stdout.buffer.write(data)
        else:
            sys.stdout.write(data)
        sys.stdout.flush()
    except OSError as error:
        raise StdoutError(error.errno, error.strerror) from None


def stdout_error() -> OSError | None:
    """Return the reason why stdout cannot be written, or None if all its data are written."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        return error
    return None


def print_message(text: str) -> None:
    """Print an error or a warning as one line to stderr, after the name of the program."""
    if sys.stderr is not None:  # `print` would take stdout instead
        with suppress(OSError):  # the exit code tells the rest
            print(f"bilateral: {text}", file=sys.stderr, flush=True)


def is_interactive(quiet: bool) -> bool:
    """Return whether to show progress: stderr is a terminal, without ``--quiet``."""
    return not quiet and sys.stderr is not None and sys.stderr.isatty()


def stderr_console() -> "Console":
    """Return a console for tables and progress on stderr; stdout is for data."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)
