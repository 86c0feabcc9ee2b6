"""Format paths, shapes and exceptions as short text for one-line messages."""

import os
from collections.abc import Sequence


def printable(path: str | os.PathLike[str]) -> str:
    """Return a path as text, escaped if it holds line breaks or control characters."""
    text = os.fspath(path)
    return text if text.isprintable() else ascii(text)


def one_line(error: BaseException | str, max_length: int = 200) -> str:
    """Return the message of an exception as one printable line of limited length."""
    text = " ".join(str(error).split()) or type(error).__name__
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    return text if len(text) <= max_length else text[: max_length - 3] + "..."


def os_reason(error: OSError) -> str:
    """Return the operating system's reason, without the error number and the path."""
    return error.strerror or one_line(error)


def size_text(shape: Sequence[int]) -> str:
    """Return a shape as text, such as 480 x 640 x 3."""
    return " x ".join(map(str, shape)) or "of a single number"
