"""Median filter with a window of 3 x 3 or 5 x 5 and a symmetric border. It ignores NaN.

The columns of a window are sorted, then the values of each rank in their columns: so both rows and
columns rise. Then only an antidiagonal of the window can hold the median, and for 5 x 5 also the
two next to it: of 25 values, 12 are at least the median and 12 at most. Counting the values that
are known to be larger or smaller leaves the largest value of the antidiagonal above, the median of
the middle one and the smallest value of the one below.
"""

import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.kernel import kernel

_BLOCK = 128
"""Pixels of a row that one program filters."""


def median(values: Tensor, size: int) -> Tensor:
    """Filter each plane of (P, H, W) float32 or float64 values; `size` is 3 or 5."""
    planes, height, width = values.shape
    out = values.new_empty(values.shape)
    _median[(planes * height, triton.cdiv(width, _BLOCK))](
        values, out, height, width, size, SIZE=size, BLOCK=_BLOCK
    )
    return out


@kernel()
def _median(values, out, height, width, side, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    """Filter part of a row. `side` is SIZE, unknown to the compiler, which would unroll loops."""
    row = tl.program_id(0)
    y, plane = row % height, values + (row // height).to(tl.int64) * height * width
    x = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    if SIZE == 3:
        a0, a1, a2, a_known = _column3(plane, y, x - 1, height, width)
        b0, b1, b2, b_known = _column3(plane, y, x, height, width)
        c0, c1, c2, c_known = _column3(plane, y, x + 1, height, width)
        low, middle, high = tl.maximum(tl.maximum(a0, b0), c0), _median3(a1, b1, c1), a2
        high = tl.minimum(tl.minimum(high, b2), c2)
        known = a_known & b_known & c_known
    else:
        a0, a1, a2, a3, a4, a_known = _column5(plane, y, x - 2, height, width)
        b0, b1, b2, b3, b4, b_known = _column5(plane, y, x - 1, height, width)
        c0, c1, c2, c3, c4, c_known = _column5(plane, y, x, height, width)
        d0, d1, d2, d3, d4, d_known = _column5(plane, y, x + 1, height, width)
        e0, e1, e2, e3, e4, e_known = _column5(plane, y, x + 2, height, width)
        known = a_known & b_known & c_known & d_known & e_known
        a0, b0, c0, d0, e0 = _sort5(a0, b0, c0, d0, e0)
        a1, b1, c1, d1, e1 = _sort5(a1, b1, c1, d1, e1)
        a2, b2, c2, d2, e2 = _sort5(a2, b2, c2, d2, e2)
        a3, b3, c3, d3, e3 = _sort5(a3, b3, c3, d3, e3)
        a4, b4, c4, d4, e4 = _sort5(a4, b4, c4, d4, e4)
        low = tl.maximum(tl.maximum(d0, c1), tl.maximum(b2, a3))
        _, _, middle, _, _ = _sort5(e0, d1, c2, b3, a4)
        high = tl.minimum(tl.minimum(e1, d2), tl.minimum(c3, b4))
    result = _median3(low, middle, high)
    if tl.min(known.to(tl.int32), 0) == 0:
        result = _median_without_nan(plane, y, x, height, width, side)
    tl.store(out + (row.to(tl.int64) * width) + x, result, mask=x < width)


@triton.jit
def _load(plane, y, x, height, width):
    """Load the pixels at a row and columns, mirrored at the border; both may be 2 outside."""
    y, x = tl.where(y < 0, -1 - y, y), tl.where(x < 0, -1 - x, x)
    y = tl.where(y >= height, 2 * height - 1 - y, y)
    x = tl.where(x >= width, 2 * width - 1 - x, x)
    y = tl.maximum(tl.minimum(y, height - 1), 0)
    return tl.load(plane + y * width + tl.maximum(tl.minimum(x, width - 1), 0))


@triton.jit
def _exchange(a, b):
    return tl.minimum(a, b), tl.maximum(a, b)


@triton.jit
def _sort3(a, b, c):
    a, b = _exchange(a, b)
    b, c = _exchange(b, c)
    a, b = _exchange(a, b)
    return a, b, c


@triton.jit
def _median3(a, b, c):
    low, high = _exchange(a, b)
    return tl.maximum(low, tl.minimum(high, c))


@triton.jit
def _sort5(a, b, c, d, e):
    a, b = _exchange(a, b)
    d, e = _exchange(d, e)
    c, e = _exchange(c, e)
    c, d = _exchange(c, d)
    b, e = _exchange(b, e)
    a, d = _exchange(a, d)
    a, c = _exchange(a, c)
    b, d = _exchange(b, d)
    b, c = _exchange(b, c)
    return a, b, c, d, e


@triton.jit
def _column3(plane, y, x, height, width):
    """Load three pixels above each other; return them sorted, and whether none is NaN."""
    a = _load(plane, y - 1, x, height, width)
    b = _load(plane, y, x, height, width)
    c = _load(plane, y + 1, x, height, width)
    known = (a == a) & (b == b) & (c == c)
    a, b, c = _sort3(a, b, c)
    return a, b, c, known


@triton.jit
def _column5(plane, y, x, height, width):
    """Load five pixels above each other; return them sorted, and whether none is NaN."""
    a = _load(plane, y - 2, x, height, width)
    b = _load(plane, y - 1, x, height, width)
    c = _load(plane, y, x, height, width)
    d = _load(plane, y + 1, x, height, width)
    e = _load(plane, y + 2, x, height, width)
    known = (a == a) & (b == b) & (c == c) & (d == d) & (e == e)
    a, b, c, d, e = _sort5(a, b, c, d, e)
    return a, b, c, d, e, known


@triton.jit
def _median_without_nan(plane, y, x, height, width, side):
    """Return the median of the values that are not NaN, or the mean of the middle two.

    The rank of a value is the number of smaller ones, and of equal ones that come before it.
    """
    reach = side // 2
    count = tl.zeros_like(x)
    for i in range(side * side):
        v = _load(plane, y + i // side - reach, x + i % side - reach, height, width)
        count += tl.where(v == v, 1, 0)
    low = _load(plane, y, x, height, width) + float("nan")
    high = low
    for i in range(side * side):
        v = _load(plane, y + i // side - reach, x + i % side - reach, height, width)
        rank = tl.zeros_like(x)
        for j in range(side * side):
            w = _load(plane, y + j // side - reach, x + j % side - reach, height, width)
            rank += tl.where((w < v) | ((w == v) & (j < i)), 1, 0)
        low = tl.where((v == v) & (rank == (count - 1) // 2), v, low)
        high = tl.where((v == v) & (rank == count // 2), v, high)
    other = tl.where(low == -float("inf"), low, high)  # the mean of -inf and inf is -inf
    return tl.where(low == high, low, low * 0.5 + other * 0.5)
