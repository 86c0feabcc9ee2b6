"""Colorize gray photographs that are tensors."""

from __future__ import annotations

import torch
from torch import Tensor

from bilateral import validation
from bilateral.tasks.colorize.presets import PRESETS
from bilateral.torch import operators
from bilateral.torch.tasks import tensors
from bilateral.torch.tasks.batches import ColorizeBatch
from bilateral.torch.untraced import untraced

_ARRAY = "bilateral.tasks.colorize"


@validation.keywords(photo="gray", reference="gray")
def colorize(
    gray: Tensor,
    scribbles: Tensor,
    mask: Tensor | None = None,
    *,
    preset: str = "best",
    sigma_xy: float | None = None,
    sigma_luma: float | None = None,
    smoothness: float | None = None,
    reference_max: float | None = None,
) -> Tensor:
    """Colorize gray photographs by a few strokes of colour.

    This is `bilateral.tasks.colorize` for tensors, and its documentation describes the method.
    Photographs on a CUDA device are colorized there. The function gives no gradients.

    Parameters
    ----------
    gray : (B, 1 or 3, H, W) or (1 or 3, H, W) tensor
        The photographs: uint8, uint16 or floating point, with white at 255, 65535 or 1.
    scribbles : (B, 3 or 4, H, W) or (3 or 4, H, W) tensor
        The photographs with strokes painted on them, or layers of strokes with an alpha channel.
        Scribbles without B, or with B = 1, serve the whole batch.
    mask : (B, H, W), (B, 1, H, W) or (H, W) tensor of bool or integers, optional
        Where the strokes are.
    preset, sigma_xy, sigma_luma, smoothness, reference_max
        As for arrays.

    Returns
    -------
    (B, 3, H, W) or (3, H, W) tensor
        RGB, with the dtype and the white of `gray`, on its device.

    Examples
    --------
    >>> import torch
    >>> import bilateral.torch
    >>> gray = torch.full((1, 30, 40), 80, dtype=torch.uint8)
    >>> gray[..., 20:] = 170
    >>> marked = gray.repeat(3, 1, 1)
    >>> marked[:, 5:8, 4:12] = torch.tensor([170, 40, 40], dtype=torch.uint8)[:, None, None]
    >>> marked[:, 20:23, 30:36] = torch.tensor([150, 170, 220], dtype=torch.uint8)[:, None, None]
    >>> bilateral.torch.colorize(gray, marked)[:, 15, [2, 37]].T.tolist()
    [[171, 41, 41], [150, 170, 220]]
    """
    photos = tensors.maps("gray", gray, _ARRAY)
    tensors.channels("gray", photos, (1, 3))
    marked = tensors.maps("scribbles", scribbles, _ARRAY)
    tensors.channels("scribbles", marked, (3, 4))
    tensors.same_size("scribbles", marked, "gray", photos)
    where = None
    if mask is not None:
        where = tensors.one_per_pixel("mask", mask, len(photos), _ARRAY)
        tensors.same_size("mask", where, "gray", photos)
    tensors.same_device("gray", photos, scribbles=marked, mask=where)
    options = {
        "preset": validation.choice("preset", preset, PRESETS),
        "sigma_xy": sigma_xy,
        "sigma_luma": sigma_luma,
        "smoothness": smoothness,
        "reference_max": reference_max,
    }
    batch = ColorizeBatch(photos, marked, where, options)
    return tensors.like(_colorize(batch).to(photos.device, photos.dtype), gray)


def _apply(batch: ColorizeBatch) -> Tensor:
    if not tensors.on_cuda(batch.gray):
        return torch.stack([batch.on_cpu(i) for i in range(len(batch.gray))])
    from bilateral.torch.cuda.tasks.colorize.colorize import colorize

    with operators.on_device_of(batch.gray), torch.no_grad():
        coloured: Tensor = colorize(batch)
    return coloured


_colorize = untraced(_apply)
