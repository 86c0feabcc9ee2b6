"""Enlarge and reduce maps (H, W) on a CUDA device, as `filters.resize` and `BlockMeans` do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bilateral.backends.cuda.constants import hold
from bilateral.backends.cuda.filters.block_means import block_means, spread_blocks
from bilateral.backends.cuda.filters.resample import Samples, resample
from bilateral.filters import resize
from bilateral.tasks.superres import policy

Along = Callable[[int, int], Iterator[Any]]


def bicubic(values: Tensor, shape: tuple[int, int]) -> Tensor:
    """Enlarge by cubic convolution."""
    return _interpolate(values, shape, resize.cubic_samples)


def bilinear(values: Tensor, shape: tuple[int, int]) -> Tensor:
    """Enlarge linearly."""
    return _interpolate(values, shape, resize.linear_samples)


def support(weights: Tensor, shape: tuple[int, int]) -> Tensor:
    """Sum Gaussians at the centres of the low-resolution pixels, each of mass weight / 4."""
    total = _interpolate(weights, shape, _gaussian_samples)
    masses = [policy.gaussian_mass(n / m) for n, m in zip(shape, weights.shape, strict=True)]
    return total / (masses[0] * masses[1])


def reduce_map(image: Tensor, shape: tuple[int, int]) -> Tensor:
    """Average an image (H, W) or (C, H, W) over blocks."""
    if image.ndim == 3:
        return block_means(image, shape)
    return block_means(image[None], shape)[0]


def spread(values: Tensor, size: tuple[int, int]) -> Tensor:
    """Distribute the values (h, w) of blocks over their pixels: B^T v."""
    return spread_blocks(values[None], size)[0]


def _gaussian_samples(size: int, length: int) -> Iterator[Any]:
    return resize.samples(size, length, policy.gaussian, 2)


def _interpolate(values: Tensor, shape: tuple[int, int], along: Along) -> Tensor:
    rows, columns = (
        hold(_table(along, size, length, values.dtype, values.device))
        for size, length in zip(values.shape, shape, strict=True)
    )
    return resample(values[None], rows, columns)[0]


@lru_cache(maxsize=64)
def _table(
    along: Along, size: int, length: int, dtype: torch.dtype, device: torch.device
) -> Samples:
    """Return the samples along one axis, on the device."""
    places, weights = zip(*along(size, length), strict=True)
    return Samples(
        torch.from_numpy(np.stack(places).astype(np.int32)).to(device),
        torch.from_numpy(np.stack(weights)).to(device, dtype),
    )
