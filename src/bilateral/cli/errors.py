"""Exit codes of the program, and the exception for wrong usage."""

FAILED, USAGE, INTERRUPTED, TERMINATED = 1, 2, 130, 143


class UsageError(Exception):
    """The arguments are wrong. The message is one line."""
