"""Check depth maps with their photographs and hold them as one batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bilateral.torch.inputs import as_array, check_content, check_layout


class DepthBatch(NamedTuple):
    """B depth maps on one device."""

    name: str
    """Of the argument with the maps."""
    maps: Tensor
    """(B, H, W), real."""
    images: Tensor
    """(B, 3 or 1, H, W)"""
    confidence: Tensor | None
    """(B, H, W)"""
    mask: Tensor | None
    """(B, H, W)"""
    shape: torch.Size
    """Of the result."""
    dtype: torch.dtype
    """Of the result."""

    def on_host(self, task: Callable[..., Any]) -> Iterator[Any]:
        """Call a task for arrays once per map: task(map, image, confidence, mask=, dtype=)."""
        return (self.one_on_host(i, task) for i in range(len(self.maps)))

    def one_on_host(self, i: int, task: Callable[..., Any]) -> Any:
        """Call a task for arrays for one map."""
        values, image, confidence, mask = (
            None if each is None else as_array(each) for each in self.image(i)
        )
        assert image is not None
        dtype = _numpy_dtype(self.dtype)
        try:
            return task(values, np.moveaxis(image, 0, -1), confidence, mask=mask, dtype=dtype)
        except ValueError as error:
            if len(self.maps) > 1:
                error.add_note(f"In image {i} of the batch.")
            raise

    def image(self, i: int) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """Return map, photograph, confidence and mask of one image."""
        others = (None if each is None else each[i] for each in (self.confidence, self.mask))
        confidence, mask = others
        return self.maps[i], self.images[i], confidence, mask

    def result(self, maps: list[Any], dtype: torch.dtype | None = None) -> Tensor:
        """Return maps (H, W), arrays or float64 tensors, as a tensor like the input."""
        dtype = dtype or self.dtype
        tensors = [_as_dtype(torch.as_tensor(each), dtype).to(self.maps.device) for each in maps]
        return torch.stack(tensors).reshape(self.shape)


def depth_batch(
    task: str,
    name: str,
    depth: Tensor,
    reference: Tensor,
    confidence: Tensor | None,
    mask: Tensor | None,
    dtype: torch.dtype | None,
) -> DepthBatch:
    """Check shapes, devices and dtypes; `task` is the name of the function, `name` that of depth.

    Values are not checked: the task does.
    """
    for title, value in ((name, depth), ("reference", reference)):
        _check_tensor(title, value, name, depth, task)
        if value.dtype.is_complex or value.dtype == torch.bool:
            raise TypeError(
                f"{title}: expected real numbers, got {value.dtype}. "
                f"Convert it with .float() first."
            )
        check_content(title, value)
    maps = _one_per_pixel(depth)
    if maps is None or maps.numel() == 0:
        raise ValueError(
            f"{name}: expected one number per pixel, shape (B, 1, H, W), (B, H, W) or (H, W) with "
            f"at least one pixel, got {tuple(depth.shape)}. The photograph is the argument after "
            f"it."
        )
    images = reference if reference.ndim == 4 else reference.unsqueeze(0)
    if (
        reference.ndim not in (3, 4)
        or images.shape[0] not in (1, len(maps))
        or images.shape[1] not in (1, 3)
        or images.shape[2:] != maps.shape[1:]
    ):
        raise _wrong_reference(name, maps, reference)
    if dtype is not None and not isinstance(dtype, torch.dtype):
        raise TypeError(f"dtype: expected a dtype of PyTorch such as torch.float32, got {dtype!r}.")
    if dtype is not None and dtype.is_complex:
        raise TypeError(f"dtype: expected a real dtype, got {dtype}.")
    for title, given in (("confidence", confidence), ("mask", mask)):
        if given is not None:
            _check_tensor(title, given, name, depth, task)
            check = check_layout if title == "mask" else check_content  # a mask has any integers
            check(title, given)
    return DepthBatch(
        name,
        maps,
        images.expand(len(maps), -1, -1, -1),
        None if confidence is None else _like_maps("confidence", confidence, name, maps),
        None if mask is None else _like_maps("mask", mask, name, maps),
        depth.shape,
        dtype or depth.dtype,
    )


def _as_dtype(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert values to a dtype: round for integers, and clip to the range of the dtype."""
    if values.dtype == dtype:
        return values
    limits = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    if values.dtype == torch.float64:
        values = values if dtype.is_floating_point else values.round()
        values = values.clamp(limits.min, limits.max)
    return values.to(dtype)


def _numpy_dtype(dtype: torch.dtype) -> np.dtype[Any]:
    """Return the dtype of `as_array`."""
    return as_array(torch.empty(0, dtype=dtype)).dtype


def _check_tensor(title: str, value: object, name: str, depth: Tensor, task: str) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{title}: expected a tensor, got {type(value).__name__}. "
            f"Use torch.as_tensor, or bilateral.tasks.{task} for NumPy arrays."
        )
    if value.device.type not in ("cpu", "cuda"):
        raise ValueError(
            f"{title}: expected a tensor on the CPU or a CUDA device, got one on {value.device}. "
            f"Call .cpu() first."
        )
    if isinstance(depth, Tensor) and value.device != depth.device:
        raise ValueError(
            f"{title}: expected a tensor on {depth.device}, where {name} is, "
            f"got one on {value.device}. Call .to({name}.device) first."
        )


def _one_per_pixel(value: Tensor) -> Tensor | None:
    """Return maps (B, H, W) from (B, 1, H, W), (B, H, W) or (H, W); None for other shapes."""
    if value.ndim == 4 and value.shape[1] == 1:
        return value.squeeze(1)
    if value.ndim == 2:
        return value.unsqueeze(0)
    return value if value.ndim == 3 else None


def _like_maps(title: str, value: Tensor, name: str, maps: Tensor) -> Tensor:
    """Return values (B, H, W): one per pixel of all maps, or of each."""
    values = _one_per_pixel(value)
    images = len(maps)
    if values is None or values.shape[0] not in (1, images) or values.shape[1:] != maps.shape[1:]:
        size = tuple(maps.shape[1:])
        batch = f" or {(images, 1, *size)}" if images > 1 else ""
        raise ValueError(
            f"{title}: expected one number per pixel of {name}, shape {size}{batch}, "
            f"got {tuple(value.shape)}."
        )
    return values.expand(images, -1, -1)


def _wrong_reference(name: str, maps: Tensor, reference: Tensor) -> ValueError:
    images, height, width = maps.shape
    shape = tuple(reference.shape)
    expected = f"(3 or 1, {height}, {width})"
    if images > 1:
        expected += f" or ({images}, 3 or 1, {height}, {width})"
    if len(shape) in (3, 4) and shape[-3] == 4:
        hint = "Drop the alpha channel: reference[..., :3, :, :]."
    elif len(shape) in (3, 4) and shape[-1] in (1, 3):
        hint = "Channels come first: reference.movedim(-1, -3)."
    elif len(shape) == 2:
        hint = "Gray has one channel: reference.unsqueeze(0)."
    else:
        hint = "Gray has one channel, RGB three; a reference without B serves the whole batch."
    return ValueError(
        f"reference: expected shape {expected} for {name} of {height} x {width} pixels, "
        f"got {shape}. {hint}"
    )
