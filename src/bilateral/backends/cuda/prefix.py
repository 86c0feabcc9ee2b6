"""Cumulative sums of integers, and what extremes along a row come from."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bilateral.backends.cuda.kernel import kernel

_FEW = 16384


def prefix_sums(values: Tensor) -> Tensor:
    """Of (N,); by one program where there are few, since a launch takes longer than the sums."""
    if values.shape[0] > _FEW:
        return torch.cumsum(values, 0, dtype=values.dtype)
    out = torch.empty_like(values)
    _add_up[(1,)](values, out, values.shape[0], BLOCK=2048, num_warps=8)
    return out


@triton.jit
def later(a, b):
    """Of two places: for `tl.associative_scan`."""
    return tl.maximum(a, b)


@triton.jit
def earlier(a, b):
    """Likewise."""
    return tl.minimum(a, b)


@kernel("count")
def _add_up(values, out, count, BLOCK: tl.constexpr):
    before = tl.zeros((), values.dtype.element_ty)
    for at in range(0, count, BLOCK):
        i = at + tl.arange(0, BLOCK)
        value = tl.load(values + i, mask=i < count, other=0)
        tl.store(out + i, before + tl.cumsum(value, 0), mask=i < count)
        before += tl.sum(value, 0)
