"""Limits of the studio: sizes, numbers, memory and times."""

from __future__ import annotations

from dataclasses import dataclass

from bilateral.io import FileError


class Refused(Exception):  # noqa: N818
    """A request is refused. The message is for the person at the page."""


@dataclass(frozen=True)
class Limits:
    """What one page, and all pages together, may take."""

    bytes: int = 256_000_000
    """Largest message: a file."""
    pixels: int = 50_000_000
    """Largest photograph."""
    total_pixels: int = 200_000_000
    """All open photographs together: each pixel takes some 60 bytes."""
    pages: int = 16
    seconds: float = 120.0
    """Longest computation."""
    idle_seconds: float = 1800.0
    """A page without any message for so long gives its memory back."""

    def check_photo(self, shape: tuple[int, ...], others: int) -> None:
        """Refuse a photograph that is too large, alone or with `others` pixels of other pages."""
        pixels = shape[0] * shape[1]
        if pixels > self.pixels:
            raise Refused(
                f"This photograph has {pixels / 1e6:.0f} megapixels; the studio takes up to "
                f"{self.pixels / 1e6:.0f}. Make it smaller, or use the command line."
            )
        if pixels + others > self.total_pixels:
            raise Refused(
                f"All open pages together may have {self.total_pixels / 1e6:.0f} megapixels. "
                f"Close another page of the studio first."
            )


def plain_message(error: Exception) -> str:
    """Return the message of an expected error, without the advice that is for programs."""
    text = str(error)
    if isinstance(error, FileError):
        text = text.replace(" Raise the limit (--limit) if you trust the file.", "")
        return f"The file {text}" if text[:1].islower() else text
    return text
