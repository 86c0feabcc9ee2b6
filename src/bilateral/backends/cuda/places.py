"""Locate the entries of matrices that have one row per vertex and one column per channel."""

import triton
import triton.language as tl


@triton.jit
def places(i, mask, channels, KP: tl.constexpr):
    """Return the places of all channels of rows i, and which of them exist: (BLOCK, KP) each.

    Places have 64 bits. KP is a power of two, at least `channels`.
    """
    k = tl.arange(0, KP)
    both = mask[:, None] & (k[None, :] < channels)
    return i.to(tl.int64)[:, None] * channels + k[None, :], both
