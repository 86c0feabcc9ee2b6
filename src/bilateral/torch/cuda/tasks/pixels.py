"""Filters of pixels for CUDA tensors."""

from __future__ import annotations

import torch
from torch import Tensor

from bilateral.backends.cuda.filters import median as median_kernels

_EXACT_IN_FLOAT32 = (
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.uint16,
    torch.int16,
    torch.float16,
    torch.bfloat16,
    torch.float32,
)


def median(batch: Tensor, size: int) -> Tensor:
    """Filter each plane of (B, C, H, W) values of any real dtype."""
    real = torch.float32 if batch.dtype in _EXACT_IN_FLOAT32 else torch.float64
    planes = batch.to(real).contiguous().view(-1, *batch.shape[2:])
    return median_kernels.median(planes, size).view(batch.shape).to(batch.dtype)
