"""Filter Dask arrays by the domain transform: the same result as in memory, bit for bit."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import DTypeLike, NDArray

from bilateral import validation
from bilateral.dask.inputs import as_dask, check_shape
from bilateral.filters import domain_blocks
from bilateral.filters.domain_transform import MAX_PASSES, first_scale
from bilateral.threads import single_threaded

Array = NDArray[Any]


@validation.keywords(photo="reference", target="image", depth="image")
def domain_transform(
    image: Any,
    reference: Any,
    sigma_xy: float,
    sigma_rgb: float,
    iterations: int = 3,
    *,
    weights: Any | None = None,
    reference_max: float | None = None,
    dtype: DTypeLike | None = None,
) -> Any:
    """Smooth an image without crossing the edges of a reference, lazily.

    The result has the bits of `bilateral.domain_transform`, for any chunks and any scheduler. A
    recursion along rows needs whole rows, one along columns whole columns: each pass rechunks the
    image twice, so that the time on a cluster is mostly that of the network.

    Parameters
    ----------
    image : (H, W) or (H, W, K) Dask array
    reference : (H, W) or (H, W, C) Dask array
    sigma_xy, sigma_rgb, iterations, reference_max, dtype
        As for `bilateral.domain_transform`.
    weights : (H, W) Dask array, optional

    Returns
    -------
    Dask array
        Of the image's shape and chunks.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import bilateral.dask
    >>> image = np.random.default_rng(0).random((32, 32))
    >>> photo = np.zeros((32, 32), np.uint8)
    >>> x = bilateral.dask.domain_transform(da.from_array(image, chunks=20), photo, 5, 30)
    >>> bool((x.compute() == bilateral.domain_transform(image, photo, 5, 30)).all())
    True
    """
    image = as_dask("image", image)
    result = image.dtype if dtype is None else validation.result_dtype(dtype)
    return filtered(
        image, reference, sigma_xy, sigma_rgb, iterations, weights, reference_max, dtype, result
    )


def filtered(
    image: Any,
    reference: Any,
    sigma_xy: float,
    sigma_rgb: float,
    iterations: int,
    weights: Any | None,
    reference_max: float | None,
    dtype: DTypeLike | None,
    result: np.dtype[Any],
) -> Any:
    """Filter an image as `domain_transform` does, and convert it to the dtype `result`."""
    reference = as_dask("reference", reference)
    pixel = np.zeros((1, 1, *reference.shape[2:]), reference.dtype)
    guide = validation.reference(pixel, reference_max, channels=(1, 2, 3))
    shape = reference.shape[0], reference.shape[1]
    check_shape("image", image, shape)
    sigma_xy = validation.positive("sigma_xy", sigma_xy)
    sigma_rgb = validation.positive("sigma_rgb", sigma_rgb)
    iterations = validation.count("iterations", iterations, 1)
    scale = first_scale(sigma_xy, sigma_rgb * (guide.highest / 255), iterations)
    n_axes, chunks = image.ndim, image.chunks
    if n_axes == 2:
        image = image[:, :, np.newaxis]
    image = image.rechunk({2: -1})
    channels = image.shape[2]
    if weights is not None:
        weights = as_dask("weights", weights)
        if weights.shape != shape:
            raise ValueError(f"weights: expected shape {shape}, got {weights.shape}.")
        weights = weights.rechunk(image.chunks[:2])
    stats = _stats(image, weights, dtype)
    with_weights = (image,) if weights is None else (image, weights[:, :, np.newaxis])
    real = np.float64 if np.dtype(image.dtype).itemsize > 4 else np.float32
    packed = da.map_blocks(
        _load,
        *with_weights,
        stats=stats,
        dtype_=dtype,
        dtype=real,
        chunks=(*image.chunks[:2], (channels + 1,)),
        meta=np.empty((0, 0, 0), real),
    )
    if reference.ndim == 2:
        reference = reference[:, :, np.newaxis]
    rows, columns = _strips(image)
    for i in range(min(iterations, MAX_PASSES)):
        for along_rows, strips in ((True, rows), (False, columns)):
            packed = da.map_blocks(
                _filter,
                packed.rechunk((*strips, (channels + 1,))),
                reference.rechunk((*strips, (reference.shape[2],))),
                stats=stats,
                scale=scale,
                pass_=i,
                rows=along_rows,
                has_weights=weights is not None,
                reference_max=reference_max,
                dtype=real,
                chunks=(*strips, (channels + 1,)),
                meta=np.empty((0, 0, 0), real),
            )
    # The dtype of the values may be wider than Dask knows: each block converts its own.
    return da.map_blocks(
        _finish,
        packed.rechunk((*chunks[:2], (channels + 1,))),
        stats=stats,
        dtype_=result,
        n_axes=n_axes,
        dtype=result,
        drop_axis=2 if n_axes == 2 else None,
        chunks=chunks[:2] if n_axes == 2 else (*chunks[:2], (channels,)),
        meta=np.empty((0,) * n_axes, result),
    )


def _stats(image: Any, weights: Any | None, dtype: DTypeLike | None) -> Delayed:
    """Return the statistics of all blocks."""
    inspect = delayed(_inspect, pure=True)
    parts = image.to_delayed().ravel()
    masses = [None] * len(parts) if weights is None else weights.to_delayed().ravel()
    stats = [inspect(part, mass, dtype) for part, mass in zip(parts, masses, strict=True)]
    return delayed(_merge, pure=True)(stats)


def _strips(image: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Return chunks of whole rows and of whole columns, about as large as the image's chunks."""
    height, width = image.shape[:2]
    pixels = max(image.chunks[0]) * max(image.chunks[1])
    return (
        (_sizes(height, pixels / width), (width,)),
        ((height,), _sizes(width, pixels / height)),
    )


def _sizes(length: int, wanted: float) -> tuple[int, ...]:
    size = max(1, math.ceil(wanted / domain_blocks.ALIGNMENT)) * domain_blocks.ALIGNMENT
    full, rest = divmod(length, size)
    return (size,) * full + ((rest,) if rest else ())


def _inspect(image: Array, weights: Array | None, dtype: DTypeLike | None) -> Any:
    return domain_blocks.inspect_block(image, weights, dtype)


def _merge(stats: list[domain_blocks.DomainStats]) -> domain_blocks.DomainStats:
    return reduce(domain_blocks.DomainStats.merge, stats)


def _load(
    image: Array,
    weights: Array | None = None,
    *,
    stats: domain_blocks.DomainStats,
    dtype_: DTypeLike | None,
) -> Array:
    mass = None if weights is None else weights[..., 0]
    return domain_blocks.load_block(image, mass, stats, dtype_)


def _filter(
    packed: Array,
    reference: Array,
    *,
    stats: domain_blocks.DomainStats,
    scale: tuple[float, float],
    pass_: int,
    rows: bool,
    has_weights: bool,
    reference_max: float | None,
) -> Array:
    with single_threaded():
        return domain_blocks.filter_block(
            packed,
            reference,
            scale,
            pass_,
            rows=rows,
            has_mass=has_weights or stats.unknown,
            reference_max=reference_max,
        )


def _finish(
    packed: Array, *, stats: domain_blocks.DomainStats, dtype_: np.dtype[Any], n_axes: int
) -> Array:
    return domain_blocks.finish_block(packed, stats, dtype_, n_axes)
