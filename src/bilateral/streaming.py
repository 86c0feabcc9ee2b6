"""Solve an image that does not fit into memory: strips of rows come in, strips of rows go out.

The result has the bits of `bilateral.solve`. The first pass reads every strip and keeps its sums;
the vertex of each pixel goes to a scratch file, 1 byte per pixel. After the solve, the second pass
reads only the scratch file.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, pairwise
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bilateral.info import SolveInfo
from bilateral.numerics import blocks

Array = NDArray[Any]

BYTES_PER_PIXEL = 28
"""Memory of a strip for each of its pixels, RGB and float32: two strips of input and the work on
one of them."""


class Strip(NamedTuple):
    """The inputs of some rows."""

    reference: Array
    target: Array
    confidence: Array | None


class StreamedSolve:
    """One solve in strips. Call `build`, then `solve`, then `rows`.

    Parameters
    ----------
    read : function of (start, stop)
        Returns the `Strip` of the rows from start to stop.
    scratch : file
        Open for writing and reading in binary mode.
    options : BlockOptions
    strip_rows : int
        About the number of rows to hold in memory; strips are whole rows of tiles.
    advance : function of a number of rows
        Called after each strip of each pass.
    """

    def __init__(
        self,
        read: Callable[[int, int], Strip],
        scratch: BinaryIO,
        options: blocks.BlockOptions,
        strip_rows: int,
        advance: Callable[[int], None],
    ) -> None:
        self._read = read
        self._scratch = scratch
        self._options = options
        self._advance = advance
        height, width = options.layout.shape
        full, rest = divmod(height, max(1, strip_rows))
        sizes = [max(1, strip_rows)] * full + [rest] * (rest > 0)
        rows, _ = options.layout.whole_chunks((sizes, (width,)))
        self._borders = list(pairwise(accumulate(rows, initial=0)))
        self._vertices: list[blocks.BlockVertices] = []
        self._sums: list[blocks.BlockSums] = []
        self._solution: tuple[blocks.TileIndex, Array] | None = None
        self._target: tuple[np.dtype[Any], int] | None = None

    def build(self) -> None:
        """Read all strips, find their vertices, and sum the target over them."""
        for (start, _), strip in self._strips():
            block, vertices = blocks.build_block(strip.reference, (start, 0), self._options)
            sums = blocks.splat_block(block, strip.target, strip.confidence, self._options)
            pickle.dump(block, self._scratch, protocol=5)
            self._vertices.append(vertices)
            self._sums.append(sums)
            self._target = strip.target.dtype, strip.target.ndim
            self._advance(len(strip.target))

    def _strips(self) -> Iterator[tuple[tuple[int, int], Strip]]:
        """Yield all strips; the next one is read while the caller works."""
        with ThreadPoolExecutor(1) as reader:
            coming = reader.submit(self._read, *self._borders[0])
            for i, border in enumerate(self._borders):
                strip = coming.result()
                if i + 1 < len(self._borders):
                    coming = reader.submit(self._read, *self._borders[i + 1])
                yield border, strip

    @property
    def n_vertices(self) -> int:
        """Number of vertices of all strips that were read."""
        return sum(len(strip.mass) for strip in self._vertices)

    def solve(self, smoothness: float) -> SolveInfo:
        """Solve for all vertices."""
        joined = blocks.join(self._options.layout, self._options.grid, self._vertices)
        self._vertices = []
        joined.forget_vertices()
        system = blocks.observe(joined, self._sums, smoothness)
        self._sums = []
        x, info = blocks.solve_system(joined, system, smoothness, self._options.solve)
        self._solution = joined.index, x
        return info

    def rows(self) -> Iterator[Array]:
        """Yield the rows of the result, strip by strip."""
        if self._solution is None or self._target is None:
            raise RuntimeError("call build and solve before rows")
        index, vertices = self._solution
        dtype, n_axes = self._target
        self._scratch.seek(0)
        for _ in self._borders:
            block: blocks.Block = pickle.load(self._scratch)
            values = index.gather(vertices, block.position, block.shape)
            yield blocks.slice_block(block, values, dtype, n_axes, self._options)
            self._advance(block.shape[0])
