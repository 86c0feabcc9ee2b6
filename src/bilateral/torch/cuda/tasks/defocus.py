"""Blur photographs on a CUDA device, one after the other: `tasks.defocus` for tensors.

The host reads the range of the depths and of the blur, and which layers have pixels.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from bilateral import color, validation
from bilateral.backends.cuda.constants import hold
from bilateral.backends.cuda.defocus import layers as kernels
from bilateral.filters.defocus import MAX_RADIUS, SHARP, layer_radii
from bilateral.tasks.defocus import largest_radius, warn_if_nothing_is_sharp
from bilateral.torch.cuda.device_memory import retry_without_recordings
from bilateral.torch.cuda.recorded import recorded
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
    blur, numbers = _measure(image, depth, _Lens(kind, aperture, focus, most))
    low, high, least, largest, is_valid = numbers.tolist()
    if not is_valid:
        return None
    if aperture == 0:
        return image
    warn_if_nothing_is_sharp(low, high, least, focus, kind, stacklevel=8)
    if largest < SHARP:
        return image
    radii = layer_radii(largest)
    coded = not image.dtype.is_floating_point
    if options["linear"] is not None:
        coded = not options["linear"]
    table = torch.tensor(radii, dtype=blur.dtype).to(blur.device)
    light, layers, marks = _prepare(image, blur, table, coded)
    middle = len(radii) - 1
    present = [k - middle for k, marked in enumerate(marks.tolist()) if marked]
    corners, rotation = options["blades"] or 0, math.radians(options["rotation"])
    out = kernels.defocus(light, layers, present, radii, corners, rotation)
    return _finish(out, image.dtype, coded)


class _Lens(NamedTuple):
    """What blurs."""

    kind: str
    aperture: float
    focus: float
    most: float
    """The largest radius."""


@recorded
def _measure(image: Tensor, depth: Tensor, lens: _Lens) -> tuple[Tensor, Tensor]:
    """Return the signed radius of each pixel's blur, and numbers for the host.

    The numbers: the ranges of the depths and of the radii, and whether all is valid.
    """
    kind, aperture, focus, most = lens
    z = depth.double()
    valid = (z > 0).all() if kind == "depth" else z.isfinite().all()
    valid = valid & photos.check(image, None, any_scale=True)
    blur = (aperture * (1 / z - 1 / focus if kind == "depth" else z - focus)).clamp(-most, most)
    return blur, torch.stack([*z.aminmax(), *blur.abs().aminmax(), valid.double()])


@recorded
def _prepare(
    image: Tensor, blur: Tensor, radii: Tensor, coded: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return linear light, the layer of each pixel, and which layers pixels belong to."""
    layers = torch.copysign(_interpolated(blur.abs(), radii), blur).float()
    light = _linear(image) if coded else image.float()
    if not image.dtype.is_floating_point and not coded:
        light = photos.levels(image).float()
    return light, layers, _present(layers, len(radii))


@recorded
def _finish(light: Tensor, dtype: torch.dtype, coded: bool) -> Tensor:
    return _encoded(light, dtype) if coded else tensors.as_dtype(light, dtype)


def _interpolated(size: Tensor, table: Tensor) -> Tensor:
    """Return the layer of each radius, linear between the radii of neighbouring layers."""
    below = (torch.searchsorted(table, size, right=True) - 1).clamp(0, len(table) - 2)
    low, high = table[below], table[below + 1]
    return below + ((size - low) / (high - low)).clamp(0, 1)


def _present(layers: Tensor, levels: int) -> Tensor:
    """Return whether pixels belong to each layer, from the farthest on."""
    middle = levels - 1
    shifted = (layers + middle).clamp(0, 2 * middle)
    both = torch.cat([shifted.floor().flatten(), shifted.ceil().flatten()]).long()
    marks = torch.zeros(2 * levels - 1, dtype=torch.bool, device=layers.device)
    return marks.index_fill(0, both, True)


def _linear(image: Tensor) -> Tensor:
    """Convert sRGB values to linear light, as `color.srgb_to_linear`."""
    if image.dtype in (torch.uint8, torch.uint16):
        table = hold(_linear_table(image.dtype.itemsize, image.device))
        return table[image.to(torch.int32).long()]
    v = image.float()
    curve = ((v.clamp(min=0) + 0.055) / 1.055) ** 2.4
    return torch.where(v <= 0.04045, v / 12.92, curve)


def _encoded(light: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert linear light to sRGB values, as `color.linear_to_srgb`."""
    if dtype == torch.uint8:
        root = (light.clamp(0, 1).sqrt() * 65535).round().long()
        return hold(_srgb_table(light.device))[root]
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
