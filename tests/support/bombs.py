"""Small files that claim, or unpack to, far more memory than `LIMIT`."""

import io as streams
import struct
import zipfile
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from bilateral import io
from support import files

LIMIT = 10_000_000
TIFF_BODY = 16
"""Offset of the pixels and values in a TIFF file of this module."""
_LARGE = 3 * LIMIT
_SIDE = 3000
"""Side of a picture whose bytes pass the limit, but whose colours do not."""


def bombs() -> dict[str, bytes]:
    """Return files by name; reading each with `LIMIT` must be refused."""
    return {**_png(), **_tiff(), **_jpeg(), **_bmp(), **_numpy(), "claim.pfm": _pfm()}


def png_chunk(name: bytes, data: bytes) -> bytes:
    check = zlib.crc32(name + data)
    return len(data).to_bytes(4, "big") + name + data + check.to_bytes(4, "big")


def png_header(side: int, depth: int, color_type: int, interlace: int = 0) -> bytes:
    return png_chunk(
        b"IHDR", struct.pack(">IIBBBBB", side, side, depth, color_type, 0, 0, interlace)
    )


def png(*headers: bytes, more: bytes = b"", size: int = 100_000) -> bytes:
    """Return a PNG file of zeros with these headers; `size` counts its unpacked bytes."""
    pixels = png_chunk(b"IDAT", zlib.compress(bytes(size)))
    end = png_chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(headers) + more + pixels + end


def _png() -> dict[str, bytes]:
    palette = png_chunk(b"PLTE", bytes(6))
    transparent = png_chunk(b"tRNS", bytes(2))
    unpacked = _SIDE * (_SIDE + 1)
    return {
        "deep.png": png(png_header(2000, 16, 6)),
        "interlaced.png": png(png_header(2000, 8, 2, 1)),
        "palette.png": png(png_header(_SIDE, 8, 3), more=palette, size=unpacked),
        "transparent.png": png(png_header(_SIDE, 8, 0), more=transparent, size=unpacked),
        "two headers.png": png(png_header(8, 8, 0), png_header(5000, 8, 0), size=5000 * 5001),
    }


def tiff(pages: Sequence[dict[int, tuple[int, Any]]], body: bytes, *, big: bool = False) -> bytes:
    """Return a TIFF file whose pages have these tags.

    A tag is its type (3: 16 bits, 4: 32 bits) and a number, or the tuple ("at", offset, count) for
    values in `body`, which starts at `TIFF_BODY`. Tags may share values.
    """
    word, count = ("Q", "Q") if big else ("I", "H")
    at = TIFF_BODY + len(body)
    parts = []
    for number, page in enumerate(pages):
        entries = b""
        for code, (kind, value) in sorted(page.items()):
            if isinstance(value, tuple):
                _, offset, values = value
                entries += struct.pack(f"<HH{word}{word}", code, kind, values, offset)
            else:
                entries += struct.pack(f"<HH{word}{word}", code, kind, 1, value)
        end = at + struct.calcsize(f"<{count}{word}") + len(entries)
        following = 0 if number == len(pages) - 1 else end
        parts.append(
            struct.pack(f"<{count}", len(page)) + entries + struct.pack(f"<{word}", following)
        )
        at = end
    start = TIFF_BODY + len(body)
    header = struct.pack("<2sHHHQ", b"II", 43, 8, 0, start) if big else struct.pack(
        "<2sHI", b"II", 42, start
    )  # fmt: skip
    return header.ljust(TIFF_BODY, b"\0") + body + b"".join(parts)


