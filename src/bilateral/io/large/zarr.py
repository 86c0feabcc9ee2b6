"""Read and write rows of Zarr arrays of version 2 and 3."""

import asyncio
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.core.sync import sync

from bilateral.io import atomic
from bilateral.io.errors import FileError
from bilateral.io.large.rows import regroup

Array = NDArray[Any]

_CHUNK = 512
"""Height and width of a chunk of a new array."""


class ZarrRows:
    """A Zarr array, read in rows."""

    def __init__(self, array: Any) -> None:
        self._array = array
        self.shape: tuple[int, ...] = tuple(array.shape)
        self.dtype: np.dtype[Any] = np.dtype(array.dtype).newbyteorder("=")
        if len(self.shape) not in (2, 3) or self.dtype.kind not in "buif":
            raise FileError(
                f"expected an array (H, W) or (H, W, C) of real numbers, got {self.shape} "
                f"{array.dtype}."
            )
        shards = getattr(array, "shards", None)
        self.row_step = int((shards or array.chunks)[0])
        self.zarr_format: int | None = int(array.metadata.zarr_format)

    def rows(self, start: int, stop: int) -> Array:
        """Read some rows."""
        try:
            return np.ascontiguousarray(self._array[start:stop], self.dtype)
        except Exception:
            sync(_other_reads())
            raise

    def close(self) -> None:
        """Do nothing: every read opens and closes the files of its chunks."""


async def _other_reads() -> None:
    """Wait for the chunks that Zarr still reads beside a damaged one; else they fail at exit."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*tasks, return_exceptions=True)


def open_zarr(path: str | os.PathLike[str]) -> ZarrRows:
    """Open a Zarr array."""
    node = zarr.open(os.fspath(path), mode="r")
    if isinstance(node, zarr.Group):
        names = ", ".join(sorted(name for name, _ in node.arrays())[:12])
        raise FileError(f"is a group of arrays. Name one of them: {names or 'it has none'}.")
    return ZarrRows(node)


class ZarrWriter:
    """Writes a Zarr array, whole chunks at a time."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        zarr_format: int,
    ) -> None:
        self._path, self._shape, self._dtype = path, shape, dtype
        self._format = zarr_format

    def write(self, strips: Iterable[Array], *, overwrite: bool) -> None:
        """Write all rows."""
        chunks = (*(min(_CHUNK, size) for size in self._shape[:2]), *self._shape[2:])
        with atomic.replacing(self._path, overwrite=overwrite) as temporary:
            array = zarr.create_array(
                temporary,
                shape=self._shape,
                dtype=self._dtype,
                chunks=chunks,
                zarr_format=self._format,
            )
            at = 0
            for rows in regroup(strips, chunks[0]):
                array[at : at + len(rows)] = rows
                at += len(rows)
