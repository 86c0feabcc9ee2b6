"""Check Dask inputs by shape and dtype, and divide them into blocks of whole tiles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import DTypeLike

from bilateral import validation
from bilateral.numerics import blocks
from bilateral.numerics.options import GridOptions, SolveOptions

Chunks = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Cut:
    """Inputs whose chunks are blocks of whole tiles."""

    reference: Any
    target: Any
    confidence: Any | None
    warm_start: Any | None
    options: blocks.BlockOptions
    dtype: np.dtype[Any]
    """Dtype of the result."""

    @property
    def chunks(self) -> Chunks:
        """Sizes of the blocks along y and x."""
        chunks: Chunks = self.target.chunks[:2]
        return chunks

    def places(self) -> Iterator[tuple[tuple[int, int], tuple[int, int], tuple[int, int]]]:
        """Yield place among the blocks, position and shape of each block."""
        rows, columns = (
            list(zip(accumulate(sizes, initial=0), sizes, strict=False)) for sizes in self.chunks
        )
        for i, (y, height) in enumerate(rows):
            for j, (x, width) in enumerate(columns):
                yield (i, j), (y, x), (height, width)


def as_dask(name: str, value: Any) -> Any:
    """Return a Dask array with known chunks; an array in memory is cut into chunks."""
    array = value if isinstance(value, da.Array) else da.asarray(np.asarray(value))
    if any(math.isnan(size) for size in array.shape):
        raise ValueError(
            f"{name}: expected a Dask array of known shape, got {array.shape}. Call "
            f"{name}.compute_chunk_sizes() first."
        )
    return array


def cut(
    reference: Any,
    target: Any,
    confidence: Any | None,
    arguments: Mapping[str, Any],
    dtype: DTypeLike | None,
) -> Cut:
    """Check the inputs and options of a solve, and move their chunks to the borders of tiles."""
    reference, target = as_dask("reference", reference), as_dask("target", target)
    validation.none_with("sigma_t", arguments.get("sigma_t"), "Dask arrays")
    validation.choice("model (Dask arrays)", arguments.get("model", "constant"), ("constant",))
    # The checks of the call in memory, on an image of the same axes and dtype.
    pixel = np.zeros([min(size, 1) for size in reference.shape[:2]], reference.dtype)
    pixel = np.broadcast_to(
        pixel.reshape(pixel.shape + (1,) * len(reference.shape[2:])),
        pixel.shape + reference.shape[2:],
    )
    image = validation.reference(pixel, arguments["reference_max"])
    channels = image.pixels.shape[-1]
    shape = reference.shape[0], reference.shape[1]
    solve = SolveOptions.checked_with_method({"method": None, **arguments})
    check_shape("target", target, shape)
    result = target.dtype if dtype is None else validation.result_dtype(dtype)
    grid = GridOptions.checked(arguments, 2 + channels)
    layout = blocks.Layout(shape, grid.sigma_xy)
    whole = layout.whole_chunks(target.chunks[:2])
    if confidence is not None:
        confidence = as_dask("confidence", confidence)
        if confidence.shape != shape:
            raise ValueError(
                f"confidence: expected shape {shape}, got {confidence.shape}. All channels of a "
                f"target share it."
            )
        confidence = confidence.rechunk(whole)
    options = blocks.BlockOptions(layout, grid, solve, dtype)
    warm_start = _warm_start(arguments.get("warm_start"), target)
    return Cut(
        _rechunk(reference, whole),
        _rechunk(target, whole),
        confidence,
        None if warm_start is None else _rechunk(warm_start, whole),
        options,
        result,
    )


def _warm_start(value: Any | None, target: Any) -> Any | None:
    """Return an earlier solution as a Dask array; raise if it has not the target's shape."""
    if value is None:
        return None
    if isinstance(value, str):
        raise TypeError(f"warm_start: expected an array like target, got {value!r}.")
    array = as_dask("warm_start", value)
    if array.shape != target.shape:
        raise ValueError(
            f"warm_start: expected the target's shape {target.shape}, got {array.shape}."
        )
    return array


def check_shape(name: str, array: Any, shape: tuple[int, int]) -> None:
    """Raise if an array is not (H, W) or (H, W, K), or not real."""
    if array.ndim not in (2, 3) or array.shape[:2] != shape or 0 in array.shape:
        height, width = shape
        raise ValueError(
            f"{name}: expected shape ({height}, {width}) or ({height}, {width}, K) like the "
            f"reference, got {array.shape}."
        )
    pixel = np.zeros((1, 1, *array.shape[2:]), array.dtype)
    validation.target(pixel, (1, 1), None, name=name)


def _rechunk(array: Any, chunks: Chunks) -> Any:
    """Rechunk along y and x; all channels stay together."""
    return array.rechunk((*chunks, *((size,) for size in array.shape[2:])))
