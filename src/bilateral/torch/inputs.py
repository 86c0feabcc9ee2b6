"""Shapes and dtypes of tensors: what users give, as (B, C, H, W)."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor

from bilateral import validation as checks


class Batch(NamedTuple):
    """Tensors as the operators take them."""

    reference: Tensor
    """(B, 3, H, W) or (B, 1, H, W), or 1 for B if all images share it."""
    target: Tensor
    """(B, C, H, W), float32 or float64."""
    confidence: Tensor | None
    """(B, 1, H, W) of the target's dtype; 1 for B if all images share it and the reference."""


class Names(NamedTuple):
    """What a function calls its arguments, and its twin for arrays."""

    target: str = "target"
    confidence: str = "confidence"
    twin: str = "bilateral.solve"


def batch(
    reference: Tensor,
    target: Tensor,
    confidence: Tensor | None,
    names: Names = Names(),  # noqa: B008
    channels: Sequence[int] = (3, 1),
) -> Batch:
    """Check the shapes and dtypes of tensors and bring them to one form."""
    for name, value in (
        ("reference", reference),
        (names.target, target),
        (names.confidence, confidence),
    ):
        if value is not None or name != names.confidence:
            _tensor(name, value, target, names)
    if target.ndim not in (3, 4) or target.numel() == 0:
        raise ValueError(
            f"{names.target}: expected shape (C, H, W) or (B, C, H, W) with at least one value, "
            f"got {tuple(target.shape)}. Channels come before height and width: "
            f"{names.target}.unsqueeze(0) adds one."
        )
    values = target if target.ndim == 4 else target.unsqueeze(0)
    wide = target.dtype in (torch.float64, torch.int32, torch.int64)
    dtype = torch.float64 if wide else torch.float32
    images = _reference(reference, values, target, names, channels)
    weights = None
    if confidence is not None:
        weights = _confidence(confidence, values, target, names).to(dtype)
    if weights is not None and len(images) > 1:  # as many matrices, whether it is shared or not
        weights = weights.expand(len(images), -1, -1, -1)
    return Batch(images, values.to(dtype), weights)


def matrices(reference: Tensor, maps: Tensor, confidence: Tensor | None) -> int:
    """How many matrices a batch has: one for all images, or one for each."""
    shared = reference.shape[0] == 1 and (confidence is None or confidence.shape[0] == 1)
    return 1 if shared else maps.shape[0]


def as_pixels(maps: Tensor, count: int) -> Tensor:
    """(B, K, H, W) to (count, H, W, ...), channels last, a view if memory allows."""
    images, _, height, width = maps.shape
    order = (0, 2, 3, 1) if count == images else (2, 3, 0, 1)
    return maps.detach().permute(order).reshape(count, height, width, -1)


def as_maps(pixels: Tensor, shape: torch.Size) -> Tensor:
    """Back from (count, H, W, ...) to (B, K, H, W), as a view."""
    images, channels, height, width = shape
    if pixels.shape[0] == images:
        return pixels.permute(0, 3, 1, 2)
    return pixels.view(height, width, images, channels).permute(2, 3, 0, 1)


def like_target(y: Tensor, target: Tensor) -> Tensor:
    """A solution (B, C, H, W) in the shape, memory format and dtype of the user's target."""
    y = y if target.ndim == 4 else y.squeeze(0)
    if target.is_contiguous():
        y = y.contiguous()
    if target.dtype.is_floating_point:
        return y.to(target.dtype)
    limits = torch.iinfo(target.dtype)
    return y.round().clamp(limits.min, limits.max).to(target.dtype)


def _tensor(name: str, value: object, target: Tensor, names: Names) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name}: expected a tensor, got {type(value).__name__}. "
            f"Use torch.as_tensor, or {names.twin} for NumPy arrays."
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
    if value.dtype.is_complex or (value.dtype == torch.bool and name != names.confidence):
        raise TypeError(
            f"{name}: expected real numbers, got {value.dtype}. Convert it with .float() first."
        )


def _reference(
    reference: Tensor, values: Tensor, target: Tensor, names: Names, channels: Sequence[int]
) -> Tensor:
    images, _, height, width = values.shape
    given = reference if reference.ndim == 4 else reference.unsqueeze(0)
    if (
        reference.ndim not in (3, 4)
        or given.shape[0] not in (1, images)
        or given.shape[1] not in channels
        or given.shape[2:] != values.shape[2:]
    ):
        hint = (
            " Drop the alpha channel: reference[..., :3, :, :]."
            if given.ndim == 4 and given.shape[1] == 4
            else " Gray has one channel, RGB three; a reference without B serves the whole batch."
        )
        some = " or ".join(map(str, channels))
        expected = f"({some}, {height}, {width})"
        if images > 1:
            expected += f" or ({images}, {some}, {height}, {width})"
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
        given = given.to(torch.float32)
    return given.detach()


