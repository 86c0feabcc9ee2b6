"""Check the tensors of filters and tasks, and hand those on the CPU to the calls for arrays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from bilateral.torch import operators
from bilateral.torch.inputs import check_content

Array = NDArray[Any]


def maps(name: str, value: object, array_function: str) -> Tensor:
    """Return a tensor (B, C, H, W) from one of (B, C, H, W) or (C, H, W), without its gradient.

    `array_function` is named to a caller who gives an array.
    """
    tensor = dense(name, value, array_function)
    if tensor.ndim not in (3, 4) or tensor.numel() == 0:
        raise ValueError(
            f"{name}: expected shape (C, H, W) or (B, C, H, W) with at least one value, got "
            f"{tuple(tensor.shape)}. Channels come before height and width: {name}.unsqueeze(0) "
            f"adds one."
        )
    return tensor if tensor.ndim == 4 else tensor.unsqueeze(0)


def one_per_pixel(name: str, value: object, images: int | None, array_function: str) -> Tensor:
    """Return a tensor (B, H, W) from one number per pixel; B is 1 if all images share it.

    The shapes (H, W), (1, H, W), (B, H, W) and (B, 1, H, W) are accepted, with B = `images`, or
    with any B for None.
    """
    tensor = dense(name, value, array_function)
    if tensor.ndim == 4 and tensor.shape[1] == 1:
        tensor = tensor.squeeze(1)
    if tensor.ndim == 2:
        tensor = tensor.unsqueeze(0)
    wrong = tensor.ndim != 3 or tensor.numel() == 0
    if wrong or tensor.shape[0] not in (1, images or tensor.shape[0]):
        count = "B, " if images is None else f"{images}, " if images > 1 else ""
        raise ValueError(
            f"{name}: expected one number per pixel, shape ({count}1, H, W) or a part of it, got "
            f"{tuple(tensor.shape)}."
        )
    return tensor


def channels(name: str, value: Tensor, counts: tuple[int, ...]) -> None:
    """Raise unless images (B, C, H, W) have one of these numbers of channels."""
    if value.shape[1] not in counts:
        hint = " Channels come first." if value.shape[3] in counts else ""
        if value.shape[1] == 4 and 3 in counts:
            hint = f" Drop the alpha channel: {name}[..., :3, :, :]."
        raise ValueError(
            f"{name}: expected {' or '.join(map(str, counts))} channels, got shape "
            f"{tuple(value.shape)}.{hint}"
        )


def dtype(value: torch.dtype | None, like: Tensor) -> torch.dtype:
    """Return the dtype of a result: the one that was asked for, or that of a tensor."""
    if value is None:
        return like.dtype
    if not isinstance(value, torch.dtype) or value.is_complex:
        raise TypeError(f"dtype: expected a real dtype such as torch.float32, got {value!r}.")
    return value


def dense(name: str, value: object, array_function: str) -> Tensor:
    """Return a dense tensor of real numbers on the CPU or a CUDA device, without its gradient."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name}: expected a tensor, got {type(value).__name__}. "
            f"Use torch.as_tensor, or {array_function} for NumPy arrays."
        )
    if value.device.type not in ("cpu", "cuda"):
        raise ValueError(
            f"{name}: expected a tensor on the CPU or a CUDA device, got one on {value.device}. "
            f"Call .cpu() first."
        )
    check_content(name, value)
    if value.dtype.is_complex:
        raise TypeError(
            f"{name}: expected real numbers, got {value.dtype}. Convert it with .real first."
        )
    return value.detach()


def same_device(first_name: str, first: Tensor, **others: Tensor | None) -> None:
    """Raise if tensors are on different devices."""
    for name, other in others.items():
        if other is not None and other.device != first.device:
            raise ValueError(
                f"{name}: expected a tensor on {first.device}, where {first_name} is, got one on "
                f"{other.device}. Call .to({first_name}.device) first."
            )


def same_size(name: str, value: Tensor, like_name: str, like: Tensor) -> None:
    """Raise if two tensors differ in height or width, or in images where both have several."""
    count = 1 if value.shape[0] in (1, like.shape[0]) else like.shape[0]
    if value.shape[-2:] != like.shape[-2:] or count > 1:
        height, width = like.shape[-2:]
        images = f"{like.shape[0]} images of " if like.shape[0] > 1 else ""
        raise ValueError(
            f"{name}: expected {images}{height} x {width} pixels (height x width) as {like_name} "
            f"of shape {tuple(like.shape)}, got {tuple(value.shape)}."
        )


def array(value: Tensor) -> Array:
    """Return the values of a tensor, without a copy if it is on the CPU; bfloat16 gets float32."""
    value = value.detach().cpu()
    return (value.float() if value.dtype == torch.bfloat16 else value).numpy()


def pixels(value: Tensor) -> Array:
    """Return an image (C, H, W) as an array (H, W, C), or (H, W) for one channel."""
    return array(value[0] if len(value) == 1 else value.movedim(0, -1))


def tensor(values: Array) -> Tensor:
    """Return an array (H, W) or (H, W, C) as a tensor (C, H, W)."""
    out = torch.from_numpy(values)
    return out.unsqueeze(0) if out.ndim == 2 else out.movedim(-1, 0)


@contextmanager
def naming_image(i: int, count: int) -> Iterator[None]:
    """Add the number of an image to errors, if a batch has several."""
    try:
        yield
    except (ValueError, TypeError) as error:
        if count > 1:
            error.add_note(f"In image {i} of the batch.")
        raise


def at(value: Tensor | None, i: int) -> Any:
    """Return image i of a batch, or the only image; None for None."""
    return None if value is None else value[min(i, len(value) - 1)]


def like(result: Tensor, given: Tensor) -> Tensor:
    """Return a batch (B, C, H, W) in the layout of a given tensor, without B if it has none."""
    return result if given.ndim == 4 else result.squeeze(0)


def on_cuda(value: Tensor) -> bool:
    """Whether kernels compute the result, rather than the calls for arrays."""
    if not value.is_cuda:
        return False
    operators.load_cuda_operators()  # raises an error that says how to install Triton
    return True


def as_dtype(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert real values; those of integers are rounded to the nearest in their range."""
    if dtype.is_floating_point:
        return values.to(dtype)
    limits = (0, 1) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    return values.round().clamp(*limits).to(dtype)
