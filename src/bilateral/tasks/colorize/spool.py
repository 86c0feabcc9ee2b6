"""Store arrays of one shape in a temporary file, so that a video need not fit into memory."""

import tempfile
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_IN_MEMORY = 64_000_000
"""Bytes up to which no file is made."""


class Spool:
    """A list of arrays on disk. All have the shape and dtype of the first one."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115, closed by __exit__
        self._shape: tuple[int, ...] = ()
        self._dtype, self._size, self._length = np.dtype(np.uint8), 0, 0

    def __len__(self) -> int:
        return self._length

    def append(self, array: Array) -> None:
        """Store one more array."""
        if not self._length:
            self._shape, self._dtype, self._size = array.shape, array.dtype, array.nbytes
        self._file.seek(self._length * self._size)
        self._file.write(np.ascontiguousarray(array).tobytes())
        self._length += 1

    def __getitem__(self, index: int) -> Array:
        self._file.seek(index * self._size)
        data = self._file.read(self._size)
        return np.frombuffer(data, self._dtype).reshape(self._shape)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
