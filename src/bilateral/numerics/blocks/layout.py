"""Divide an image into blocks of whole tiles."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

from bilateral.backends import cpu
from bilateral.numerics import policy

Rectangle = tuple[slice, slice]


class Layout:
    """The tiles of an image.

    Parameters
    ----------
    shape : (height, width)
    sigma_xy : float
    """

    def __init__(self, shape: tuple[int, int], sigma_xy: float) -> None:
        self.shape = shape
        self.sigma_xy = sigma_xy

    def __reduce__(self) -> tuple[type[Layout], tuple[tuple[int, int], float]]:
        return Layout, (self.shape, self.sigma_xy)

    @cached_property
    def starts(self) -> tuple[list[int], list[int]]:
        """First row and first column of each tile, and the image's height and width."""
        y, x = (cpu.cell_starts(n, self.sigma_xy, policy.EDGE_GUARD) for n in self.shape)
        return y, x

    @property
    def tiles(self) -> tuple[int, int]:
        """Number of tiles along y and x."""
        y, x = self.starts
        return len(y) - 1, len(x) - 1

    def rectangle(self, position: tuple[int, int], shape: tuple[int, int]) -> Rectangle:
        """Return the rows and columns of tiles of a block; raise if it cuts a tile."""
        slices = []
        for starts, first, length in zip(self.starts, position, shape, strict=True):
            begin, end = bisect_left(starts, first), bisect_left(starts, first + length)
            if starts[begin] != first or starts[end] != first + length:
                raise ValueError(
                    f"block: expected whole tiles of {self.sigma_xy:g} pixels, got the pixels from "
                    f"{first} to {first + length}, which cut a tile. Use Layout.whole_chunks."
                )
            slices.append(slice(begin, end))
        return slices[0], slices[1]

    def whole_chunks(self, chunks: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
        """Move the borders of chunks to the nearest borders of tiles; empty chunks disappear.

        `chunks` has the sizes of the chunks along y and x, as Dask writes them.
        """
        whole = []
        for starts, sizes in zip(self.starts, chunks, strict=True):
            borders, end = [0], 0
            for size in sizes:
                end += size
                i = bisect_left(starts, end)
                nearest = starts[i]
                if i > 0 and end - starts[i - 1] < starts[i] - end:
                    nearest = starts[i - 1]
                if nearest > borders[-1]:
                    borders.append(nearest)
            if borders[-1] < starts[-1]:
                borders.append(starts[-1])
            whole.append(tuple(b - a for a, b in pairwise(borders)))
        return tuple(whole)
