"""What goes wrong with files, each in one line for people."""

import os


class FileError(Exception):
    """A file that cannot be read or written; the message is one line that says why."""


class CannotHoldError(FileError):
    """A format has no place for an array of that dtype or shape."""


class MissingPackageError(FileError):
    """A format that needs a package which is not installed."""


def shown(path: str | os.PathLike[str]) -> str:
    """A path in one line, whatever characters it holds."""
    text = os.fspath(path)
    return text if text.isprintable() else ascii(text)


def first_line(error: BaseException | str, most: int = 200) -> str:
    """What an exception says, as one line of a bearable length."""
    text = " ".join(str(error).split()) or type(error).__name__
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    return text if len(text) <= most else text[: most - 3] + "..."


def reason(error: OSError) -> str:
    """Why the system refused, without number and path."""
    return error.strerror or first_line(error)
