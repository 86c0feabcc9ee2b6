"""Enlarge a map by separable interpolation, with half-pixel centres and replicated borders."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Kernel = Callable[[Array], Array]


def bicubic(values: Array, shape: tuple[int, ...]) -> Array:
    """Interpolate an (h, w) map to another shape by cubic convolution, a = -1/2 (Keys 1981)."""
    return interpolate(values, shape, _cubic, reach=2)


def bilinear(values: Array, shape: tuple[int, ...]) -> Array:
    """Interpolate an (h, w) or (h, w, K) map to another shape, linearly along both axes."""
    return interpolate(values, shape, _linear, reach=1)


def cubic_samples(size: int, length: int) -> Iterator[tuple[Array, Array]]:
    """Yield the indices and weights of the samples of `bicubic` along one axis."""
    return samples(size, length, _cubic, reach=2)


def linear_samples(size: int, length: int) -> Iterator[tuple[Array, Array]]:
    """Yield the indices and weights of the samples of `bilinear` along one axis.

    Parameters
    ----------
    size : int
        Number of samples before the interpolation.
    length : int
        Number of samples after it.
    """
    return samples(size, length, _linear, reach=1)


def interpolate(values: Array, shape: tuple[int, ...], kernel: Kernel, reach: int) -> Array:
    """Interpolate an (h, w) or (h, w, K) map to another shape with a separable kernel.

    Parameters
    ----------
    values : (h, w) or (h, w, K) array
    shape : (int, int)
        Height and width of the result.
    kernel : function
        Weight of a sample by its distance along an axis, in samples of `values`.
    reach : int
        Number of samples on each side that have a weight. Beyond the border, the outermost sample
        is repeated.
    """
    transposed = np.ascontiguousarray(np.swapaxes(values, 0, 1))
    columns = _along_first_axis(transposed, shape[1], kernel, reach)
    return _along_first_axis(
        np.ascontiguousarray(np.swapaxes(columns, 0, 1)), shape[0], kernel, reach
    )


def _along_first_axis(values: Array, length: int, kernel: Kernel, reach: int) -> Array:
    out = np.zeros((length, *values.shape[1:]), values.dtype)
    for at, weight in samples(len(values), length, kernel, reach):
        out += weight.astype(values.dtype).reshape(-1, *[1] * (values.ndim - 1)) * values[at]
    return out


def samples(size: int, length: int, kernel: Kernel, reach: int) -> Iterator[tuple[Array, Array]]:
    """Yield the indices and weights of the samples of `interpolate` along one axis."""
    position = (np.arange(length) + 0.5) * size / length - 0.5
    before = np.floor(position).astype(np.intp)
    for sample in range(1 - reach, reach + 1):
        at = before + sample
        yield np.clip(at, 0, size - 1), kernel(np.abs(position - at))


def _linear(t: Array) -> Array:
    return np.asarray(np.maximum(1 - t, 0))


def _cubic(t: Array) -> Array:
    near, far = (1.5 * t - 2.5) * t**2 + 1, ((-0.5 * t + 2.5) * t - 4) * t + 2
    return np.where(t <= 1, near, np.where(t < 2, far, 0.0))
