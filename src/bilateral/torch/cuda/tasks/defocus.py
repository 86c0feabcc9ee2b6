"""Blur photographs on a CUDA device, one after the other: `tasks.defocus` for tensors.

The host reads the range of the depths and of the blur, and which layers have pixels.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

from bilateral import color, validation
from bilateral.backends.cuda.defocus import layers as kernels
from bilateral.filters.defocus import MAX_RADIUS, SHARP, layer_radii
from bilateral.tasks.defocus import largest_radius, warn_if_nothing_is_sharp
from bilateral.torch.cuda.device_memory import retry_without_recordings
from bilateral.torch.cuda.tasks import photos
from bilateral.torch.tasks import tensors
from bilateral.torch.tasks.batches import DefocusBatch


@retry_without_recordings
def defocus(batch: DefocusBatch) -> Tensor:
    """Return images (B, C, H, W); an invalid one goes to the CPU, which says what is wrong."""
    blurred = []
    for i in range(len(batch.image)):
        x = _defocus(batch, i)
        blurred.append(batch.on_cpu(i).to(batch.image.device) if x is None else x)
    return torch.stack(blurred)


def _defocus(batch: DefocusBatch, i: int) -> Tensor | None:
    """Blur one image; None if it is not valid."""
    image, options = batch.image[i], batch.options
    depth, kind, aperture = tensors.at(batch.depth, i), options["kind"], options["aperture"]
    check_focus = validation.positive if kind == "depth" else validation.finite
    focus = check_focus("focus", options["focus"])
    shape = image.shape[1], image.shape[2]
    most = min(largest_radius(shape, options["max_radius"]), MAX_RADIUS)
    if photos.white(image, None) is None or depth.dtype == torch.bool:
        return None
    z = depth.double()
    valid = (z > 0).all() if kind == "depth" else z.isfinite().all()
    valid &= photos.check(image, None, any_scale=True)
    radius = (aperture * (1 / z - 1 / focus if kind == "depth" else z - focus)).clamp(-most, most)
    size = radius.abs()
    ranges = torch.stack([*z.aminmax(), *size.aminmax(), valid.double()]).tolist()
    low, high, least, largest, is_valid = ranges
    if not is_valid:
        return None
    if aperture == 0:
        return image
    warn_if_nothing_is_sharp(low, high, least, focus, kind, stacklevel=8)
    if largest < SHARP:
        return image
    radii = layer_radii(largest)
    layers = torch.copysign(_interpolated(size, radii), radius).float()
    coded = not image.dtype.is_floating_point
    if options["linear"] is not None:
        coded = not options["linear"]
    light = _linear(image) if coded else image.float()
    if not image.dtype.is_floating_point and not coded:
        light = photos.levels(image).float()
    corners, rotation = options["blades"] or 0, math.radians(options["rotation"])
    out = kernels.defocus(light, layers, _present(layers, len(radii)), radii, corners, rotation)
    return _encoded(out, image.dtype) if coded else tensors.as_dtype(out, image.dtype)


def _interpolated(size: Tensor, radii: list[float]) -> Tensor:
    """Return the layer of each radius, linear between the radii of neighbouring layers."""
    table = torch.tensor(radii, dtype=size.dtype).to(size.device)
    below = (torch.searchsorted(table, size, right=True) - 1).clamp(0, len(radii) - 2)
    low, high = table[below], table[below + 1]
    return below + ((size - low) / (high - low)).clamp(0, 1)


def _present(layers: Tensor, levels: int) -> list[int]:
    """Return the layers that pixels belong to."""
    middle = levels - 1
    shifted = (layers + middle).clamp(0, 2 * middle)
    both = torch.cat([shifted.floor().flatten(), shifted.ceil().flatten()]).long()
    marks = torch.zeros(2 * levels - 1, dtype=torch.bool, device=layers.device)
    marks[both] = True
    return [k - middle for k, marked in enumerate(marks.tolist()) if marked]


def _linear(image: Tensor) -> Tensor:
    """Convert sRGB values to linear light, as `color.srgb_to_linear`."""
    if image.dtype in (torch.uint8, torch.uint16):
        table = _linear_table(image.dtype.itemsize, image.device)
        return table[image.to(torch.int32).long()]
    v = image.float()
    curve = ((v.clamp(min=0) + 0.055) / 1.055) ** 2.4
    return torch.where(v <= 0.04045, v / 12.92, curve)


def _encoded(light: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert linear light to sRGB values, as `color.linear_to_srgb`."""
    if dtype == torch.uint8:
        root = (light.clamp(0, 1).sqrt() * 65535).round().long()
        return _srgb_table(light.device)[root]
    clipped = light if dtype.is_floating_point else light.clamp(0, 1)
    curve = 1.055 * clipped.clamp(min=0) ** (1 / 2.4) - 0.055
    values = torch.where(clipped <= 0.0031308, clipped * 12.92, curve)
    if dtype.is_floating_point:
        return values.to(dtype)
    return (values * torch.iinfo(dtype).max).round().to(torch.int32).to(dtype)


@lru_cache(maxsize=8)
def _linear_table(size: int, device: torch.device) -> Tensor:
    return torch.from_numpy(color.linear_table(size)).to(device)


@lru_cache(maxsize=8)
def _srgb_table(device: torch.device) -> Tensor:
    return torch.from_numpy(color.srgb_table()).to(device)
