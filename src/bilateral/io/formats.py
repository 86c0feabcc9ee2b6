"""The formats: how to tell them by content and by name, and who reads and writes them."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePath
from typing import Any

from bilateral.io.problems import MissingPackageError


@dataclass(frozen=True)
class Format:
    """One format. Its module is imported when the first such file turns up."""

    name: str
    suffixes: tuple[str, ...]
    begins: tuple[bytes, ...]
    module: str
    decoder: str = "decode"
    encoder: str = "encode"
    extra: str = "cli"

    def decode(self) -> Callable[..., Any]:
        """The function of bytes and `Options`."""
        function: Callable[..., Any] = self._find(self.decoder)
        return function

    def encode(self) -> Callable[..., bytes]:
        """The function of an array."""
        function: Callable[..., bytes] = self._find(self.encoder)
        return function

    def holds(self) -> str:
        """Which arrays it can hold, in words."""
        return str(self._find("HOLDS"))

    def missing(self, package: str | None) -> MissingPackageError:
        """What to say when a package cannot be imported."""
        return MissingPackageError(
            f'{self.name} files need {package}: pip install "bilateral[{self.extra}]"'
        )

    def _find(self, name: str) -> Any:
        return getattr(import_module(f"bilateral.io.{self.module}"), name)


FORMATS = (
    Format("PNG", (".png",), (b"\x89PNG\r\n\x1a\n",), "png"),
    Format("JPEG", (".jpg", ".jpeg"), (b"\xff\xd8\xff",), "photo", "decode_jpeg", "encode_jpeg"),
    Format("PFM", (".pfm",), (b"PF", b"Pf"), "pfm"),
    Format("TIFF", (".tif", ".tiff"), (b"II*\0", b"MM\0*", b"II+\0\x08\0", b"MM\0+\0\x08"), "tiff"),
    Format("EXR", (".exr",), (b"v/1\x01",), "exr", extra="exr"),
    Format("NPY", (".npy",), (b"\x93NUMPY",), "npy"),
    Format("NPZ", (".npz",), (b"PK\x03\x04", b"PK\x05\x06"), "npy", "decode_npz", "encode_npz"),
    Format("BMP", (".bmp",), (b"BM",), "photo", "decode_bmp", "encode_bmp"),
)

SUFFIXES = frozenset(suffix for known in FORMATS for suffix in known.suffixes)


def by_content(data: bytes) -> Format | None:
    """The format that the first bytes belong to."""
    return next((known for known in FORMATS if data.startswith(known.begins)), None)


def by_suffix(path: str | PurePath) -> Format | None:
    """The format that a name ends with, in upper or lower case."""
    suffix = PurePath(path).suffix.lower()
    return next((known for known in FORMATS if suffix in known.suffixes), None)


def names() -> str:
    """All formats, for messages."""
    *most, last = (known.name for known in FORMATS)
    return f"{', '.join(most)} or {last}"
