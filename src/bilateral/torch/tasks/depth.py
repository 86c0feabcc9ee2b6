"""Refine depth maps that are tensors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from bilateral import tasks, validation
from bilateral.tasks.depth.fill import Cells
from bilateral.torch import operators
from bilateral.torch.tasks.depth_batch import depth_batch


@validation.keywords(photo="reference", target="depth")
def refine_depth(
    depth: Tensor,
    reference: Tensor,
    confidence: Tensor | None = None,
    *,
    preset: str = "sensor",
    invalid: float | Sequence[float] | None = None,
    mask: Tensor | None = None,
    sigma_xy: float | None = None,
    sigma_luma: float = 8.0,
    sigma_chroma: float = 8.0,
    scale: float | None = None,
    reference_max: float | None = None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Remove outliers, fill holes and align the edges of depth maps with their photographs.

    This is `bilateral.tasks.refine_depth` for tensors, and its documentation describes the method.
    A batch holds maps that have nothing to do with each other; for the frames of a video use the
    function for arrays or `bilateral.tasks.DepthStream`. The function has no gradients.

    Maps on a CUDA device are refined there, with `preset` "sensor" and without `scale`. All others,
    and those with ragged edges, of stereo matching or enlarged by repeating pixels, are copied to
    the host and back, and refined by the CPU in part or as a whole. Images are refined one by one,
    and the call waits for the device.

    Parameters
    ----------
    depth : (B, 1, H, W), (B, H, W), (1, H, W) or (H, W) tensor
        Depth or disparity, in any unit and real dtype. A value that is not finite is unknown.
    reference : (B, C, H, W) or (C, H, W) tensor
        Photographs with three channels or one: uint8, uint16 or floating point, with white at 255,
        65535 or 1. One without B, or with B = 1, serves the whole batch.
    confidence : tensor like `depth`, optional
        Weight of each pixel's value relative to the others, on any scale; 0 for unknown. One
        without B serves the whole batch. Default: 1 everywhere.
    preset, invalid, sigma_xy, sigma_luma, sigma_chroma, scale, reference_max
        As for arrays.
    mask : tensor like `depth` of bool or integers, optional
        0 where the map is unknown. One without B serves the whole batch.
    dtype : torch.dtype, optional
        Dtype of the result. Default: that of the maps. Integer results are rounded.

    Returns
    -------
    tensor
        Of the shape and device of `depth`, finite everywhere.

    Examples
    --------
    >>> import torch
    >>> import bilateral.torch
    >>> photo = torch.full((1, 3, 40, 60), 0.2)
    >>> photo[..., 30:] = 0.8
    >>> depth = torch.where(photo[:, :1] > 0.5, 1.5, 3.0)
    >>> depth[..., 10:20, 20:28] = torch.nan  # no data
    >>> refined = bilateral.torch.refine_depth(depth, photo)
    >>> refined.shape, refined.unique().tolist()
    (torch.Size([1, 1, 40, 60]), [1.5, 3.0])
    """
    batch = depth_batch("refine_depth", "depth", depth, reference, confidence, mask, dtype)
    on_device = preset == "sensor" and scale is None and _is_on_cuda(batch.maps)
    refine = partial(
        tasks.refine_depth,
        preset=preset,
        invalid=invalid,
        sigma_xy=sigma_xy,
        sigma_luma=sigma_luma,
        sigma_chroma=sigma_chroma,
        scale=scale,
        reference_max=reference_max,
    )
    if not on_device:
        return batch.result(list(batch.on_host(refine)))
    unknown = validation.number_list("invalid", invalid)
    cells = Cells.checked(sigma_xy, sigma_luma, sigma_chroma)
    refined = []
    with operators.on_device_of(batch.maps), torch.no_grad():
        for i in range(len(batch.maps)):
            x = _refine_on_cuda(batch.image(i), unknown, cells, reference_max)
            refined.append(batch.one_on_host(i, refine) if x is None else x)
    return batch.result(refined)


def _is_on_cuda(maps: Tensor) -> bool:
    return maps.is_cuda


def _refine_on_cuda(*arguments: Any) -> Tensor | None:
    operators.load_cuda_operators()  # raises an error that says how to install Triton
    from bilateral.torch.cuda.tasks import camera

    return camera.refine(camera.CameraMap(*arguments[0]), *arguments[1:])
