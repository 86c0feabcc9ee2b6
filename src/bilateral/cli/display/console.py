"""Print to stderr: messages always, progress and tables only on a terminal."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def print_message(text: str) -> None:
    """Print an error or a warning as one line to stderr, after the name of the program."""
    print(f"bilateral: {text}", file=sys.stderr, flush=True)


def is_interactive(quiet: bool) -> bool:
    """Return whether to show progress: stderr is a terminal, without ``--quiet``."""
    return not quiet and sys.stderr is not None and sys.stderr.isatty()


def stderr_console() -> "Console":
    """Return a console for tables and progress on stderr; stdout is for data."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)
