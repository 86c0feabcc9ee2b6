"""Complete the depth of few points, given as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal, overload

import torch
from torch import Tensor

from bilateral import validation
from bilateral.tasks.completion.candidates import Cells, HostCandidates
from bilateral.tasks.completion.complete import CandidatesOf, complete
from bilateral.torch import operators
from bilateral.torch.tasks.depth_batch import depth_batch


@overload
def complete_depth(
    points: Tensor,
    reference: Tensor,
    confidence: Tensor | None = ...,
    *,
    kind: str = ...,
    invalid: float | Sequence[float] | None = ...,
    mask: Tensor | None = ...,
    sigma_xy: float | None = ...,
    sigma_luma: float = ...,
    sigma_chroma: float = ...,
    reference_max: float | None = ...,
    dtype: torch.dtype | None = ...,
    return_confidence: Literal[False] = ...,
) -> Tensor: ...
@overload
def complete_depth(
    points: Tensor,
    reference: Tensor,
    confidence: Tensor | None = ...,
    *,
    kind: str = ...,
    invalid: float | Sequence[float] | None = ...,
    mask: Tensor | None = ...,
    sigma_xy: float | None = ...,
    sigma_luma: float = ...,
    sigma_chroma: float = ...,
    reference_max: float | None = ...,
    dtype: torch.dtype | None = ...,
    return_confidence: Literal[True],
) -> tuple[Tensor, Tensor]: ...
@validation.keywords(photo="reference", depth="points", target="points")
def complete_depth(
    points: Tensor,
    reference: Tensor,
    confidence: Tensor | None = None,
    *,
    kind: str = "auto",
    invalid: float | Sequence[float] | None = None,
    mask: Tensor | None = None,
    sigma_xy: float | None = None,
    sigma_luma: float = 8.0,
    sigma_chroma: float = 8.0,
    reference_max: float | None = None,
    dtype: torch.dtype | None = None,
    return_confidence: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Complete the depth or disparity of few points to dense maps, with the photographs.

    This is `bilateral.tasks.complete_depth` for tensors, and its documentation describes the
    method. The function has no gradients.

    Maps on a CUDA device are completed one by one, and the call waits for the device. The solves,
    which take most of the time, run on the device; the host holds points out, interpolates and
    weighs.

    Parameters
    ----------
    points : (B, 1, H, W), (B, H, W), (1, H, W) or (H, W) tensor
        Depth or disparity, in any unit and real dtype. A value that is 0 or not finite is unknown.
    reference : (B, C, H, W) or (C, H, W) tensor
        Photographs with three channels or one: uint8, uint16 or floating point, with white at 255,
        65535 or 1. One without B, or with B = 1, serves the whole batch.
    confidence : tensor like `points`, optional
        Weight of each point relative to the others, on any scale; 0 for unknown. One without B
        serves the whole batch. Default: 1.
    kind, invalid, sigma_xy, sigma_luma, sigma_chroma, reference_max
        As for arrays.
    mask : tensor like `points` of bool or integers, optional
        0 where the map is unknown. One without B serves the whole batch.
    dtype : torch.dtype, optional
        Dtype of the result. Default: that of the points. Integer results are rounded.
    return_confidence : bool
        Whether to return a confidence, too.

    Returns
    -------
    tensor
        Of the shape and device of `points`, finite everywhere.
    float32 tensor
        Only with `return_confidence`: from 0 to 1, as for arrays, of the same shape and device.

    Examples
    --------
    >>> import torch
    >>> import bilateral.torch
    >>> photo = torch.full((1, 60, 80), 40, dtype=torch.uint8)
    >>> photo[..., 40:] = 200
    >>> points = torch.zeros(60, 80)  # 0: unknown
    >>> points[5::10, 5:40:10] = 3.0
    >>> points[5::10, 45::10] = 1.5
    >>> dense = bilateral.torch.complete_depth(points, photo)
    >>> torch.allclose(dense, torch.where(photo[0] > 100, 1.5, 3.0))
    True
    """
    batch = depth_batch("complete_depth", "points", points, reference, confidence, mask, dtype)
    with_confidence = validation.flag("return_confidence", return_confidence)
    task = partial(
        complete,
        cells=Cells(sigma_xy, sigma_luma, sigma_chroma),
        kind=kind,
        invalid=invalid,
        reference_max=reference_max,
        return_confidence=with_confidence,
    )
    with operators.on_device_of(batch.maps), torch.no_grad():
        results = [
            batch.one_on_host(i, partial(task, _where_to_solve(photo)))
            for i, photo in enumerate(batch.images)
        ]
    if not with_confidence:
        return batch.result(results)
    dense, trust = zip(*results, strict=True)
    return batch.result(list(dense)), batch.result(list(trust), torch.float32)


def _where_to_solve(photo: Tensor) -> CandidatesOf:
    if not _is_on_cuda(photo):
        return HostCandidates
    operators.load_cuda_operators()  # raises an error that says how to install Triton
    from bilateral.torch.cuda.tasks.completion import DeviceCandidates

    return partial(DeviceCandidates, photo)


def _is_on_cuda(photo: Tensor) -> bool:
    return photo.is_cuda
