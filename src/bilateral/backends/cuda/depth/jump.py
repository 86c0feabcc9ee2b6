"""The smallest difference of depth between two surfaces, for kernels: `core/depth/jump.hpp`."""

import triton
import triton.language as tl

_SLOPE_CHANGE, _JUMP_CHANGE = tl.constexpr(0.3), tl.constexpr(0.25)
"""A slope is even if it changes by less than this fraction of itself, or of a jump."""


@triton.jit
def jump_at(z, c0, c1, c2):
    """Return the jump at depths z: c0 + c1 |z| + c2 z^2."""
    size = tl.abs(z)
    return c0 + size * (c1 + size * c2)


@triton.jit
def joins(a, b, c0, c1, c2):
    """Whether two depths may belong to one surface. False if one is NaN."""
    return tl.abs(a - b) <= jump_at(0.5 * (a + b), c0, c1, c2)


@triton.jit
def is_even(a, b, c, least, c0, c1, c2):
    """Whether the slope hardly changes along three pixels, and is at least `least` jumps per pixel.

    False if one is NaN.
    """
    slope = tl.minimum(tl.abs(b - a), tl.abs(c - b))
    unit = jump_at(b, c0, c1, c2)
    slack = tl.maximum(_SLOPE_CHANGE * slope, _JUMP_CHANGE * unit)
    return (slope >= least * unit) & (tl.abs(c - b - (b - a)) < slack)
