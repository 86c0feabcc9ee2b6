"""Exit codes of the program, and exceptions for wrong usage and for stdout."""

FAILED, USAGE, INTERRUPTED, TERMINATED = 1, 2, 130, 143


class StdoutError(OSError):
    """Stdout cannot be written: its disk is full, or nobody reads it any more."""


class UsageError(Exception):
    """The arguments are wrong. The message is one line."""
