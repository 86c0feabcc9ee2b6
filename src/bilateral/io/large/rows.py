"""What readers and writers of rows have in common."""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class RowReader(Protocol):
    """An array in a file."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(H, W) or (H, W, C)."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype in the byte order of this machine."""
        ...

    @property
    def zarr_format(self) -> int | None:
        """Version of the Zarr format; None for other files."""
        ...

    @property
    def row_step(self) -> int:
        """Reading is fastest in multiples of this many rows."""
        ...

    def rows(self, start: int, stop: int) -> Array:
        """Read some rows."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


class RowWriter(Protocol):
    """A file that takes the rows of an array."""

    def write(self, strips: Iterable[Array], *, overwrite: bool) -> None:
        """Write all rows, from strips of any heights; the file appears when it is complete."""
        ...


def regroup(strips: Iterable[Array], height: int) -> Iterator[Array]:
    """Yield the rows of strips in strips of one height; the last one may be lower."""
    held: list[Array] = []
    count = 0
    for strip in strips:
        held.append(strip)
        count += len(strip)
        if count < height:
            continue
        rows = held[0] if len(held) == 1 else np.concatenate(held)
        full = count // height * height
        for start in range(0, full, height):
            yield rows[start : start + height]
        held, count = [rows[full:].copy()], count - full
    if count:
        yield held[0] if len(held) == 1 else np.concatenate(held)
