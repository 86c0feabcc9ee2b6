"""What people see: lines on stderr, and hardly any where nobody watches."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def complain(text: str) -> None:
    """One line on stderr."""
    print(f"bilateral: {text}", file=sys.stderr, flush=True)


def watched(quiet: bool) -> bool:
    """Whether somebody sees the progress: stderr is a terminal."""
    return not quiet and sys.stderr is not None and sys.stderr.isatty()


def console() -> "Console":
    """For tables and progress, on stderr: stdout is for data."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)
