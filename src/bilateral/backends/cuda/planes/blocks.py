"""Read, write and invert the small blocks of the planar model in kernels.

Vectors of planes are (rows, K, 3) tensors: value, slope along x, slope along y. A symmetric matrix
of one row is (rows, 6): its lower triangle by rows.
"""

import triton
import triton.language as tl

from bilateral.backends.cuda.blocks import row_channels

LEAST_PIVOT: tl.constexpr = tl.constexpr(1e-12)
"""A pivot below this part of its diagonal entry is a rounding error: it determines no unknown."""


@triton.jit
def read_plane(x, i, mask, channels, k):
    """Return value and slopes of rows i in channels k, (BLOCK, KP) each."""
    at, both = row_channels(i, mask, channels, k)
    at = x + at * 3
    value = tl.load(at, mask=both, other=0)
    along_x = tl.load(at + 1, mask=both, other=0)
    along_y = tl.load(at + 2, mask=both, other=0)
    return value, along_x, along_y


@triton.jit
def write_plane(x, i, mask, channels, k, plane):
    """Store value and slopes of rows i in channels k."""
    at, both = row_channels(i, mask, channels, k)
    at = x + at * 3
    tl.store(at, plane[0], mask=both)
    tl.store(at + 1, plane[1], mask=both)
    tl.store(at + 2, plane[2], mask=both)


@triton.jit
def read_matrix(matrix, i, mask):
    """Return the six numbers of a symmetric matrix per row i."""
    at = matrix + i.to(tl.int64) * 6
    numbers = ()
    for n in tl.static_range(6):
        numbers += (tl.load(at + n, mask=mask, other=0),)  # type: ignore[assignment]
    return numbers


@triton.jit
def write_matrix(matrix, i, mask, numbers):
    """Store the six numbers of a symmetric matrix per row i."""
    at = matrix + i.to(tl.int64) * 6
    for n in tl.static_range(6):
        tl.store(at + n, numbers[n].to(matrix.dtype.element_ty), mask=mask)


@triton.jit
def read_point(points, i, mask):
    """Return x and y of a point per row i of a (rows, 2) tensor."""
    at = points + i.to(tl.int64) * 2
    return tl.load(at, mask=mask, other=0), tl.load(at + 1, mask=mask, other=0)


@triton.jit
def times(m, plane):
    """Return the products of symmetric matrices, one per row, and planes (BLOCK, KP)."""
    a, x, y = plane
    return (
        m[0][:, None] * a + m[1][:, None] * x + m[3][:, None] * y,
        m[1][:, None] * a + m[2][:, None] * x + m[4][:, None] * y,
        m[3][:, None] * a + m[4][:, None] * x + m[5][:, None] * y,
    )


@triton.jit
def evaluate(plane, point):
    """Return the planes (BLOCK, KP) at a point per row, relative to their centres."""
    return plane[0] + point[0][:, None] * plane[1] + point[1][:, None] * plane[2]


@triton.jit
def add_moved(total, m, offset):
    """Return a sum of matrices plus m, moved by an offset from the sum's centre to that of m."""
    x, y = offset
    moved_x, moved_y = m[1] + x * m[0], m[3] + y * m[0]
    return (
        total[0] + m[0],
        total[1] + moved_x,
        total[2] + m[2] + x * m[1] + x * moved_x,
        total[3] + moved_y,
        total[4] + m[4] + y * m[1] + x * moved_y,
        total[5] + m[5] + y * m[3] + y * moved_y,
    )


@triton.jit
def _reciprocal(pivot, diagonal):
    """Return a pivot and its inverse, or zeros if it is a rounding error."""
    counts = pivot > LEAST_PIVOT * diagonal
    return tl.where(counts, pivot, 0.0), tl.where(counts, 1 / tl.where(counts, pivot, 1.0), 0.0)


@triton.jit
def invert(m):
    """Invert positive semi-definite matrices in float64.

    An unknown that a matrix does not determine gets zeros, as in core/planes/matrix.hpp.
    """
    d0, i0 = _reciprocal(m[0], m[0])
    l10, l20 = m[1] * i0, m[3] * i0
    d1, i1 = _reciprocal(m[2] - l10 * l10 * d0, m[2])
    l21 = (m[4] - l20 * l10 * d0) * i1
    _, i2 = _reciprocal(m[5] - l20 * l20 * d0 - l21 * l21 * d1, m[5])
    k10, k21 = -l10, -l21
    k20 = l21 * l10 - l20
    return (
        i0 + i1 * k10 * k10 + i2 * k20 * k20,
        i1 * k10 + i2 * k20 * k21,
        i1 + i2 * k21 * k21,
        i2 * k20,
        i2 * k21,
        i2,
    )
