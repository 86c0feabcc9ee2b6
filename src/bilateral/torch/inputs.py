"""Check the shapes and dtypes of tensors and bring them to the form (B, C, H, W)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor

from bilateral import validation

_jit: Any = torch.jit  # partly without types
_WIDE = (torch.float64, torch.int32, torch.uint32, torch.int64, torch.uint64)


class Batch(NamedTuple):
    """Tensors in the form that the operators take."""

    reference: Tensor
    """(B, 3, H, W) or (B, 1, H, W), with 1 for B if all images share the reference."""
    target: Tensor
    """(B, C, H, W), float32 or float64."""
    confidence: Tensor | None
    """(B, 1, H, W) of the target's dtype, with 1 for B if all images share confidence and
    reference."""


class Names(NamedTuple):
    """Names for error messages: of two arguments, and of the function for arrays."""

    target: str = "target"
    confidence: str = "confidence"
    array_function: str = "bilateral.solve"


def batch(
    reference: Tensor,
    target: Tensor,
    confidence: Tensor | None,
    names: Names = Names(),  # noqa: B008
    channels: Sequence[int] = (3, 1),
) -> Batch:
    """Check the shapes and dtypes of tensors and bring them to one form."""
    if _jit.is_tracing():
        raise RuntimeError(
            f"{names.array_function} cannot be traced: torch.jit.trace and torch.onnx.export with "
            f"dynamo=False would store the result for the example instead of the solver. Use "
            f"torch.export, or export the network up to the solver."
        )
    for name, value in (
        ("reference", reference),
        (names.target, target),
        (names.confidence, confidence),
    ):
        if value is not None or name != names.confidence:
            _check_tensor(name, value, target, names)
    if target.ndim not in (3, 4) or target.numel() == 0:
        raise ValueError(
            f"{names.target}: expected shape (C, H, W) or (B, C, H, W) with at least one value, "
            f"got {tuple(target.shape)}. Channels come before height and width: "
            f"{names.target}.unsqueeze(0) adds one."
        )
    values = target if target.ndim == 4 else target.unsqueeze(0)
    dtype = torch.float64 if is_wide(target.dtype) else torch.float32
    images = _reference(reference, values, target, names, channels)
    weights = None
    if confidence is not None:
        weights = _confidence(confidence, values, target, names).to(dtype)
    if weights is not None and len(images) > 1:  # a shared confidence saves no matrix here
        weights = weights.expand(len(images), -1, -1, -1)
    return Batch(images, values.to(dtype), weights)


def is_wide(dtype: torch.dtype) -> bool:
    """Whether values of a dtype need float64: float32 would lose digits of them."""
    return dtype in _WIDE


def matrices(reference: Tensor, maps: Tensor, confidence: Tensor | None) -> int:
    """Return the number of matrices of a batch: one for all images, or one per image."""
    shared = reference.shape[0] == 1 and (confidence is None or confidence.shape[0] == 1)
    return 1 if shared else maps.shape[0]


def as_pixels(maps: Tensor, count: int) -> Tensor:
    """Move channels last: (B, K, H, W) to (count, H, W, ...), as a view if memory allows."""
    images, _, height, width = maps.shape
    order = (0, 2, 3, 1) if count == images else (2, 3, 0, 1)
    return maps.detach().permute(order).reshape(count, height, width, -1)


def as_maps(pixels: Tensor, shape: torch.Size) -> Tensor:
    """Move channels first again: (count, H, W, ...) to (B, K, H, W), as a view."""
    images, channels, height, width = shape
    if pixels.shape[0] == images:
        return pixels.permute(0, 3, 1, 2)
    return pixels.view(height, width, images, channels).permute(2, 3, 0, 1)


def as_array(value: Tensor) -> NDArray[Any]:
    """Return the values of a tensor; bfloat16, which NumPy lacks, becomes float32."""
    value = value.detach().cpu()
    return (value.float() if value.dtype == torch.bfloat16 else value).numpy()


def like_target(y: Tensor, target: Tensor) -> Tensor:
    """Bring a solution (B, C, H, W) to the shape, memory format and dtype of the target."""
    y = y if target.ndim == 4 else y.squeeze(0)
    if target.is_contiguous():
        y = y.contiguous()
    if target.dtype.is_floating_point:
        return y.to(target.dtype)
    limits = torch.iinfo(target.dtype)
    return y.round().clamp(limits.min, limits.max).to(target.dtype)


def _check_tensor(name: str, value: object, target: Tensor, names: Names) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name}: expected a tensor, got {type(value).__name__}. "
            f"Use torch.as_tensor, or {names.array_function} for NumPy arrays."
        )
    if value.device.type not in ("cpu", "cuda", "meta"):
        raise ValueError(
            f"{name}: expected a tensor on the CPU or a CUDA device, got one on {value.device}. "
            f"Call .cpu() first."
        )
    if isinstance(target, Tensor) and value.device != target.device:
        raise ValueError(
            f"{name}: expected a tensor on {target.device}, where the {names.target} is, "
            f"got one on {value.device}. Call .to({names.target}.device) first."
        )
    check_content(name, value)
    if value.dtype.is_complex or (value.dtype == torch.bool and name != names.confidence):
        raise TypeError(
            f"{name}: expected real numbers, got {value.dtype}. Convert it with .float() first."
        )


def check_layout(name: str, values: Tensor) -> None:
    """Raise if a tensor is sparse."""
    if values.layout != torch.strided:
        raise TypeError(
            f"{name}: expected a dense tensor, got one of the layout {values.layout}. "
            f"Call .to_dense() first."
        )


def check_content(name: str, values: Tensor) -> None:
    """Raise if a tensor is sparse, or has an integer that is too large for float64."""
    check_layout(name, values)
    integers = values.dtype in (torch.int64, torch.uint64) and values.numel() > 0
    if not integers or torch.compiler.is_compiling() or values.device.type == "meta":
        return
    # PyTorch compares no unsigned integers: with the sign bit flipped, signed ones sort like them.
    offset = 2**63 if values.dtype == torch.uint64 else 0
    signed = values.view(torch.int64) ^ -offset
    try:
        validation.integer_range(name, int(signed.min()) + offset, int(signed.max()) + offset)
    except RuntimeError:  # inside vmap, values cannot be read
        return


def _reference(
    reference: Tensor, values: Tensor, target: Tensor, names: Names, channels: Sequence[int]
) -> Tensor:
    """Return a reference (R, C, H, W) in a dtype that the operators take."""
    images, _, height, width = values.shape
    photos = reference if reference.ndim == 4 else reference.unsqueeze(0)
    if (
        reference.ndim not in (3, 4)
        or photos.shape[0] not in (1, images)
        or photos.shape[1] not in channels
        or photos.shape[2:] != values.shape[2:]
    ):
        hint = (
            " Drop the alpha channel: reference[..., :3, :, :]."
            if photos.ndim == 4 and photos.shape[1] == 4
            else " Gray has one channel, RGB three; a reference without B serves the whole batch."
        )
        counts = " or ".join(map(str, channels))
        expected = f"({counts}, {height}, {width})"
        if images > 1:
            expected += f" or ({images}, {counts}, {height}, {width})"
        raise ValueError(
            f"reference: expected shape {expected} for {names.target} of shape "
            f"{tuple(target.shape)}, got {tuple(reference.shape)}.{hint}"
        )
    dtype = reference.dtype
    if dtype not in (torch.uint8, torch.uint16) and not dtype.is_floating_point:
        raise TypeError(
            f"reference: expected uint8, uint16 or floating point, got {dtype}. "
            f"Convert it first, for example with .float() and reference_max=."
        )
    if dtype.is_floating_point and dtype != torch.float64:
        photos = photos.to(torch.float32)
    return photos.detach()


def _confidence(confidence: Tensor, values: Tensor, target: Tensor, names: Names) -> Tensor:
    """Return a confidence (N, 1, H, W)."""
    images, size = values.shape[0], values.shape[2:]
    maps = confidence
    if maps.ndim == 2:
        maps = maps.unsqueeze(0)
    if maps.ndim == 3:
        maps = maps.unsqueeze(1)
    if maps.ndim != 4 or maps.shape[0] not in (1, images) or maps.shape[1:] != (1, *size):
        raise ValueError(
            f"{names.confidence}: expected one number per pixel, shape {(images, 1, *size)} or a "
            f"part of it, for {names.target} of shape {tuple(target.shape)}, got "
            f"{tuple(confidence.shape)}. All channels share it."
        )
    return maps


def zero_unknown(batch: Batch) -> Batch:
    """Set target and confidence to 0 at pixels whose target is not finite.

    So these pixels get no gradients, and their NaN does not spread to other gradients.
    """
    reference, target, confidence = batch
    # A sum is the cheapest test. If it overflows, the pass below runs without need.
    if not torch.compiler.is_compiling() and _is_finite(target):
        return batch
    known = torch.isfinite(target).all(1, keepdim=True)
    ones = torch.ones_like(target[:, :1]) if confidence is None else confidence
    return Batch(reference, torch.where(known, target, 0), torch.where(known, ones, 0))


def _is_finite(values: Tensor) -> bool:
    try:
        return math.isfinite(values.detach().sum().item())
    except RuntimeError:  # inside vmap, values cannot be read
        return False


def smoothness(value: float | Tensor) -> Tensor:
    """Return the smoothness as a tensor without dimensions."""
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise ValueError(
                f"smoothness: expected one number, got a tensor of shape {tuple(value.shape)}. "
                f"All images of a batch share it."
            )
        if not value.dtype.is_floating_point:
            raise TypeError(f"smoothness: expected floating point, got a tensor of {value.dtype}.")
        return value.reshape(())
    return torch.tensor(validation.fixed_smoothness(value), dtype=torch.float64)
