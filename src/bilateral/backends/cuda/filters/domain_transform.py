"""The domain transform and its transpose for batches of images."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.filters.recursion import Kind, Maps, step

_BLOCK = 1024

_MOST32: tl.constexpr = tl.constexpr(3.4028234663852886e38)
_MOST64: tl.constexpr = tl.constexpr(1.7976931348623157e308)
_FAR: tl.constexpr = tl.constexpr(1e4)
"""exp(-_FAR) is 0."""
_FLAGS: tl.constexpr = tl.constexpr(3)
"""Of each image: `Findings` in its order. One more is for all references."""

Scale = tuple[float, float]
"""As in `ops.cpu.domain_transform`."""


class Findings(NamedTuple):
    """What was found in a batch, for each image."""

    weighed: list[bool]
    """Whether a pixel is unknown, or has another weight than the rest."""
    known: list[bool]
    """Whether any pixel is known."""
    wrong: list[bool]
    """Whether a weight is negative or not finite."""
    reference: bool
    """Whether a value of a reference is not finite."""


def domain_transform(
    image: Tensor,
    weights: Tensor | None,
    reference: Tensor,
    scale: Scale,
    passes: int,
    weighed: bool,
) -> tuple[Tensor, Tensor]:
    """Filter (B, K, H, W) images along (B or 1, C, H, W) references; also flags for `findings`.

    The weights are (B or 1, 1, H, W). Unless `weighed` all pixels count the same, and unknown ones
    as 0.
    """
    images, channels, height, width = image.shape
    pixels, blocks = height * width, triton.cdiv(height * width, _BLOCK)
    values = image.new_empty(image.shape)
    mass = image.new_empty((images, 1, height, width)) if weighed else None
    flags = torch.zeros(images * _FLAGS.value + 1, dtype=torch.int32, device=image.device)
    across, down = _neighbours(reference, scale, image.dtype, flags)
    _prepare[(images * blocks,)](
        image.contiguous(),
        None if weights is None else weights.contiguous(),
        None if weights is None else weights.flatten(1).amax(1),
        values,
        mass,
        flags,
        channels,
        pixels,
        blocks,
        step(weights, 1),
        step(weights, pixels),
        BLOCK=_BLOCK,
    )
    maps = Maps(values, mass, Kind.WEIGHED if weighed else Kind.PLAIN)
    for squarings in range(passes):
        maps.filter_rows(across, squarings)
        maps.filter_columns(down, squarings, finish=squarings == passes - 1)
    return maps.values, flags


def transposed(g: Tensor, reference: Tensor, scale: Scale, passes: int) -> Tensor:
    """F^T g of (B, K, H, W), where F g is the filtered g without weights."""
    across, down = _neighbours(reference, scale, g.dtype, None)
    maps = Maps(g.clone(memory_format=torch.contiguous_format), None, Kind.TRANSPOSED)
    for squarings in range(passes - 1, -1, -1):
        maps.filter_columns(down, squarings)
        maps.filter_rows(across, squarings)
    return maps.values


def findings(flags: Tensor) -> Findings:
    """Wait for the device, and read what it has found."""
    *each, reference = (flag != 0 for flag in flags.tolist())
    n = _FLAGS.value
    return Findings(each[0::n], each[1::n], each[2::n], reference)


def _neighbours(
    reference: Tensor, scale: Scale, dtype: torch.dtype, flags: Tensor | None
) -> tuple[Tensor, Tensor]:
    """What a pixel takes from its left and from its upper neighbour: (B or 1, H, W), 0 for none."""
    if reference.dtype == torch.uint16:
        reference = reference.to(torch.int32)
    floating = reference.dtype.is_floating_point
    real = torch.promote_types(dtype, reference.dtype) if floating else dtype
    most = torch.finfo(real).max
    numbers = constant(tuple(min(number, most) for number in scale), real, reference.device)
    images, channels, height, width = reference.shape
    across = torch.empty((images, height, width), dtype=dtype, device=reference.device)
    down = torch.empty_like(across)
    blocks = triton.cdiv(height * width, _BLOCK)
    _share_out[(images * blocks,)](
        reference.contiguous(),
        numbers,
        across,
        down,
        None if flags is None else flags[-1:],
        channels,
        height,
        width,
        blocks,
        FLOATING=floating,
        BLOCK=_BLOCK,
    )
    return across, down


@triton.jit
def _share_out(
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
    """exp(-(step + level * difference)), as core/domain_weights.hpp."""
    program = tl.program_id(0)
    image, i = program // blocks, (program % blocks) * BLOCK + tl.arange(0, BLOCK)
    pixels = height * width
    inside = i < pixels
    left, up = inside & (i % width > 0), inside & (i >= width)
    step, level = tl.load(numbers), tl.load(numbers + 1)
    real: tl.constexpr = numbers.dtype.element_ty
    kind: tl.constexpr = real if FLOATING else tl.int32
    dx, dy = tl.zeros((BLOCK,), kind), tl.zeros((BLOCK,), kind)
    wrong = tl.zeros((BLOCK,), tl.int32)
    at = image.to(tl.int64) * channels * pixels + i
    for _ in range(0, channels):
        own = tl.load(reference + at, mask=inside, other=0).to(kind)
        dx += tl.abs(own - tl.load(reference + at - 1, mask=left, other=0).to(kind))
        dy += tl.abs(own - tl.load(reference + at - width, mask=up, other=0).to(kind))
        if FLOATING:
            most = _MOST64 if kind == tl.float64 else _MOST32
            wrong |= tl.where(tl.abs(own) <= most, 0, 1)
        at += pixels
    to = image.to(tl.int64) * pixels + i
    tl.store(across + to, _decay(dx.to(real), step, level, left, across), mask=inside)
    tl.store(down + to, _decay(dy.to(real), step, level, up, down), mask=inside)
    if FLOATING and flag is not None:
        tl.store(flag, 1, mask=tl.max(wrong, 0) > 0)


@triton.jit
def _decay(difference, step, level, there, out):
    most = _MOST64 if difference.dtype == tl.float64 else _MOST32
    exponent = step + level * tl.minimum(difference, most)  # never 0 * infinity
    small = tl.minimum(exponent, _FAR).to(out.dtype.element_ty)
    return tl.where(there, tl.exp(-small), 0.0)


@triton.jit
def _prepare(
    image,
    weights,
    largest,
    values,
    mass,
    flags,
    channels,
    pixels,
    blocks,
    largest_step,
    weights_step,
    BLOCK: tl.constexpr,
):
    """Known values, divided by 4 so that no difference overflows, and masses of at most 1."""
    program = tl.program_id(0)
    b, i = program // blocks, (program % blocks) * BLOCK + tl.arange(0, BLOCK)
    inside = i < pixels
    start = b.to(tl.int64) * channels * pixels + i
    highest = _MOST64 if image.dtype.element_ty == tl.float64 else _MOST32
    at, finite = start, inside
    for _ in range(0, channels):
        x = tl.load(image + at, mask=inside, other=0)
        finite = finite & (tl.abs(x) <= highest)
        at += pixels
    m = tl.where(finite, 1.0, 0.0).to(values.dtype.element_ty)
    if weights is not None:
        w = tl.load(weights + b.to(tl.int64) * weights_step + i, mask=inside, other=0)
        most = i * 0 + tl.load(largest + b * largest_step)
        m = tl.where(finite & (most > 0), w / tl.where(most > 0, most, 1), 0)
        right = (w >= 0) & (w <= highest)
        tl.store(flags + b * _FLAGS + 2, 1, mask=tl.max(tl.where(right, 0, 1), 0) > 0)
    differ = inside & (m != 1)
    tl.store(flags + b * _FLAGS, 1, mask=tl.max(tl.where(differ, 1, 0), 0) > 0)
    tl.store(flags + b * _FLAGS + 1, 1, mask=tl.max(tl.where(m > 0, 1, 0), 0) > 0)
    if mass is not None:
        tl.store(mass + b.to(tl.int64) * pixels + i, m, mask=inside)
    at = start
    for _ in range(0, channels):
        x = tl.load(image + at, mask=inside, other=0)
        tl.store(values + at, tl.where(m > 0, x * 0.25, 0), mask=inside)
        at += pixels
