"""Split the header of a JPEG file into what the decoder needs and what tells its orientation."""

from typing import NamedTuple

from bilateral.io.errors import FileError

_EXIF = b"Exif\0\0"
_XMP = b"http://ns.adobe.com/xap/1.0/\0"
_SCAN, _END, _COMMENT, _APP1 = 0xDA, 0xD9, 0xFE, 0xE1
_WITHOUT_LENGTH = {0x00, 0x01, *range(0xD0, 0xD9)}
"""Escaped bytes and markers that no data follow: TEM, RST0 to RST7 and SOI."""
_FRAMES = {*range(0xC0, 0xD0), 0xDE} - {0xC4, 0xC8, 0xCC}
"""Markers that declare a size: SOF0 to SOF15, without DHT, JPG and DAC, and DHP."""
_METADATA = {*range(0xE1, 0xEE), 0xEF, _COMMENT}
"""Comments and application data, without JFIF (APP0) and Adobe (APP14), which tell the colours."""


class Segments(NamedTuple):
    """Parts of a JPEG file."""

    picture: bytes
    """The file without metadata and with one declaration of its size."""
    exif: bytes
    xmp: bytes


def split(data: bytes) -> Segments:
    """Return the parts of a JPEG file.

    A file that declares its size twice is refused: one decoder may check the first size and
    another may decode by the second.
    """
    kept, exif, xmp, frames = [data[:2]], b"", b"", 0
    at = 2
    while True:
        at = data.find(b"\xff", at)
        marker = data[at + 1] if 0 <= at < len(data) - 1 else _END
        if marker == 0xFF:  # padding
            at += 1
            continue
        if marker in _WITHOUT_LENGTH:
            at += 2
            continue
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        if marker == _END or end < at + 4 or end > len(data):
            raise FileError("is damaged: its header ends too early.")
        if marker == _SCAN:
            return Segments(b"".join([*kept, data[at:]]), exif, xmp)
        content = data[at + 4 : end]
        if marker == _APP1 and content.startswith(_EXIF):
            exif += content[len(_EXIF) :]
        elif marker == _APP1 and content.startswith(_XMP):
            xmp = content[len(_XMP) :]
        frames += marker in _FRAMES
        if frames > 1:
            raise FileError("is damaged: it declares its size twice.")
        if marker not in _METADATA:
            kept.append(data[at:end])
        at = end
