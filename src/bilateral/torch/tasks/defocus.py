"""Blur photographs that are tensors where they are out of focus."""

from __future__ import annotations

import torch
from torch import Tensor

from bilateral import validation
from bilateral.tasks.defocus import KINDS
from bilateral.torch import operators
from bilateral.torch.tasks import tensors
from bilateral.torch.tasks.batches import DefocusBatch
from bilateral.torch.untraced import untraced

_ARRAY = "bilateral.tasks.defocus"


@validation.keywords(photo="image", reference="image", target="depth")
def defocus(
    image: Tensor,
    depth: Tensor,
    focus: float,
    aperture: float,
    *,
    kind: str = "depth",
    blades: int | None = None,
    rotation: float = 0.0,
    max_radius: float | None = None,
    linear: bool | None = None,
) -> Tensor:
    """Blur photographs where they are out of focus, as a lens with a wide aperture does.

    This is `bilateral.tasks.defocus` for tensors, and its documentation describes the method.
    Photographs on a CUDA device are blurred there. The function gives no gradients.

    Parameters
    ----------
    image : (B, 3 or 1, H, W) or (3 or 1, H, W) tensor
        uint8 or uint16 sRGB, or floating point linear light.
    depth : (B, 1, H, W), (B, H, W), (1, H, W) or (H, W) tensor
        One number per pixel, without holes. A depth without B serves the whole batch.
    focus, aperture, kind, blades, rotation, max_radius, linear
        As for arrays. All images of a batch share them.

    Returns
    -------
    tensor
        Of the image's shape, dtype and device.

    Examples
    --------
    >>> import torch
    >>> import bilateral.torch
    >>> image = torch.zeros(1, 32, 32, dtype=torch.uint8)
    >>> image[..., 16:] = 255
    >>> depth = torch.where(torch.arange(32) < 16, 2.0, 8.0).expand(32, 32)
    >>> bilateral.torch.defocus(image, depth, focus=2, aperture=10)[0, 8, 13:19].tolist()
    [0, 0, 0, 255, 255, 255]
    >>> bilateral.torch.defocus(image, depth, focus=8, aperture=10)[0, 8, 13:19].tolist()
    [84, 134, 169, 203, 225, 243]
    """
    photos = tensors.maps("image", image, _ARRAY)
    tensors.channels("image", photos, (1, 3))
    z = tensors.one_per_pixel("depth", depth, len(photos), _ARRAY)
    tensors.same_size("depth", z, "image", photos)
    tensors.same_device("image", photos, depth=z)
    options = {
        "focus": focus,
        "aperture": validation.not_negative("aperture", aperture),
        "kind": validation.choice("kind", kind, KINDS),
        "blades": None if blades is None else validation.count("blades", blades, 3),
        "rotation": validation.finite("rotation", rotation),
        "max_radius": max_radius,
        "linear": None if linear is None else validation.flag("linear", linear),
    }
    batch = DefocusBatch(photos, z, options)
    return tensors.like(_defocus(batch).to(photos.device, photos.dtype), image)


def _apply(batch: DefocusBatch) -> Tensor:
    if not tensors.on_cuda(batch.image):
        return torch.stack([batch.on_cpu(i) for i in range(len(batch.image))])
    from bilateral.torch.cuda.tasks.defocus import defocus

    with operators.on_device_of(batch.image), torch.no_grad():
        blurred: Tensor = defocus(batch)
    return blurred


_defocus = untraced(_apply)
