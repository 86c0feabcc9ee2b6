"""Compute prefix sums of integers, and combine elements of `tl.associative_scan`."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.kernel import kernel

_ONE_PROGRAM = 16384
"""Up to this many values, one program is faster than the several launches of `torch.cumsum`."""


def prefix_sums(values: Tensor) -> Tensor:
    """Return the inclusive prefix sums of (N,) integers, in their dtype."""
    if values.shape[0] > _ONE_PROGRAM:
        return torch.cumsum(values, 0, dtype=values.dtype)
    out = torch.empty_like(values)
    _prefix_sums[(1,)](values, out, values.shape[0], BLOCK=2048, num_warps=8)
    return out


@triton.jit
def maximum(a, b):
    """Combine two elements of a scan: the larger one."""
    return tl.maximum(a, b)


@triton.jit
def minimum(a, b):
    """Combine two elements of a scan: the smaller one."""
    return tl.minimum(a, b)


@kernel()
def _prefix_sums(values, out, count, BLOCK: tl.constexpr):
    before = tl.zeros((), values.dtype.element_ty)
    for begin in range(0, count, BLOCK):
        i = begin + tl.arange(0, BLOCK)
        value = tl.load(values + i, mask=i < count, other=0)
        tl.store(out + i, before + tl.cumsum(value, 0), mask=i < count)
        before += tl.sum(value, 0)