def _confidence(confidence: Tensor, values: Tensor, target: Tensor, names: Names) -> Tensor:
    images, size = values.shape[0], values.shape[2:]
    given = confidence
    if given.ndim == 2:
        given = given.unsqueeze(0)
    if given.ndim == 3:
        given = given.unsqueeze(1)
    if given.ndim != 4 or given.shape[0] not in (1, images) or given.shape[1:] != (1, *size):
        raise ValueError(
            f"{names.confidence}: expected one number per pixel, shape {(images, 1, *size)} or a "
            f"part of it, for {names.target} of shape {tuple(target.shape)}, got "
            f"{tuple(confidence.shape)}. All channels share it."
        )
    return given


def zero_unknown(given: Batch) -> Batch:
    """The same without values that are not finite: their pixels have 0 for target and confidence.

    So they get no gradients, and no NaN comes near anybody else's.
    """
    reference, target, confidence = given
    # A sum is the cheapest test; one that overflows only costs the pass below.
    if not torch.compiler.is_compiling() and _is_finite(target):
        return given
    known = torch.isfinite(target).all(1, keepdim=True)
    ones = torch.ones_like(target[:, :1]) if confidence is None else confidence
    return Batch(reference, torch.where(known, target, 0), torch.where(known, ones, 0))


def _is_finite(values: Tensor) -> bool:
    try:
        return math.isfinite(values.detach().sum().item())
    except RuntimeError:  # inside vmap nobody can know
        return False


def smoothness(value: float | Tensor) -> Tensor:
    """A tensor without dimensions."""
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise ValueError(
                f"smoothness: expected one number, got a tensor of shape {tuple(value.shape)}. "
                f"All images of a batch share it."
            )
        if not value.dtype.is_floating_point:
            raise TypeError(f"smoothness: expected floating point, got a tensor of {value.dtype}.")
        return value.reshape(())
    return torch.tensor(checks.positive("smoothness", value), dtype=torch.float64)


def scores(probabilities: Tensor, image: Tensor) -> tuple[Tensor, Tensor]:
    """Scores (B, K, h, w) of classes and images (B, 1 or 3, H, W), of any sizes and devices."""
    for name, value in (("probabilities", probabilities), ("image", image)):
        if not isinstance(value, Tensor):
            raise TypeError(
                f"{name}: expected a tensor, since the other is one, got {type(value).__name__}. "
                f"Use torch.as_tensor, or NumPy arrays for both."
            )
        if value.ndim not in (3, 4) or value.numel() == 0:
            raise ValueError(
                f"{name}: expected shape (C, H, W) or (B, C, H, W) with at least one value, got "
                f"{tuple(value.shape)}. Channels come before height and width."
            )
    classes = probabilities if probabilities.ndim == 4 else probabilities.unsqueeze(0)
    images = image if image.ndim == 4 else image.unsqueeze(0)
    if images.shape[1] not in (1, 3) or images.shape[0] not in (1, classes.shape[0]):
        hint = (
            " Channels come first: image.permute(2, 0, 1)."
            if image.shape[-1] in (1, 3)
            else " Gray has one channel, RGB three; an image without B serves the whole batch."
        )
        raise ValueError(
            f"image: expected shape (3 or 1, H, W) or ({classes.shape[0]}, 3 or 1, H, W) for "
            f"probabilities of shape {tuple(probabilities.shape)}, got {tuple(image.shape)}.{hint}"
        )
    return classes, images.expand(classes.shape[0], -1, -1, -1)


def per_pixel(name: str, value: Tensor, images: int) -> Tensor:
    """A map (B, H, W) from one of (H, W), (B, H, W) or (B, 1, H, W)."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name}: expected a tensor, got {type(value).__name__}.")
    given = value.squeeze(1) if value.ndim == 4 and value.shape[1] == 1 else value
    given = given.unsqueeze(0) if given.ndim == 2 else given
    if given.ndim != 3 or given.shape[0] not in (1, images):
        raise ValueError(
            f"{name}: expected one number per pixel, shape (H, W) or ({images}, H, W), got "
            f"{tuple(value.shape)}."
        )
    return given.expand(images, -1, -1)


def are_logits(scores: Tensor, ignore: Tensor | None) -> bool | None:
    """Whether any image of a batch has logits; None if one alone may tell."""
    if len(scores) == 1:
        return None
    hidden = [None] * len(scores) if ignore is None else [array(one != 0) for one in ignore]
    return any(
        checks.scores("probabilities", array(one).transpose(1, 2, 0), None, (), None, hide).logits
        for one, hide in zip(scores, hidden, strict=True)
    )


def array(value: Tensor) -> NDArray[Any]:
    """A tensor's values; NumPy has no bfloat16."""
    value = value.detach().cpu()
    return (value.float() if value.dtype == torch.bfloat16 else value).numpy()
