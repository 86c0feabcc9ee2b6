"""Enlarge depth maps that are tensors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bilateral import validation
from bilateral.tasks.superres.policy import PRESETS
from bilateral.torch import operators
from bilateral.torch.tasks import tensors
from bilateral.torch.tasks.batches import SuperresBatch
from bilateral.torch.untraced import untraced

_ARRAY = "bilateral.tasks.superres_depth"


@validation.keywords(photo="reference", depth="depth_lowres", target="depth_lowres")
def superres_depth(
    depth_lowres: Tensor,
    reference: Tensor,
    factor: float | None = None,
    preset: str = "best",
    *,
    confidence: Tensor | None = None,
    invalid: float | Sequence[float] | None = None,
    keep_holes: bool = False,
    reference_max: float | None = None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Enlarge low-resolution depth maps to the resolution of photographs of the same scenes.

    This is `bilateral.tasks.superres_depth` for tensors, and its documentation describes the
    method. Maps on a CUDA device are enlarged there. The function is for inference and gives no
    gradients.

    Parameters
    ----------
    depth_lowres : (B, 1, h, w), (B, h, w), (1, h, w) or (h, w) tensor
        Depth or disparity, in any unit and real dtype. A value that is not finite is a hole.
    reference : (B, 3 or 1, H, W) or (3 or 1, H, W) tensor
        The photographs, aligned with the depth maps: uint8, uint16 or floating point, with white at
        255, 65535 or 1. A photograph without B, or with B = 1, serves the whole batch.
    factor, preset
        As for arrays.
    confidence : tensor like depth_lowres, optional
        Weight of each value relative to the others. Default: 1 everywhere.
    invalid, keep_holes, reference_max
        As for arrays.
    dtype : torch.dtype, optional
        Dtype of the result. Default: that of the depth maps. Integer results are rounded.

    Returns
    -------
    (B, 1, H, W), (B, H, W), (1, H, W) or (H, W) tensor
        On the device of the depth maps.

    Examples
    --------
    >>> import torch
    >>> import bilateral.torch
    >>> photo = torch.zeros(1, 32, 48, dtype=torch.uint8)
    >>> photo[..., 27:] = 255
    >>> depth = torch.tensor([1, 1, 1, 2.25, 3, 3]).expand(1, 4, 6)
    >>> large = bilateral.torch.superres_depth(depth, photo)
    >>> [round(value, 2) for value in large[0, 16, [0, 26, 27, 47]].tolist()]
    [1.0, 1.0, 3.0, 3.0]
    """
    maps = tensors.one_per_pixel("depth_lowres", depth_lowres, None, _ARRAY)
    photos = tensors.maps("reference", reference, _ARRAY)
    tensors.channels("reference", photos, (1, 3))
    if len(photos) not in (1, len(maps)):
        raise ValueError(
            f"reference: expected one photograph or {len(maps)}, one for each depth map, got "
            f"{len(photos)}."
        )
    trust = None
    if confidence is not None:
        trust = tensors.one_per_pixel("confidence", confidence, len(maps), _ARRAY)
        tensors.same_size("confidence", trust, "depth_lowres", maps)
    tensors.same_device("depth_lowres", maps, reference=photos, confidence=trust)
    options = {
        "factor": factor,
        "preset": validation.choice("preset", preset, PRESETS),
        "invalid": invalid,
        "keep_holes": validation.flag("keep_holes", keep_holes),
        "reference_max": reference_max,
    }
    batch = SuperresBatch(maps, photos, trust, tensors.dtype(dtype, maps), options)
    large = _enlarge(batch).to(maps.device, batch.dtype)
    return large.reshape(*depth_lowres.shape[:-2], *large.shape[-2:])


def _apply(batch: SuperresBatch) -> Tensor:
    if not tensors.on_cuda(batch.depth):
        return torch.stack([batch.on_cpu(i) for i in range(len(batch.depth))])
    from bilateral.torch.cuda.tasks.superres.enlarge import enlarge

    with operators.on_device_of(batch.depth), torch.no_grad():
        enlarged: Tensor = enlarge(batch)
    return enlarged


_enlarge = untraced(_apply)
