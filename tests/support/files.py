"""Small files of every format, for the tests of readers and commands."""

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral import io

Array = NDArray[Any]

ANY_REAL = ("uint8", "uint16", "uint32", "int8", "int16", "int32", "float16", "float32", "float64")
GRAY, PAIR, RGB, RGBA, MANY = (), (2,), (3,), (4,), (21,)

# Dtypes and channels that each format keeps bit for bit.
KEEPS = {
    ".png": (("uint8", "uint16"), (GRAY, PAIR, RGB, RGBA)),
    ".pfm": (("float32",), (GRAY, RGB)),
    ".tif": ((*ANY_REAL, "uint64", "int64"), (GRAY, PAIR, RGB, RGBA, MANY)),
    ".tiff": (("uint16", "float32"), (GRAY, RGB)),
    ".exr": (("float16", "float32", "uint32"), (GRAY, RGB, RGBA)),
    ".npy": ((*ANY_REAL, "uint64", "int64", "bool"), (GRAY, PAIR, RGB, RGBA, MANY)),
    ".npz": ((*ANY_REAL, "uint64", "int64", "bool"), (GRAY, PAIR, RGB, RGBA, MANY)),
    ".bmp": (("uint8",), (GRAY, RGB)),
}


def noise(dtype: str, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Return random bits as an array; NaN and infinities may occur."""
    kind = np.dtype(dtype)
    rng = np.random.default_rng(seed)
    if kind.kind == "b":
        return rng.random(shape) < 0.5
    size = int(np.prod(shape)) * kind.itemsize
    return np.frombuffer(rng.bytes(size), kind).reshape(shape)


def bits(array: Array) -> bytes:
    """Return the bytes of an array, so that NaN equals NaN in comparisons."""
    return np.ascontiguousarray(array).tobytes()


def samples() -> dict[str, bytes]:
    """Return valid files of all formats and important kinds, as input of mutations."""
    found = {}
    for suffix, (dtypes, channels) in KEEPS.items():
        for dtype in (dtypes[0], dtypes[-1]):
            for more in (channels[0], channels[-1]):
                array = noise(dtype, (12, 17, *more))
                found[f"{dtype}-{len(more)}{suffix}"] = io.encode(array, f"x{suffix}")
    found["photo.jpg"] = io.encode(smooth((24, 33, 3)), "x.jpg")
    found["gray.jpg"] = io.encode(smooth((24, 33)), "x.jpg")
    stack = noise("float32", (3, 12, 17))
    found["stack.tif"] = io.encode(stack, "x.tif", pages=True)
    return found


def smooth(shape: tuple[int, ...]) -> Array:
    """Return a smooth picture, which JPEG hardly changes."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    gray = (4 * x + 3 * y).clip(0, 255).astype(np.uint8)
    return gray if len(shape) == 2 else np.stack([gray] * shape[2], axis=-1)


def bomb(width: int, height: int) -> bytes:
    """Return a small PNG file whose header claims a huge size."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            len(data).to_bytes(4, "big") + name + data + zlib.crc32(name + data).to_bytes(4, "big")
        )

    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 2, 0, 0, 0])
    pixels = zlib.compress(bytes(100_000))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    )
