"""Table of file formats: recognize each by content or suffix, and find its codec."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePath
from typing import Any

from bilateral.io.errors import MissingPackageError


@dataclass(frozen=True)
class Format:
    """One file format. Its module is imported with the first file of the format."""

    name: str
    suffixes: tuple[str, ...]
    signatures: tuple[bytes, ...]
    """First bytes of a file; one of them must match."""
    module: str
    decoder: str = "decode"
    encoder: str = "encode"
    extra: str = "cli"
    """Extra of the package `bilateral` that installs what the format needs."""

    def decode(self) -> Callable[..., Any]:
        """Return the function that decodes bytes with `Options`."""
        function: Callable[..., Any] = self._member(self.decoder)
        return function

    def encode(self) -> Callable[..., bytes]:
        """Return the function that encodes an array."""
        function: Callable[..., bytes] = self._member(self.encoder)
        return function

    def holds(self) -> str:
        """Describe the arrays that the format can store."""
        return str(self._member("HOLDS"))

    def missing_package(self, package: str | None) -> MissingPackageError:
        """Return the error for a package that is not installed."""
        return MissingPackageError(
            f'{self.name} files need {package}: pip install "bilateral[{self.extra}]"'
        )

    def _member(self, name: str) -> Any:
        return getattr(import_module(f"bilateral.io.{self.module}"), name)


FORMATS = (
    Format("PNG", (".png",), (b"\x89PNG\r\n\x1a\n",), "png"),
    Format("JPEG", (".jpg", ".jpeg"), (b"\xff\xd8\xff",), "jpeg_bmp", "decode_jpeg", "encode_jpeg"),
    Format("PFM", (".pfm",), (b"PF", b"Pf"), "pfm"),
    Format("TIFF", (".tif", ".tiff"), (b"II*\0", b"MM\0*", b"II+\0\x08\0", b"MM\0+\0\x08"), "tiff"),
    Format("EXR", (".exr",), (b"v/1\x01",), "exr", extra="exr"),
    Format("NPY", (".npy",), (b"\x93NUMPY",), "npy"),
    Format("NPZ", (".npz",), (b"PK\x03\x04", b"PK\x05\x06"), "npy", "decode_npz", "encode_npz"),
    Format("BMP", (".bmp",), (b"BM",), "jpeg_bmp", "decode_bmp", "encode_bmp"),
)

SUFFIXES = frozenset(suffix for entry in FORMATS for suffix in entry.suffixes)


def by_content(data: bytes) -> Format | None:
    """Return the format that the first bytes of a file belong to."""
    return next((entry for entry in FORMATS if data.startswith(entry.signatures)), None)


def by_suffix(path: str | PurePath) -> Format | None:
    """Return the format of a path's suffix, in upper or lower case."""
    suffix = PurePath(path).suffix.lower()
    return next((entry for entry in FORMATS if suffix in entry.suffixes), None)


def names() -> str:
    """Return the names of all formats as text, for messages."""
    *others, last = (entry.name for entry in FORMATS)
    return f"{', '.join(others)} or {last}"
