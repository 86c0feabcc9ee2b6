"""How deep inside its region each pixel of a label map lies, relative to its thickness there."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.prefix import maximum, minimum

_BLOCK = 256
_ROWS, _COLUMNS = 64, 16
_AT_ONCE = 8
"""Steps of a search between two looks at how far it must go."""
_FAR: tl.constexpr = tl.constexpr(1 << 24)
"""More than any distance; whole numbers up to it are exact in float32."""


def relative_depth(labels: Tensor, radius: int) -> Tensor:
    """As `ops.cpu.relative_depth`: d / t for the distance d of each pixel to the nearest outline.

    t is the largest such distance in its region up to `radius` away along a row, then along a
    column. 1 where there is no outline. Labels below 0 are unknown: they make no outline.
    """
    height, width = labels.shape
    vertical = torch.empty_like(labels)
    _measure_columns[(triton.cdiv(width, _COLUMNS),)](
        labels, vertical, height, width, ROWS=_ROWS, COLUMNS=_COLUMNS
    )
    distance = torch.empty_like(labels, dtype=torch.float32)
    _measure_rows[(height, triton.cdiv(width, _BLOCK))](
        vertical, distance, width, STEPS=_AT_ONCE, BLOCK=_BLOCK
    )
    thickness, widest = torch.empty_like(distance), torch.empty_like(distance)
    grid = (triton.cdiv(labels.numel(), _BLOCK),)
    count = labels.numel()
    _largest_in_runs[grid](distance, labels, thickness, count, width, 1, radius, BLOCK=_BLOCK)
    _largest_in_runs[grid](thickness, labels, widest, count, height, width, radius, BLOCK=_BLOCK)
    return torch.where(distance < _FAR.value, distance / widest, 1)


@triton.jit
def _differs(labels, other, there, own):
    """Whether a pixel and another lie on both sides of an outline."""
    label = tl.load(labels + other, mask=there, other=-1)
    return there & (label != own) & (label >= 0) & (own >= 0)


@kernel("height", "width")
def _measure_columns(labels, distance, height, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """How far above or below the nearest pixel at an outline is."""
    x = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    rows = tl.arange(0, ROWS)[:, None]
    last = tl.full((1, COLUMNS), -_FAR, tl.int32)
    for begin in range(0, height, ROWS):
        y = begin + rows
        mask = (y < height) & (x < width)
        i = y * width + x
        own = tl.load(labels + i, mask=mask, other=-1)
        edge = _differs(labels, i - 1, mask & (x > 0), own)
        edge |= _differs(labels, i + 1, mask & (x + 1 < width), own)
        edge |= _differs(labels, i - width, mask & (y > 0), own)
        edge |= _differs(labels, i + width, mask & (y + 1 < height), own)
        seen = tl.associative_scan(tl.where(edge, y, -_FAR), 0, maximum)
        seen = tl.maximum(seen, last)
        tl.store(distance + i, tl.minimum(y - seen, _FAR), mask=mask)
        last = tl.max(seen, 0)[None, :]
    last = tl.full((1, COLUMNS), 2 * _FAR, tl.int32)
    for turn in range(0, tl.cdiv(height, ROWS)):
        y = (tl.cdiv(height, ROWS) - 1 - turn) * ROWS + rows
        mask = (y < height) & (x < width)
        i = y * width + x
        above = tl.load(distance + i, mask=mask, other=_FAR)
        seen = tl.associative_scan(tl.where(above == 0, y, 2 * _FAR), 0, minimum, reverse=True)
        seen = tl.minimum(seen, last)
        tl.store(distance + i, tl.minimum(above, seen - y), mask=mask)
        last = tl.min(seen, 0)[None, :]


@kernel("width")
def _measure_rows(vertical, distance, width, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """From pixel centres to the nearest outline's, and half a pixel: the least along the row.

    Nothing farther than the best so far can be better.
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
            apart = step.to(tl.float32) * step
            best = tl.minimum(best, _square(tl.minimum(left, right)) + apart)
            step += 1
    far = best >= _square(tl.zeros_like(g) + _FAR)
    tl.store(distance + row + x, tl.where(far, _FAR, tl.sqrt(best) + 0.5), mask=mask)


@triton.jit
def _square(g):
    return g.to(tl.float32) * g.to(tl.float32)


@kernel("count", "depth", "stride", "radius")
def _largest_in_runs(values, labels, out, count, depth, stride, radius, BLOCK: tl.constexpr):
    """The largest value up to `radius` away along an axis, without leaving a run of one label.

    The axis has `depth` pixels, `stride` apart.
    """
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < count
    place = (i // stride) % depth
    own = tl.load(labels + i, mask=mask, other=0)
    most = tl.load(values + i, mask=mask, other=0)
    before, after = mask, mask
    for k in range(1, radius + 1):
        before &= place >= k
        after &= place + k < depth
        before &= tl.load(labels + i - k * stride, mask=before, other=-2) == own
        after &= tl.load(labels + i + k * stride, mask=after, other=-2) == own
        most = tl.maximum(most, tl.load(values + i - k * stride, mask=before, other=0))
        most = tl.maximum(most, tl.load(values + i + k * stride, mask=after, other=0))
    tl.store(out + i, most, mask=mask)
