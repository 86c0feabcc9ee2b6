"""Compose segments of the domain transform's recursion, y_i = x_i + a_i (y_{i-1} - x_i).

A line is filtered forward, then backward. A segment of a line is a map from the result before it to
the result at its end. Composing segments is associative, so that a line is filtered by a scan.

Without masses, a segment is a pair (A, c) of the recursion d_i = a_i d_{i-1} + e_i, with d = y - x
and e_i = a_i (x_{i-1} - x_i), so that constants stay exactly constant. For the backward pass,
y_{i+1} - y_i = (1 - a_{i+1}) (x_{i+1} - y_i).

The transpose of both passes is z_i = g_i + a_i z_{i-1}, times 1 - a_{i+1}, and the same backward,
times 1 - a_i: pairs again.

With masses, a segment is (A, B, c): its last pixel takes the fraction A of the mass before the
segment, B is the mass from within the segment, and c is the mean value of B, as in
core/filters/recursion.hpp.
"""

from enum import IntEnum

import torch
import triton
import triton.language as tl
from torch import Tensor


class Kind(IntEnum):
    """What is filtered along the lines."""

    PLAIN = 0
    WEIGHED = 1
    """Values with masses."""
    TRANSPOSED = 2
    """The transpose of `PLAIN`, for gradients."""


WEIGHED: tl.constexpr = tl.constexpr(int(Kind.WEIGHED))
TRANSPOSED: tl.constexpr = tl.constexpr(int(Kind.TRANSPOSED))

_SMALLEST32: tl.constexpr = tl.constexpr(torch.finfo(torch.float32).tiny)
_SMALLEST64: tl.constexpr = tl.constexpr(torch.finfo(torch.float64).tiny)
_LEAST_MASS32: tl.constexpr = tl.constexpr(100 * torch.finfo(torch.float32).tiny)
_LEAST_MASS64: tl.constexpr = tl.constexpr(100 * torch.finfo(torch.float64).tiny)
"""Positive masses do not fall below this value, as `least_mass` in core/filters/recursion.hpp: it
is negligible, but keeps a value for pixels that are far from all data."""


def image_stride(maps: Tensor | None, size: int) -> int:
    """Return the distance from one image's map to the next, or 0 if all images share one map."""
    return 0 if maps is None or maps.shape[0] == 1 else size


@triton.jit
def compose(A1, c1, A2, c2):
    """Compose two segments without masses, the first one first."""
    return A1 * A2, A2 * c1 + c2


@triton.jit
def compose_masses(A1, B1, c1, A2, B2, c2):
    """Compose two segments with masses, the first one first."""
    least = _LEAST_MASS64 if B1.dtype == tl.float64 else _LEAST_MASS32
    smallest = _SMALLEST64 if B1.dtype == tl.float64 else _SMALLEST32
    taken = tl.maximum(A2 * B1, tl.minimum(B1, least))
    B = taken + B2
    share = taken / tl.maximum(B, smallest)
    return A1 * A2, B, tl.where(B2 > 0, c2 + share * (c1 - c2), c1)


# The second segment first. A scan with reverse=True would move all numbers through all threads.
@triton.jit
def compose_reversed(A1, c1, A2, c2):
    """Compose two segments without masses, the second one first."""
    return compose(A2, c2, A1, c1)


@triton.jit
def compose_masses_reversed(A1, B1, c1, A2, B2, c2):
    """Compose two segments with masses, the second one first."""
    return compose_masses(A2, B2, c2, A1, B1, c1)


@triton.jit
def kept_mass(a, m):
    """Return the part of a pixel's own mass m that it keeps when it takes the fraction a."""
    least = _LEAST_MASS64 if m.dtype == tl.float64 else _LEAST_MASS32
    return tl.maximum((1 - a) * m, tl.minimum(m, least))


@triton.jit
def load_fractions(weights, inside, there, squarings):
    """Load the fractions a of pixels, raised to 2^squarings.

    a is 0 where there is no neighbour, and 1 outside the image, so that segments pass through.
    """
    a = tl.load(weights, mask=there, other=0)
    for _ in range(0, squarings):
        a *= a
    return tl.where(inside, a, 1.0)
