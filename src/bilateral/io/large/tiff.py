"""Read and write rows of tiled and stripped TIFF and BigTIFF files by tifffile."""

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray

from bilateral.io import atomic
from bilateral.io.errors import CannotHoldError, FileError
from bilateral.io.large.rows import regroup
from bilateral.io.orientation import TAG
from bilateral.io.tiff import COMPRESSIONS, WHITE_IS_ZERO, extra_samples

Array = NDArray[Any]

_TILE = 512
"""Height and width of a tile of a new file."""
_WORKERS = os.cpu_count() or 1


class TiffRows:
    """A page of a TIFF file, read in rows: only the tiles that hold them are decoded."""

    zarr_format = None

    def __init__(self, path: str | os.PathLike[str], number: int) -> None:
        self._file = tifffile.TiffFile(os.fspath(path))
        try:
            page = self._checked_page(number)
        except BaseException:
            self._file.close()
            raise
        self._page = page
        self.shape: tuple[int, ...] = page.shape
        self.dtype: np.dtype[Any] = page.dtype.newbyteorder("=")
        self.row_step = int(page.chunks[0])
        self._columns = -(-page.shape[1] // page.chunks[1])
        self._kept: dict[int, Array] = {}

    def _checked_page(self, number: int) -> Any:
        try:
            page: Any = self._file.pages[number].aspage()
        except IndexError:
            raise FileError(f"has no page {number}; the first one is 0.") from None
        if page.dtype is None or page.dtype.kind not in "uif" or page.axes not in ("YX", "YXS"):
            raise FileError("holds no picture of real numbers with its channels side by side.")
        if page.compression not in COMPRESSIONS:
            name = getattr(page.compression, "name", page.compression)
            raise FileError(f"is compressed by {name}, which is not supported. Use deflate.")
        if page.tags.valueof(TAG) not in (None, 1) or page.colormap is not None:
            raise FileError("expected an upright picture without a palette in a file of this size.")
        return page

    def rows(self, start: int, stop: int) -> Array:
        """Read some rows."""
        out = np.empty((stop - start, *self.shape[1:]), self.dtype)
        first, last = start // self.row_step, -(-stop // self.row_step)
        kept = {row: self._kept[row] for row in range(first, last) if row in self._kept}
        missing = [row for row in range(first, last) if row not in kept]
        with ThreadPoolExecutor(_WORKERS) as pool:
            kept.update(zip(missing, self._decode(pool, missing), strict=True))
        for row, pixels in kept.items():
            top = row * self.row_step
            begin, end = max(start, top), min(stop, top + len(pixels))
            out[begin - start : end - start] = pixels[begin - top : end - top]
        # The next rows may begin within the last tiles.
        self._kept = {last - 1: kept[last - 1]} if stop % self.row_step else {}
        if self._page.photometric == WHITE_IS_ZERO and self.dtype.kind == "u":
            np.subtract(np.iinfo(self.dtype).max, out, out=out)
        return out

    def _decode(self, pool: ThreadPoolExecutor, rows: list[int]) -> Iterator[Array]:
        """Decode rows of tiles, each (row_step or fewer, W[, C])."""
        page = self._page
        for row in rows:
            height = min(self.row_step, self.shape[0] - row * self.row_step)
            pixels = np.zeros((height, *self.shape[1:]), self.dtype)
            indices = range(row * self._columns, (row + 1) * self._columns)
            segments = page.parent.filehandle.read_segments(
                [page.dataoffsets[i] for i in indices],
                [page.databytecounts[i] for i in indices],
                indices=list(indices),
            )

            def place(segment: Any, pixels: Array = pixels, row: int = row) -> None:
                data, index = segment
                tile, at, _ = page.decode(data, index)
                if tile is None:  # a sparse tile
                    return
                y, x = at[2] - row * self.row_step, at[3]
                to = pixels[y:, x : x + tile.shape[2]]
                part = tile[0, : to.shape[0], : to.shape[1]]
                to[: part.shape[0]] = part[..., 0] if pixels.ndim == 2 else part

            list(pool.map(place, segments))
            yield pixels

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class TiffRowsWriter:
    """Writes a tiled BigTIFF file, compressed without loss."""

    def __init__(
        self, path: str | os.PathLike[str], shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        if dtype.kind not in "uif":
            raise CannotHoldError
        self._path, self._shape, self._dtype = path, shape, dtype

    def write(self, strips: Iterable[Array], *, overwrite: bool) -> None:
        """Write all rows."""
        example = np.empty((1, 1, *self._shape[2:]), self._dtype)
        is_color = len(self._shape) == 3 and self._shape[2] in (3, 4)
        with (
            atomic.replacing(self._path, overwrite=overwrite) as temporary,
            tifffile.TiffWriter(temporary, bigtiff=True) as file,
        ):
            file.write(
                self._tiles(strips),
                shape=self._shape,
                dtype=self._dtype,
                tile=(_TILE, _TILE),
                photometric="rgb" if is_color else "minisblack",
                planarconfig="contig" if len(self._shape) == 3 else None,
                extrasamples=extra_samples(example),
                compression="zlib",
                compressionargs={"level": 1},
                maxworkers=_WORKERS,
                metadata=None,
            )

    def _tiles(self, strips: Iterable[Array]) -> Iterator[Array]:
        """Yield tiles in the order of the file; those at the borders are smaller."""
        for rows in regroup(strips, _TILE):
            for x in range(0, self._shape[1], _TILE):
                yield np.ascontiguousarray(rows[:, x : x + _TILE], self._dtype)
