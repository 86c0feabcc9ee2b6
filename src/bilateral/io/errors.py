"""Exceptions for files that cannot be read or written."""


class FileError(Exception):
    """A file cannot be read or written. The message is one line that gives the reason."""


class AlreadyExistsError(FileError):
    """A file exists already and must not be replaced."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: exists already. Replace it with --force.")


class CannotHoldError(FileError):
    """A format cannot store an array of this dtype or shape."""


class MissingPackageError(FileError):
    """A format needs a Python package that is not installed."""
