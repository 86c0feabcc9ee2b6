"""Decode EXR files. This is a program for a process of its own, not a module to import.

OpenEXR prints errors to stdout and stderr, and a hostile file may crash it. In this process both
streams are discarded, and the operating system limits the memory.

The arguments are the folders of `sys.path`. For each file, the program reads one line from stdin
with two numbers, the size of the file and the memory that decoding may take, and then the file.
It replies on stdout:

1. one line of JSON with the size of each part; then it reads a line, "pixels" or "skip";
2. one line of JSON with the shape and dtype of the pixels, then the pixels.

Instead of either line it may reply "refused" (the file may be valid) or "error" (it is not) with a
reason, and take the next file.
"""

import io
import json
import os
import resource
import sys
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ORDER = "RGBA"


class RefusedError(Exception):
    """The file is of a kind that this package does not read."""


def main() -> None:
    """Decode one file after another, until stdin ends."""
    sys.path[:] = sys.argv[1:]
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # the parent process discards stderr
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while line := requests.readline():
        size, memory = map(int, line.split())
        try:
            _answer(requests.read(size), memory, requests, replies)
        except RefusedError as error:
            _reply(replies, {"refused": str(error)})
        except MemoryError:
            _reply(replies, {"refused": "decoding takes more memory than the limit (--limit)."})
        except Exception as error:  # OpenEXR raises exceptions of many types
            _reply(replies, {"error": str(error) or type(error).__name__})


def _answer(data: bytes, memory: int, requests: BinaryIO, replies: BinaryIO) -> None:
    _limit_memory(memory)
    _reply(replies, {"parts": _part_sizes(data)})
    if requests.readline() == b"pixels\n":
        pixels = _pixels(data)
        _reply(replies, {"shape": pixels.shape, "dtype": str(pixels.dtype)})
        replies.write(pixels.data)
        replies.flush()


def _limit_memory(memory: int) -> None:
    """Let this process take only so much more memory than it has."""
    import OpenEXR  # noqa: F401, the library's own memory does not count

    with open("/proc/self/statm") as file:
        limit = int(file.read().split()[0]) * resource.getpagesize() + memory
    _, hard_limit = resource.getrlimit(resource.RLIMIT_AS)
    if hard_limit == resource.RLIM_INFINITY or limit < hard_limit:
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard_limit))


def _part_sizes(data: bytes) -> list[tuple[int, int, int]]:
    """Return the height, width and number of channels of each part."""
    import OpenEXR

    sizes = []
    with OpenEXR.File(io.BytesIO(data), header_only=True, num_threads=0) as file:
        for number in range(max(1, len(file.parts))):
            header = file.header(number)
            if header.get("type") in (OpenEXR.deepscanline, OpenEXR.deeptile):
                raise RefusedError("deep images are not supported.")
            low, high = header["dataWindow"]
            width, height = (int(b) - int(a) + 1 for a, b in zip(low, high, strict=True))
            sizes.append((height, width, max(1, len(header["channels"]))))
    return sizes


def _pixels(data: bytes) -> "NDArray[Any]":
    """Return the pixels of the first part, C-contiguous."""
    import numpy as np
    import OpenEXR

    sys.stdout = printed = io.StringIO()
    with OpenEXR.File(io.BytesIO(data), separate_channels=True, num_threads=0) as file:
        if printed.getvalue():  # OpenEXR prints the exceptions of its decoders, and continues
            raise ValueError(printed.getvalue())
        planes = _select_planes({name: c.pixels for name, c in file.channels().items()})
        if len({plane.shape for plane in planes}) > 1:
            raise RefusedError("channels of different sizes are not supported.")
        if len({plane.dtype.kind for plane in planes}) > 1:
            raise RefusedError("a mix of integer and floating point channels is not supported.")
        return np.array(planes[0]) if len(planes) == 1 else np.stack(planes, axis=-1)


def _select_planes(pixels: "dict[str, NDArray[Any]]") -> "list[NDArray[Any]]":
    """Return the only channel, or R, G, B and A in this order."""
    names = [name for name in _ORDER if name in pixels]
    if len(pixels) == 1:
        names = list(pixels)
    elif names not in (["R", "G", "B"], ["R", "G", "B", "A"]):
        listed = ", ".join(ascii(name)[1:-1][:40] for name in list(pixels)[:12])
        raise RefusedError(f"expected one channel, or R, G, B (and A), got: {listed or 'none'}.")
    return [pixels[name] for name in names]


def _reply(replies: BinaryIO, content: dict[str, Any]) -> None:
    replies.write(json.dumps(content).encode() + b"\n")
    replies.flush()


if __name__ == "__main__":
    main()
