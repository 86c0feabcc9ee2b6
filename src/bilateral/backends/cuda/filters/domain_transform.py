"""Filter image batches by the domain transform (Gastal & Oliveira 2011) or by its transpose."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.filters.domain_weights import (
    BLOCK,
    MAX32,
    MAX64,
    Scale,
    neighbour_weights,
)
from bilateral.backends.cuda.filters.filter_chunks import filter_chunks
from bilateral.backends.cuda.filters.filter_rows import filter_rows
from bilateral.backends.cuda.filters.recursion import Kind, image_stride
from bilateral.backends.cuda.kernel import kernel

_MAX_ROW = 4096
"""Pixels of the longest row that one program filters as a whole."""
_FLAGS: tl.constexpr = tl.constexpr(3)
"""Flags of each image, in the order of `InputFlags`. One more flag is for all references."""


class InputFlags(NamedTuple):
    """Facts about a batch, for each image."""

    needs_weights: list[bool]
    """Whether a pixel is unknown, or has another weight than the others."""
    has_data: list[bool]
    """Whether a pixel is known."""
    invalid_weights: list[bool]
    """Whether a weight is negative or not finite."""
    invalid_reference: bool
    """Whether a value of any reference is not finite."""


def domain_transform(
    image: Tensor,
    weights: Tensor | None,
    reference: Tensor,
    scale: Scale,
    passes: int,
    limits: tuple[float, float],
    weighed: bool,
) -> tuple[Tensor, Tensor]:
    """Filter images, and return the result and flags for `read_flags`.

    Parameters
    ----------
    image : Tensor
        (B, K, H, W).
    weights : Tensor or None
        (B or 1, 1, H, W).
    reference : Tensor
        (B or 1, C, H, W).
    scale : tuple of float
        As in `backends.cpu.domain_transform`, for the first pass.
    passes : int
        Each pass filters rows, then columns, with the squares of the previous pass's fractions.
    limits : tuple of float
        The lowest and the highest value of a valid reference.
    weighed : bool
        If false, all pixels count the same, and unknown pixels count as 0.
    """
    images, channels, height, width = image.shape
    pixels, blocks = height * width, triton.cdiv(height * width, BLOCK)
    values = image.new_empty(image.shape)
    mass = image.new_empty((images, 1, height, width)) if weighed else None
    flags = torch.zeros(images * _FLAGS.value + 1, dtype=torch.int32, device=image.device)
    across, down = neighbour_weights(reference, scale, image.dtype, flags[-1:], limits)
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
        image_stride(weights, 1),
        image_stride(weights, pixels),
        BLOCK=BLOCK,
    )
    lines = _LineFilter(values, mass, Kind.WEIGHED if weighed else Kind.PLAIN)
    for squarings in range(passes):
        lines.filter_rows(across, squarings)
        lines.filter_columns(down, squarings, finish=squarings == passes - 1)
    return lines.values, flags


def transposed(g: Tensor, reference: Tensor, scale: Scale, passes: int) -> Tensor:
    """Return F^T g of (B, K, H, W), where F g is the filtered g without weights."""
    across, down = neighbour_weights(reference, scale, g.dtype)
    lines = _LineFilter(g.clone(memory_format=torch.contiguous_format), None, Kind.TRANSPOSED)
    for squarings in range(passes - 1, -1, -1):
        lines.filter_columns(down, squarings)
        lines.filter_rows(across, squarings)
    return lines.values


def read_flags(flags: Tensor) -> InputFlags:
    """Wait for the device, and read the flags of `domain_transform`."""
    *each, reference = (flag != 0 for flag in flags.tolist())
    n = _FLAGS.value
    return InputFlags(each[0::n], each[1::n], each[2::n], reference)


class _LineFilter:
    """Filter values (B, K, H, W), and masses (B, 1, H, W) if any, along rows and columns.

    Each has a second buffer of the same size.
    """

    def __init__(self, values: Tensor, mass: Tensor | None, kind: Kind) -> None:
        self._values = [values, values.new_empty(values.shape)]
        self._masses = [mass, None if mass is None else mass.new_empty(mass.shape)]
        self._kind = kind

    @property
    def values(self) -> Tensor:
        """The result of the last filter."""
        return self._values[0]

    def filter_rows(self, across: Tensor, squarings: int) -> None:
        """Filter with the fractions of the first pass, (B or 1, H, W), raised to 2^squarings."""
        height, width = self.values.shape[2:]
        arguments = self._values, self._masses, across, squarings, self._kind
        if width > _MAX_ROW:
            filter_chunks(*arguments, (width, height), (1, width), False)
            return
        filter_rows(*arguments)
        self._values.reverse()
        self._masses.reverse()

    def filter_columns(self, down: Tensor, squarings: int, finish: bool = False) -> None:
        """Filter columns likewise; `finish` multiplies by 4 what `_prepare` divided."""
        height, width = self.values.shape[2:]
        arguments = self._values, self._masses, down, squarings, self._kind
        filter_chunks(*arguments, (height, width), (width, 1), finish)


@kernel()
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
    largest_stride,
    weights_stride,
    BLOCK: tl.constexpr,
):
    """Store known values divided by 4, so that no difference overflows, and masses of at most 1.

    `largest` holds the largest weight of each image.
    """
    program = tl.program_id(0)
    b, i = program // blocks, (program % blocks) * BLOCK + tl.arange(0, BLOCK)
    inside = i < pixels
    start = b.to(tl.int64) * channels * pixels + i
    highest = MAX64 if image.dtype.element_ty == tl.float64 else MAX32
    at, finite = start, inside
    for _ in range(0, channels):
        x = tl.load(image + at, mask=inside, other=0)
        finite = finite & (tl.abs(x) <= highest)
        at += pixels
    m = tl.where(finite, 1.0, 0.0).to(values.dtype.element_ty)
    if weights is not None:
        w = tl.load(weights + b.to(tl.int64) * weights_stride + i, mask=inside, other=0)
        most = i * 0 + tl.load(largest + b * largest_stride)
        m = tl.where(finite & (most > 0), w / tl.where(most > 0, most, 1), 0)
        valid = (w >= 0) & (w <= highest)
        tl.store(flags + b * _FLAGS + 2, 1, mask=tl.max(tl.where(valid, 0, 1), 0) > 0)
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
