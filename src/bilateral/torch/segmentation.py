"""Refine the output of a segmentation network on its device."""

from __future__ import annotations

import torch
from torch import Tensor

from bilateral import validation
from bilateral.tasks.segmentation.policy import DEFAULTS, SegmentationOptions
from bilateral.torch import operators
from bilateral.torch.segmentation_batch import (
    SegmentationBatch,
    are_logits,
    one_per_pixel,
    scores_and_images,
)


@validation.keywords(photo="image", reference="image", target="probabilities")
def refine_segmentation(
    probabilities: Tensor,
    image: Tensor,
    *,
    confidence: str | Tensor = "boundary",
    labels: bool = False,
    logits: bool | None = None,
    ignore: Tensor | None = None,
    sigma_xy: float | None = DEFAULTS.sigma_xy,
    sigma_luma: float = DEFAULTS.sigma_luma,
    sigma_chroma: float = DEFAULTS.sigma_chroma,
    smoothness: float | None = DEFAULTS.smoothness,
    rank_tolerance: float | None = DEFAULTS.rank_tolerance,
    reference_max: float | None = None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Move the borders of a segmentation's regions to the edges of its images.

    This is `bilateral.tasks.refine_segmentation` for tensors, and its documentation describes the
    method. Probabilities on a CUDA device are refined there. The function is for inference and
    gives no gradients, because it chooses labels. To train with a solver inside the network, use
    `bilateral.torch.solve`.

    Parameters
    ----------
    probabilities : (B, K, h, w) or (K, h, w) tensor
        Probabilities or logits of K classes, or of a foreground if K is 1, of any size.
    image : (B, 3, H, W) or (3, H, W) tensor
        RGB, or gray with one channel: uint8, or floating point from 0 to 1 unless
        `reference_max` says otherwise. The normalized inputs of networks do not work.
    confidence : {"boundary", "uniform", "entropy"} or (B, H, W) tensor
        Trust in each pixel. A tensor without B serves all images.
    labels : bool
        Return the most probable class of each pixel.
    logits : bool, optional
        Whether `probabilities` are logits. By default their values decide, for all images at once.
    ignore : (B, H, W) tensor of bool or integers, optional
        Nonzero where the probabilities mean nothing. A tensor without B serves all images.
    sigma_xy, sigma_luma, sigma_chroma, smoothness, rank_tolerance, reference_max
        As for arrays.
    dtype : torch.dtype, optional
        Dtype of the result. Default: that of `probabilities`, or int64 for labels.

    Returns
    -------
    (B, K, H, W) or (K, H, W) tensor
        On the device of `probabilities`; labels have no K.

    Examples
    --------
    >>> import torch
    >>> import bilateral.torch
    >>> photo = torch.zeros(1, 3, 64, 96)
    >>> photo[..., 40:] = 1
    >>> scores = torch.tensor([-9.0, -9, 1, 9, 9, 9]).expand(4, 6)
    >>> out = torch.stack([-scores, scores])[None]  # as a network returns it
    >>> mask = bilateral.torch.refine_segmentation(out, photo, labels=True)
    >>> mask.shape, mask[0, 32, [0, 39, 40, 95]].tolist()
    (torch.Size([1, 64, 96]), [0, 0, 1, 1])
    """
    options = SegmentationOptions.checked(locals())
    labels = validation.flag("labels", labels)
    scores, images = scores_and_images(probabilities, image)
    if not isinstance(confidence, str):
        confidence = one_per_pixel("confidence", confidence, len(scores))
    if ignore is not None:
        ignore = one_per_pixel("ignore", ignore, len(scores))
    batch = SegmentationBatch(
        scores, images, confidence, ignore, logits, labels, options, reference_max
    )
    refined = _refine_on_cuda(batch) if _is_on_cuda(scores) else _refine_on_cpu(batch)
    if probabilities.ndim == 3:
        refined = refined.squeeze(0)
    if dtype is None:
        keeps_dtype = not labels and scores.is_floating_point()
        dtype = probabilities.dtype if keeps_dtype else refined.dtype
    return refined.to(probabilities.device, dtype)


def _is_on_cuda(scores: Tensor) -> bool:
    return scores.is_cuda


def _refine_on_cpu(batch: SegmentationBatch) -> Tensor:
    if batch.logits is None:
        batch = batch._replace(logits=are_logits(batch.scores, batch.ignore))
    return torch.stack([batch.refine_on_cpu(i) for i in range(len(batch.scores))])


def _refine_on_cuda(batch: SegmentationBatch) -> Tensor:
    operators.load_cuda_operators()  # raises an error that says how to install Triton
    from bilateral.torch.cuda.segmentation import refine

    with operators.on_device_of(batch.scores), torch.no_grad():
        return refine(batch)
