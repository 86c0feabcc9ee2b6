"""Compute the weights of the domain transform (Gastal & Oliveira 2011) from reference images."""

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.kernel import kernel

Scale = tuple[float, float]
"""Distance of two neighbours: of one pixel, and of one level of difference."""

BLOCK = 1024
"""Pixels per program."""
MAX32: tl.constexpr = tl.constexpr(torch.finfo(torch.float32).max)
MAX64: tl.constexpr = tl.constexpr(torch.finfo(torch.float64).max)
_FAR: tl.constexpr = tl.constexpr(1e4)
"""exp(-_FAR) is 0."""


def neighbour_weights(
    reference: Tensor,
    scale: Scale,
    dtype: torch.dtype,
    flag: Tensor | None = None,
    limits: tuple[float, float] = (-math.inf, math.inf),
) -> tuple[Tensor, Tensor]:
    """Return the fractions that each pixel takes from its left and from its upper neighbour.

    Parameters
    ----------
    reference : Tensor
        (B or 1, C, H, W).
    scale : tuple of float
    dtype : torch.dtype
        Of the fractions, (B or 1, H, W) each; 0 where there is no neighbour.
    flag : Tensor or None
        (1,) int32: set to 1 if a value of the reference is not finite, or beyond `limits`.
    limits : tuple of float
    """
    if reference.dtype == torch.uint16:
        reference = reference.to(torch.int32)
    floating = reference.dtype.is_floating_point
    real = torch.promote_types(dtype, reference.dtype) if floating else dtype
    most = torch.finfo(real).max
    finite = tuple(max(min(number, most), -most) for number in (*scale, *limits))
    numbers = constant(finite, real, reference.device)
    images, channels, height, width = reference.shape
    across = torch.empty((images, height, width), dtype=dtype, device=reference.device)
    down = torch.empty_like(across)
    blocks = triton.cdiv(height * width, BLOCK)
    _neighbour_weights[(images * blocks,)](
        reference.contiguous(),
        numbers,
        across,
        down,
        flag,
        channels,
        height,
        width,
        blocks,
        FLOATING=floating,
        BLOCK=BLOCK,
    )
    return across, down


@kernel()
def _neighbour_weights(
    reference,
    numbers,
    across,
    down,
    flag,
    channels,
    height,
    width,
    blocks,
    FLOATING: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Store exp(-(step + level * difference)), as core/filters/domain_weights.hpp.

    `numbers` holds step, level and the limits of valid values; the difference is summed over
    channels.
    """
    program = tl.program_id(0)
    image, i = program // blocks, (program % blocks) * BLOCK + tl.arange(0, BLOCK)
    pixels = height * width
    inside = i < pixels
    left, up = inside & (i % width > 0), inside & (i >= width)
    step, level = tl.load(numbers), tl.load(numbers + 1)
    lowest, highest = tl.load(numbers + 2), tl.load(numbers + 3)
    real: tl.constexpr = numbers.dtype.element_ty
    kind: tl.constexpr = real if FLOATING else tl.int32
    dx, dy = tl.zeros((BLOCK,), kind), tl.zeros((BLOCK,), kind)
    invalid = tl.zeros((BLOCK,), tl.int32)
    at = image.to(tl.int64) * channels * pixels + i
    for _ in range(0, channels):
        value = tl.load(reference + at, mask=inside, other=0).to(kind)
        dx += tl.abs(value - tl.load(reference + at - 1, mask=left, other=0).to(kind))
        dy += tl.abs(value - tl.load(reference + at - width, mask=up, other=0).to(kind))
        if FLOATING:
            invalid |= tl.where((value >= lowest) & (value <= highest), 0, 1)
        at += pixels
    to = image.to(tl.int64) * pixels + i
    tl.store(across + to, _decay(dx.to(real), step, level, left, across), mask=inside)
    tl.store(down + to, _decay(dy.to(real), step, level, up, down), mask=inside)
    if FLOATING and flag is not None:
        tl.store(flag, 1, mask=tl.max(invalid, 0) > 0)


@triton.jit
def _decay(difference, step, level, there, out):
    """Return exp(-(step + level * difference)) in the type of `out`, or 0 for no neighbour."""
    most = MAX64 if difference.dtype == tl.float64 else MAX32
    exponent = step + level * tl.minimum(difference, most)  # never 0 * infinity
    small = tl.minimum(exponent, _FAR).to(out.dtype.element_ty)
    return tl.where(there, tl.exp(-small), 0.0)