def tiff_page(side: int, strips: int, **more: tuple[int, Any]) -> dict[int, tuple[int, Any]]:
    """Return the tags of a gray page of 8 bits; its strips have one offset and one size."""
    tags = {256: (4, side), 257: (4, side), 258: (3, 8), 259: (3, 8), 262: (3, 1), 277: (3, 1)}
    tags |= {278: (4, side // strips)}
    return tags | {int(name[1:]): tag for name, tag in more.items()}


def _tiff() -> dict[str, bytes]:
    strips = 30
    strip = zlib.compress(bytes(_SIDE * _SIDE // strips))
    offsets = TIFF_BODY + len(strip)
    sizes = offsets + 4 * strips
    colours = sizes + 4 * strips
    body = (
        strip
        + np.full(strips, TIFF_BODY, "<u4").tobytes()
        + np.full(strips, len(strip), "<u4").tobytes()
        + bytes(6 * 256)
    )
    shared = {"t273": (4, ("at", offsets, strips)), "t279": (4, ("at", sizes, strips))}
    gray = tiff_page(_SIDE, strips, **shared)
    palette = gray | {262: (3, 3), 320: (3, ("at", colours, 768))}
    planes = gray | {277: (3, 3), 284: (3, 2)}
    tiles = {tag: value for tag, value in gray.items() if tag not in (273, 278, 279)} | {
        256: (4, 16), 257: (4, 16), 322: (4, 60_000), 323: (4, 60_000),
        324: (4, TIFF_BODY), 325: (4, len(strip)),
    }  # fmt: skip
    many = 100_000
    lists = np.ones(2 * many, "<u4").tobytes()
    greedy = tiff_page(16, 1, t273=(4, ("at", TIFF_BODY, many)), t279=(4, ("at", TIFF_BODY, many)))
    return {
        "palette.tif": tiff([palette], body),
        "pages.tif": tiff([gray, gray], body),
        "big pages.tif": tiff([gray, gray], body, big=True),
        "planes.tif": tiff([planes], body),
        "tiles.tif": tiff([tiles], body),
        "deep.tif": tiff([gray | {258: (3, 64), 317: (3, 2)}], body),
        "tags.tif": tiff([greedy] * 60, lists),
        "big tags.tif": tiff([greedy] * 60, lists, big=True),
    }


def frame(side: int, marker: int = 0xC0) -> bytes:
    """Return the segment of a JPEG file that declares its size, for gray pictures."""
    return struct.pack(">BBHBHHBBBB", 0xFF, marker, 11, 8, side, side, 1, 1, 0x11, 0)


def _jpeg() -> dict[str, bytes]:
    small = io.encode(files.smooth((24, 24)), "x.jpg")
    at = small.index(frame(24))
    rest = small[at + len(frame(24)) :]
    return {
        "claim.jpg": small[:at] + frame(65_000) + rest,
        "progressive.jpg": small[:at] + frame(65_000, 0xC2) + rest,
        "large then small.jpg": small[:at] + frame(9000) + frame(24) + rest,
        "small then large.jpg": small[:at] + frame(24) + frame(1500) + rest,
    }


def _bmp() -> dict[str, bytes]:
    def bmp(width: int, height: int, bits: int, compression: int, pixels: bytes) -> bytes:
        palette = bytes(4 << bits) if bits <= 8 else b""
        header = struct.pack(
            "<2sIIIIiiHHIIiiII", b"BM", 0, 0, 54 + len(palette), 40, width, height, 1, bits,
            compression, len(pixels), 0, 0, 0, 0,
        )  # fmt: skip
        return header + palette + pixels

    return {
        "claim.bmp": bmp(60_000, 60_000, 24, 0, bytes(100)),
        "palette.bmp": bmp(_SIDE, _SIDE, 8, 1, b"\xff\0" * 10),
        "jump.bmp": bmp(2_000_000, 1, 8, 1, b"\0\2\0\xff"),
    }


def _numpy() -> dict[str, bytes]:
    one = io.encode(np.zeros(1), "x.npy")

    def npz(method: int) -> bytes:
        stream = streams.BytesIO()
        with zipfile.ZipFile(stream, "w", method) as archive:
            archive.writestr("data.npy", one + bytes(_LARGE))
        data = stream.getvalue()
        sizes = struct.pack("<I", len(one) + _LARGE)
        return data.replace(sizes, struct.pack("<I", len(one)))

    return {
        "claim.npy": one.replace(b"(1,), }        ", b"(999999999999,),}"),
        "object.npy": one.replace(b"'<f8'", b"'|O' "),
        "text.npy": one.replace(b"'<f8', 'fortran_order': False, 'shape': (1,), }     ",
                                b"'<U99999999', 'fortran_order': False, 'shape': (1,)}"),
        "lzma.npz": npz(zipfile.ZIP_LZMA),
        "bzip2.npz": npz(zipfile.ZIP_BZIP2),
    }  # fmt: skip


def _pfm() -> bytes:
    return b"PF\n99999 99999\n-1.0\n" + bytes(100)
