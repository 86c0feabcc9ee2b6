"""Photographs on a CUDA device: their white, their values, and whether they are valid."""

from __future__ import annotations

import torch
from torch import Tensor

from bilateral import validation

_INTEGERS = (torch.uint8, torch.uint16)


def white(photos: Tensor, reference_max: float | None) -> float | None:
    """Return the value of white; None if the dtype is none of a photograph."""
    if photos.dtype not in _INTEGERS and not photos.dtype.is_floating_point:
        return None
    if reference_max is not None:
        return validation.positive("reference_max", reference_max)
    return float(torch.iinfo(photos.dtype).max) if photos.dtype in _INTEGERS else 1.0


def levels(photos: Tensor) -> Tensor:
    """Return photographs in a dtype that kernels and PyTorch's operations take, with their white.

    float32 holds all values of 16 bits.
    """
    return photos if photos.dtype in (torch.uint8, torch.float64) else photos.float()


def check(photos: Tensor, reference_max: float | None, *, any_scale: bool = False) -> Tensor:
    """Return whether all values are finite and suit the white, as a () tensor on the device."""
    if photos.dtype in _INTEGERS:
        return torch.ones((), dtype=torch.bool, device=photos.device)
    low, high = torch.aminmax(photos)
    if reference_max is not None or any_scale:
        return low.isfinite() & high.isfinite()
    return (low >= validation.LOWEST) & (high <= validation.HIGHEST)
