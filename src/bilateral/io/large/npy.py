"""Read and write rows of NPY files."""

import math
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from bilateral.io import atomic
from bilateral.io.errors import FileError

Array = NDArray[Any]


class NpyRows:
    """An NPY file, read in rows without a map of the file in memory."""

    row_step = 1
    zarr_format = None

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = open(path, "rb")  # noqa: SIM115 - `close` closes it
        try:
            self._read_header()
        except BaseException:
            self._file.close()
            raise

    def _read_header(self) -> None:
        version = npy_format.read_magic(self._file)
        if version not in ((1, 0), (2, 0)):
            raise FileError(f"expected version 1 or 2 of the format, got {version}.")
        read = (
            npy_format.read_array_header_1_0
            if version == (1, 0)
            else npy_format.read_array_header_2_0
        )
        self.shape, fortran, self._stored = read(self._file)
        if fortran or self._stored.kind not in "buif" or len(self.shape) not in (2, 3):
            raise FileError(
                "expected an array (H, W) or (H, W, C) of real numbers in C order. Save it again "
                "with numpy.ascontiguousarray."
            )
        self._offset = self._file.tell()
        self.dtype = self._stored.newbyteorder("=")

    def rows(self, start: int, stop: int) -> Array:
        """Read some rows."""
        row = math.prod(self.shape[1:])
        self._file.seek(self._offset + start * row * self._stored.itemsize)
        values = np.fromfile(self._file, self._stored, (stop - start) * row)
        if values.size < (stop - start) * row:
            raise FileError("the file ends too early.")
        return values.reshape(stop - start, *self.shape[1:]).astype(self.dtype, copy=False)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class NpyWriter:
    """Writes an NPY file."""

    def __init__(
        self, path: str | os.PathLike[str], shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        self._path, self._shape, self._dtype = path, shape, dtype

    def write(self, strips: Iterable[Array], *, overwrite: bool) -> None:
        """Write all rows."""
        header = {
            "descr": npy_format.dtype_to_descr(self._dtype),
            "fortran_order": False,
            "shape": self._shape,
        }
        with (
            atomic.replacing(self._path, overwrite=overwrite) as temporary,
            open(temporary, "wb") as file,
        ):
            npy_format.write_array_header_2_0(file, header)
            for strip in strips:
                np.ascontiguousarray(strip, self._dtype).tofile(file)
