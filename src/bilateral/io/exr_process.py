"""Decode EXR files in processes that run the program `exr_worker`."""

import atexit
import json
import math
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bilateral.io.errors import FileError
from bilateral.io.limits import check_memory, check_size
from bilateral.io.messages import os_reason

Array = NDArray[Any]

_PROGRAM = Path(__file__).with_name("exr_worker.py")
_BUFFERS = 1 << 28
"""Memory in bytes that the decoder may take for itself, beside the file and its pixels."""


class _Worker:
    """One process. It decodes one file at a time, for one thread at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_PROGRAM), *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            process_group=0,  # Ctrl-C must not end a process that is used again
        )
        self._requests: Any = self._process.stdin
        self._replies: Any = self._process.stdout
        self.ready = True
        """Whether the process waits for the next file."""

    def decode(self, data: bytes, limit: int) -> Array:
        """Return the pixels of a file; raise EOFError or BrokenPipeError if the process ends."""
        self.ready = False
        self._send(b"%d %d\n" % (len(data), 2 * (limit + len(data)) + _BUFFERS), data)
        parts = self._receive()["parts"]
        try:
            _check_parts(parts, limit)
        except FileError:
            self._send(b"skip\n")
            self.ready = True
            raise
        self._send(b"pixels\n")
        reply = self._receive()
        array = np.empty(reply["shape"], reply["dtype"])
        if self._replies.readinto(array.data.cast("B")) != array.nbytes:
            raise EOFError
        self.ready = True
        if array.shape[:2] != tuple(parts[0][:2]):
            raise FileError("channels of different sizes are not supported.")
        return array

    def close(self, *, ours: bool = True) -> None:
        """End the process. If it is not `ours`, but the parent's, only close our ends of pipes."""
        if ours:
            self._process.kill()
            self._process.wait()
        else:
            self._process.returncode = 0  # nothing to wait for
        for stream in (self._requests, self._replies):
            with suppress(OSError):
                stream.close()

    def _send(self, *parts: bytes) -> None:
        for part in parts:
            self._requests.write(part)
        self._requests.flush()

    def _receive(self) -> dict[str, Any]:
        """Return one reply; raise the error that it may hold."""
        line = self._replies.readline()
        if not line:
            raise EOFError
        reply: dict[str, Any] = json.loads(line)
        self.ready = "refused" in reply or "error" in reply
        if "refused" in reply:
            raise FileError(reply["refused"])
        if "error" in reply:
            raise ValueError(reply["error"])
        return reply


_idle: list[_Worker] = []


def decode(data: bytes, limit: int) -> Array:
    """Return the pixels of an EXR file; arrays above `limit` bytes are refused."""
    with suppress(IndexError, BrokenPipeError, EOFError):
        return _decode_by(_idle.pop(), data, limit)
    try:  # no worker is idle, or it has been killed
        return _decode_by(_Worker(), data, limit)
    except (BrokenPipeError, EOFError):
        raise FileError("is damaged: OpenEXR crashes on it.") from None
    except OSError as error:
        message = f"the process that decodes EXR files cannot start: {os_reason(error)}."
        raise FileError(message) from None


def _decode_by(worker: _Worker, data: bytes, limit: int) -> Array:
    try:
        return worker.decode(data, limit)
    finally:
        if worker.ready:
            _idle.append(worker)
        else:
            worker.close()


def _check_parts(shapes: list[list[int]], limit: int) -> None:
    """Check all parts of a file: OpenEXR decodes them all, though only the first is used."""
    for shape in shapes:
        check_size(shape, np.float32, limit)
    total = sum(4 * math.prod(shape) for shape in shapes)
    check_memory(f"its {len(shapes)} parts", total, limit)


def _close_all(ours: bool) -> None:
    while _idle:
        _idle.pop().close(ours=ours)


atexit.register(_close_all, ours=True)
os.register_at_fork(after_in_child=lambda: _close_all(ours=False))
