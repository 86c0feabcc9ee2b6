"""Refining what a segmentation network returns."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from bilateral import tasks
from bilateral.torch import shapes


def refine_segmentation(
    probabilities: Tensor,
    image: Tensor,
    *,
    confidence: str | Tensor = "boundary",
    labels: bool = False,
    logits: bool | None = None,
    ignore: Tensor | None = None,
    dtype: torch.dtype | None = None,
    **options: Any,
) -> Tensor:
    """Move the outlines of a segmentation to the edges of the images that it belongs to.

    `bilateral.tasks.refine_segmentation` for tensors, which see for what it does. It is meant for
    inference and gives no gradients: it chooses labels on its way. To train with a solver inside
    the network use `bilateral.torch.solve`.

    Parameters
    ----------
    probabilities : (B, K, h, w) or (K, h, w) tensor
        Probabilities or logits of K classes, or of a foreground if K is 1, of any size.
    image : (B, 3, H, W) or (3, H, W) tensor
        RGB, or gray with one channel: uint8, or floating point from 0 to 1 unless
        `reference_max` says otherwise (networks' normalized inputs will not do).
    confidence : {"boundary", "uniform", "entropy"} or (B, H, W) tensor
        How much to trust each pixel; without B it serves all images.
    labels : bool
        Return the most probable class of each pixel.
    logits : bool, optional
        Whether `probabilities` are logits; left out, their values tell, for all images at once.
    ignore : (B, H, W) tensor of bool or integers, optional
        Nonzero where the probabilities mean nothing; without B it serves all images.
    dtype : torch.dtype, optional
        The result's, if not that of `probabilities` or, for labels, int64.
    **options
        `sigma_xy`, `sigma_luma`, `sigma_chroma`, `smoothness`, `rank_tolerance` and
        `reference_max`, as for arrays.

    Returns
    -------
    (B, K, H, W) or (K, H, W) tensor
        On the device of `probabilities`; labels without K.

    Examples
    --------
    >>> import torch
    >>> import bilateral.torch
    >>> photo = torch.zeros(1, 3, 64, 96)
    >>> photo[..., 40:] = 1
    >>> scores = torch.tensor([-9.0, -9, 1, 9, 9, 9]).expand(4, 6)
    >>> out = torch.stack([-scores, scores])[None]  # what a network returns
    >>> mask = bilateral.torch.refine_segmentation(out, photo, labels=True)
    >>> mask.shape, mask[0, 32, [0, 39, 40, 95]].tolist()
    (torch.Size([1, 64, 96]), [0, 0, 1, 1])
    """
    scores, images = shapes.scores(probabilities, image)
    count = len(scores)
    trust = (
        [confidence] * count
        if isinstance(confidence, str)
        else shapes.per_pixel("confidence", confidence, count)
    )
    unseen = [None] * count if ignore is None else shapes.per_pixel("ignore", ignore, count)
    if logits is None:
        logits = shapes.are_logits(scores)
    refined = [
        tasks.refine_segmentation(
            np.moveaxis(shapes.array(one), 0, -1),
            np.moveaxis(shapes.array(photo), 0, -1),
            confidence=c if isinstance(c, str) else shapes.array(c),
            labels=labels,
            logits=logits,
            ignore=None if hidden is None else shapes.array(hidden),
            **options,
        )
        for one, photo, c, hidden in zip(scores, images, trust, unseen, strict=True)
    ]
    found = torch.from_numpy(np.stack(refined))
    if not labels:
        found = found.movedim(-1, 1).contiguous()
    if probabilities.ndim == 3:
        found = found.squeeze(0)
    usual = found.dtype if labels or not scores.is_floating_point() else probabilities.dtype
    return found.to(probabilities.device, usual if dtype is None else dtype)
