"""Measure how deep each pixel lies inside its label region, relative to the region's thickness."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.prefix import maximum, minimum

_BLOCK = 256
_ROWS, _COLUMNS = 64, 16
_UNROLLED = 8
"""Steps of a search along a row between two checks of whether it is finished."""
_FAR: tl.constexpr = tl.constexpr(1 << 24)
"""Larger than any distance. Integers up to this value are exact in float32."""


def label_depth(labels: Tensor, radius: int) -> Tensor:
    """Return d / t, as `backends.cpu.label_depth`: (H, W) float32.

    d is the distance of a pixel to the nearest border. t is the largest such distance in its
    region, up to `radius` pixels away along a row, then along a column. d / t is 1 where there is
    no border. Negative labels are unknown: they make no border.

    Parameters
    ----------
    labels : Tensor
        (H, W) int32.
    radius : int
        In pixels.
    """
    height, width = labels.shape
    vertical = torch.empty_like(labels)
    _measure_columns[(triton.cdiv(width, _COLUMNS),)](
        labels, vertical, height, width, ROWS=_ROWS, COLUMNS=_COLUMNS
    )
    distance = torch.empty_like(labels, dtype=torch.float32)
    _measure_rows[(height, triton.cdiv(width, _BLOCK))](
        vertical, distance, width, STEPS=_UNROLLED, BLOCK=_BLOCK
    )
    along_row, thickness = torch.empty_like(distance), torch.empty_like(distance)
    grid = (triton.cdiv(labels.numel(), _BLOCK),)
    count = labels.numel()
    _largest_in_runs[grid](distance, labels, along_row, count, width, 1, radius, BLOCK=_BLOCK)
    _largest_in_runs[grid](along_row, labels, thickness, count, height, width, radius, BLOCK=_BLOCK)
    return torch.where(distance < _FAR.value, distance / thickness, 1)


@triton.jit
def _differs(labels, other, there, label):
    """Return whether a border separates pixels with a label from the pixels `other`."""
    other_label = tl.load(labels + other, mask=there, other=-1)
    return there & (other_label != label) & (other_label >= 0) & (label >= 0)


@kernel()
def _measure_columns(labels, distance, height, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Store the distance to the nearest pixel at a border in the same column, in pixels.

    The first loop goes down and looks up, the second one goes up and looks down.
    """
    x = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    rows = tl.arange(0, ROWS)[:, None]
    last = tl.full((1, COLUMNS), -_FAR, tl.int32)
    for begin in range(0, height, ROWS):
        y = begin + rows
        mask = (y < height) & (x < width)
        i = y * width + x
        label = tl.load(labels + i, mask=mask, other=-1)
        edge = _differs(labels, i - 1, mask & (x > 0), label)
        edge |= _differs(labels, i + 1, mask & (x + 1 < width), label)
        edge |= _differs(labels, i - width, mask & (y > 0), label)
        edge |= _differs(labels, i + width, mask & (y + 1 < height), label)
        nearest = tl.associative_scan(tl.where(edge, y, -_FAR), 0, maximum)
        nearest = tl.maximum(nearest, last)
        tl.store(distance + i, tl.minimum(y - nearest, _FAR), mask=mask)
        last = tl.max(nearest, 0)[None, :]
    last = tl.full((1, COLUMNS), 2 * _FAR, tl.int32)
    for turn in range(0, tl.cdiv(height, ROWS)):
        y = (tl.cdiv(height, ROWS) - 1 - turn) * ROWS + rows
        mask = (y < height) & (x < width)
        i = y * width + x
        above = tl.load(distance + i, mask=mask, other=_FAR)
        nearest = tl.associative_scan(tl.where(above == 0, y, 2 * _FAR), 0, minimum, reverse=True)
        nearest = tl.minimum(nearest, last)
        tl.store(distance + i, tl.minimum(above, nearest - y), mask=mask)
        last = tl.min(nearest, 0)[None, :]


@kernel()
def _measure_rows(vertical, distance, width, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """Store the distance to the nearest border: between pixel centres, plus half a pixel.

    It is the least combination of a step along the row and a vertical distance. A search ends when
    the step alone exceeds the best distance so far.
    """
    row = tl.program_id(0) * width
    x = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = x < width
    g = tl.load(vertical + row + x, mask=mask, other=0)
    best = _square(g)
    step = tl.zeros((), tl.int32) + 1
    while (step < width) & (tl.max(best, 0) > step.to(tl.float32) * step):
        for _ in tl.static_range(STEPS):
            left = tl.load(vertical + row + x - step, mask=mask & (x >= step), other=_FAR)
            right = tl.load(vertical + row + x + step, mask=mask & (x + step < width), other=_FAR)
            along = step.to(tl.float32) * step
            best = tl.minimum(best, _square(tl.minimum(left, right)) + along)
            step += 1
    far = best >= _square(tl.zeros_like(g) + _FAR)
    tl.store(distance + row + x, tl.where(far, _FAR, tl.sqrt(best) + 0.5), mask=mask)


@triton.jit
def _square(g):
    return g.to(tl.float32) * g.to(tl.float32)


@kernel()
def _largest_in_runs(values, labels, out, count, depth, stride, radius, BLOCK: tl.constexpr):
    """Store the largest value up to `radius` away along an axis, within a run of one label.

    The axis has `depth` pixels, `stride` apart.
    """
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < count
    place = (i // stride) % depth
    label = tl.load(labels + i, mask=mask, other=0)
    most = tl.load(values + i, mask=mask, other=0)
    before, after = mask, mask
    for k in range(1, radius + 1):
        before &= place >= k
        after &= place + k < depth
        before &= tl.load(labels + i - k * stride, mask=before, other=-2) == label
        after &= tl.load(labels + i + k * stride, mask=after, other=-2) == label
        most = tl.maximum(most, tl.load(values + i - k * stride, mask=before, other=0))
        most = tl.maximum(most, tl.load(values + i + k * stride, mask=after, other=0))
    tl.store(out + i, most, mask=mask)
