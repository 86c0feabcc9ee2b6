"""Find the sizes of the connected surfaces of a depth map: `core/depth/surface_sizes.hpp`.

Runs of connected pixels in a row are joined to those of the row above, as regions of labels are.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cpu import Polynomial
from bilateral.backends.cuda.depth.jump import is_even, joins
from bilateral.backends.cuda.kernel import kernel
from bilateral.backends.cuda.labels.regions import collect_regions, join_roots
from bilateral.backends.cuda.prefix import maximum

_BLOCK = 256


def surface_sizes(z: Tensor, doubt: Tensor, jump: Polynomial) -> Tensor:
    """Return the number of pixels of each pixel's surface, (H, W) int32; 0 where there is none.

    Parameters
    ----------
    z : Tensor
        (H, W) float32; NaN where unknown.
    doubt : Tensor
        (H, W) bool: pixels that belong to no surface.
    jump : (float, float, float)
    """
    height, width = z.shape
    count = z.numel()
    free = torch.where(doubt, torch.nan, z)
    start, parent = (torch.empty_like(z, dtype=torch.int32) for _ in range(2))
    grid = (triton.cdiv(count, _BLOCK),)
    _find_runs[(height,)](free, start, parent, width, *jump, BLOCK=_BLOCK)
    _join_rows[grid](free, start, parent, count, width, *jump, BLOCK=_BLOCK)
    regions = collect_regions(start, parent)
    out = torch.empty_like(parent)
    _sizes[grid](free, regions.root, regions.size, out, count, BLOCK=_BLOCK)
    return out


@triton.jit
def _pixel(z, y, x, count, width):
    """Load undoubted depths of pixels; NaN beyond the border."""
    i = y * width + x
    mask = (x >= 0) & (x < width) & (i >= 0) & (i < count)
    return tl.load(z + i, mask=mask, other=float("nan"))


@triton.jit
def _connected(z, y, x, dy, dx, count, width, c0, c1, c2):
    """Whether each pixel and its neighbour at a step are on one surface."""
    a = _pixel(z, y, x, count, width)
    b = _pixel(z, y + dy, x + dx, count, width)
    before = _pixel(z, y - dy, x - dx, count, width)
    after = _pixel(z, y + 2 * dy, x + 2 * dx, count, width)
    even = is_even(before, a, b, 0.0, c0, c1, c2) | is_even(a, b, after, 0.0, c0, c1, c2)
    return joins(a, b, c0, c1, c2) | even


@kernel()
def _find_runs(z, start, parent, width, c0, c1, c2, BLOCK: tl.constexpr):
    """Store the first pixel of each pixel's run along its row; doubted pixels are runs of one."""
    y = tl.program_id(0)
    row = y * width
    count = tl.num_programs(0) * width
    last = row
    for begin in range(0, width, BLOCK):
        x = begin + tl.arange(0, BLOCK)
        mask = x < width
        i = row + x
        continues = _connected(z, y, x, 0, -1, count, width, c0, c1, c2)
        first = tl.associative_scan(tl.where(continues, row, i), 0, maximum)
        first = tl.maximum(first, last)
        tl.store(start + i, first, mask=mask)
        tl.store(parent + i, first, mask=mask)
        last = tl.max(tl.where(mask, first, 0), 0)


@kernel()
def _join_rows(z, start, parent, count, width, c0, c1, c2, BLOCK: tl.constexpr):
    """Join each run to the runs above that touch it, hardly ever more than once each."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = (i < count) & (i >= width)
    y, x = i // width, i % width
    own = tl.load(start + i, mask=mask, other=-1)
    above = tl.load(start + i - width, mask=mask, other=-2)
    straight = mask & _connected(z, y, x, -1, 0, count, width, c0, c1, c2)
    inner = straight & (tl.load(start + i - 1, mask=mask & (x > 0), other=-3) == own)
    inner &= tl.load(start + i - width - 1, mask=mask & (x > 0), other=-4) == above
    inner &= _connected(z, y, x - 1, -1, 0, count, width, c0, c1, c2)
    join_roots(parent, own, above, straight & ~inner)
    for side in tl.static_range(-1, 2, 2):
        there = mask & (x + side >= 0) & (x + side < width)
        beside = tl.load(start + i - width + side, mask=there, other=-2)
        meets = there & ~(straight & (beside == above))
        meets &= _connected(z, y, x, -1, side, count, width, c0, c1, c2)
        join_roots(parent, own, beside, meets)


@kernel()
def _sizes(z, root, size, out, count, BLOCK: tl.constexpr):
    """Store the size of each pixel's region; 0 for doubted and unknown pixels."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < count
    depth = tl.load(z + i, mask=mask, other=float("nan"))
    known = mask & (depth == depth)
    at = tl.load(root + i, mask=known, other=0)
    tl.store(out + i, tl.load(size + at, mask=known, other=0), mask=mask)
