"""Apply the domain transform and its transpose to CUDA tensors."""

from __future__ import annotations

import torch
from torch import Tensor

from bilateral.backends.cuda.filters import domain_transform
from bilateral.torch import cpu_filters
from bilateral.torch.cpu_filters import FilterOptions
from bilateral.torch.cuda.device_memory import retry_without_recordings
from bilateral.torch.operators import on_device_of


def apply(
    image: Tensor, weights: Tensor | None, reference: Tensor, options: FilterOptions
) -> tuple[Tensor, bool]:
    """Filter images (B, K, H, W), and return whether pixels may have different masses.

    The host reads the flags of the kernels once, at the end. If they tell of unknown pixels, the
    filter runs again with masses.
    """
    with on_device_of(image):
        return _apply(image, weights, reference, options)


def apply_transposed(g: Tensor, reference: Tensor, options: FilterOptions) -> Tensor:
    """Compute F^T g of the filter without weights."""
    with on_device_of(g):
        return _apply_transposed(g, reference, options)


@retry_without_recordings
def _apply(
    image: Tensor, weights: Tensor | None, reference: Tensor, options: FilterOptions
) -> tuple[Tensor, bool]:
    capturing = image.is_cuda and torch.cuda.is_current_stream_capturing()
    weighted = weights is not None or capturing
    arguments = image, weights, reference, options.scale, options.passes, options.limits
    y, flags = domain_transform.domain_transform(*arguments, weighted)
    if capturing:  # the host cannot read flags
        return y, weighted
    input_flags = domain_transform.read_flags(flags)
    invalid = input_flags.invalid_reference or any(input_flags.invalid_weights)
    if invalid or not all(input_flags.has_data):
        # The CPU raises an error that names the invalid pixel.
        cpu_weights = None if weights is None else weights.cpu()
        cpu_filters.apply(image.cpu(), cpu_weights, reference.cpu(), options)
    if any(input_flags.needs_weights) and not weighted:
        y, _ = domain_transform.domain_transform(*arguments, True)
    return y, weighted or any(input_flags.needs_weights)


@retry_without_recordings
def _apply_transposed(g: Tensor, reference: Tensor, options: FilterOptions) -> Tensor:
    out: Tensor = domain_transform.transposed(g, reference, options.scale, options.passes)
    return out
