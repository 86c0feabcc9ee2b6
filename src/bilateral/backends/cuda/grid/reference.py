"""Turn reference pixels into keys: affine features, cells, and their packing into one integer."""

import sys
from collections.abc import Sequence
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.constants import constant

NARROW_FIELD = 10
"""Most bits of a feature's cell in a key of 32 bits."""
_WIDE_FIELD = 21
"""Bits of a feature's cell in a key of 64 bits."""


class Binning(NamedTuple):
    """How a pixel's channels become the cells of its features, and these a key."""

    affine: Tensor
    """(C, C + 1) float64: cells are the floor of ``affine @ (pixel, 1)``."""
    field: int
    """Bits that a key has for each cell."""
    bits: int
    """Bits that the cells need."""
    middle: int
    """Number added to each cell, so that cells of negative features are non-negative."""
    limit: float
    """Pixels are expected from 0 to this value. Others are reported."""

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of keys."""
        return torch.int32 if self.field * self.affine.shape[0] < 32 else torch.int64


def make_binning(
    matrix: Sequence[Sequence[float]],
    offset: Sequence[float],
    sigmas: Sequence[float],
    highest: float,
    edge_guard: float,
    device: torch.device,
    largest: float = sys.float_info.max,
) -> Binning:
    """Choose the key layout for the features ``matrix @ pixel + offset`` in cells of `sigmas`.

    Keys have 32 bits if the cells of pixels from 0 to `highest` fit. Otherwise they have 64 bits
    and take any pixels: cell 0 lies in the middle of the field. Then pixels above `largest` are
    reported.
    """
    rows = tuple(
        (*(value / sigma for value in row), shift / sigma + edge_guard)
        for row, shift, sigma in zip(matrix, offset, sigmas, strict=True)
    )
    affine = constant(rows, torch.float64, device)
    least = min(sum(min(v, 0.0) for v in row[:-1]) * highest + row[-1] for row in rows)
    most = max(sum(max(v, 0.0) for v in row[:-1]) * highest + row[-1] for row in rows)
    if least >= 0 and most < 2**NARROW_FIELD:
        bits = max(1, int(most).bit_length())
        return Binning(affine, NARROW_FIELD, bits, 0, highest)
    return Binning(affine, _WIDE_FIELD, _WIDE_FIELD, 1 << (_WIDE_FIELD - 1), largest)


@triton.jit
def load_affine(affine, C: tl.constexpr):
    """Load the C (C + 1) numbers of `Binning.affine` as a tuple."""
    numbers = ()
    for k in tl.static_range(C * (C + 1)):
        numbers += (tl.load(affine + k),)  # type: ignore[assignment]
    return numbers


@triton.jit
def pixel_keys(
    pixels,
    affine,
    at,
    inside,
    plane,
    limit,
    last_cell,
    C: tl.constexpr,
    FIELD: tl.constexpr,
    MIDDLE: tl.constexpr,
    keys,
):
    """Return the keys of pixels, and whether one of their channels is out of range.

    `at` is the place of each pixel's first channel, `plane` the number of pixels of an image,
    `affine` the tuple of `load_affine`. Only the type of `keys` matters.
    """
    key = tl.zeros_like(at).to(keys.dtype.element_ty)
    zero = tl.zeros_like(at).to(tl.float64)
    BYTES: tl.constexpr = pixels.dtype.element_ty == tl.uint8
    out_of_range = inside & (zero > 0)
    for k in tl.static_range(C):
        cell = affine[k * (C + 1) + C] + MIDDLE + zero
        for c in tl.static_range(C):
            value = tl.load(pixels + at + c * plane, mask=inside, other=0).to(tl.float64)
            cell += affine[k * (C + 1) + c] * value
            if not BYTES:
                out_of_range = out_of_range | (inside & ((value >= 0) & (value <= limit) == 0))
        if BYTES and MIDDLE == 0:  # cells fit, except for rounding
            cell = tl.minimum(cell.to(keys.dtype.element_ty), last_cell)
        else:
            cell = tl.minimum(tl.maximum(cell, 0.0), last_cell.to(tl.float64)).to(
                keys.dtype.element_ty
            )
        key |= cell << (k * FIELD)
    return key, out_of_range
