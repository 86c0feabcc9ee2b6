"""Enlarge maps by a separable kernel, whose samples along both axes are in tables."""

from typing import NamedTuple

import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.kernel import kernel

_BLOCK = 256
"""Pixels of a row that one program interpolates."""


class Samples(NamedTuple):
    """The samples along one axis: for each pixel of the result, T of the pixels before."""

    places: Tensor
    """(T, length) int32"""
    weights: Tensor
    """(T, length), of the dtype of the maps."""


def resample(values: Tensor, rows: Samples, columns: Samples) -> Tensor:
    """Interpolate maps (P, h, w) to (P, H, W)."""
    planes, height, width = values.shape
    taps, out_height = rows.places.shape
    out_width = columns.places.shape[1]
    out = values.new_empty((planes, out_height, out_width))
    _resample[(planes * out_height, triton.cdiv(out_width, _BLOCK))](
        values.contiguous(),
        *rows,
        *columns,
        out,
        height,
        width,
        out_height,
        out_width,
        taps,
        BLOCK=_BLOCK,
    )
    return out


@kernel()
def _resample(
    values,
    row_places,
    row_weights,
    column_places,
    column_weights,
    out,
    height,
    width,
    out_height,
    out_width,
    taps,
    BLOCK: tl.constexpr,
):
    program = tl.program_id(0)
    y = program % out_height
    plane = values + (program // out_height).to(tl.int64) * height * width
    x = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = x < out_width
    total = tl.zeros((BLOCK,), values.dtype.element_ty)
    for i in range(0, taps):
        row = plane + tl.load(row_places + i * out_height + y) * width
        of_row = tl.zeros((BLOCK,), values.dtype.element_ty)
        for j in range(0, taps):
            column = tl.load(column_places + j * out_width + x, mask=inside, other=0)
            weight = tl.load(column_weights + j * out_width + x, mask=inside, other=0)
            of_row += weight * tl.load(row + column, mask=inside, other=0)
        total += tl.load(row_weights + i * out_height + y) * of_row
    tl.store(out + program.to(tl.int64) * out_width + x, total, mask=inside)
