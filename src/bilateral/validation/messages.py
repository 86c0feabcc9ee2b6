"""Format values and pixel positions for error messages."""

from collections.abc import Sequence

_MAX_LENGTH = 60


def quote(value: object) -> str:
    """Return the repr of a value, shortened to 60 characters."""
    try:
        text = repr(value)
    except Exception:  # the error is about the value, not about its repr
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _MAX_LENGTH else text[: _MAX_LENGTH - 3] + "..."


def position(index: Sequence[int]) -> str:
    """Return the position of a pixel in words, such as "row 2, column 3"."""
    axes = ("frame", "row", "column")[-len(index) :]
    return ", ".join(f"{axis} {i}" for axis, i in zip(axes, index, strict=True))
