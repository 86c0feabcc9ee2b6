"""Exceptions for files that cannot be read or written."""


class FileError(Exception):
    """A file cannot be read or written. The message is one line that gives the reason."""


class CannotHoldError(FileError):
    """A format cannot store an array of this dtype or shape."""


class MissingPackageError(FileError):
    """A format needs a Python package that is not installed."""
