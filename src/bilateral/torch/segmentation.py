"""Refining what a segmentation network returns."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bilateral import tasks
from bilateral.tasks.segmentation.policy import USUAL, Settings
from bilateral.torch import inputs as shapes
from bilateral.torch import operators


class Task(NamedTuple):
    """What to refine: a batch of B."""

    scores: Tensor
    """(B, K, h, w)"""
    images: Tensor
    """(B, 1 or 3, H, W)"""
    confidence: str | Tensor
    """(B, H, W)"""
    ignore: Tensor | None
    """(B, H, W)"""
    logits: bool | None
    labels: bool
    """Whether they are wanted, and not probabilities."""
    settings: Settings
    reference_max: float | None

    def on_cpu(self, i: int) -> Tensor:
        """One of its images by the task for arrays: (K, H, W), or labels (H, W)."""
        confidence, ignore = self.confidence, self.ignore
        try:
            found = tasks.refine_segmentation(
                np.moveaxis(shapes.array(self.scores[i]), 0, -1),
                np.moveaxis(shapes.array(self.images[i]), 0, -1),
                confidence=confidence
                if isinstance(confidence, str)
                else shapes.array(confidence[i]),
                labels=self.labels,
                logits=self.logits,
                ignore=None if ignore is None else shapes.array(ignore[i]),
                reference_max=self.reference_max,
                **self.settings._asdict(),
            )
        except ValueError as error:
            if len(self.scores) > 1:
                error.add_note(f"In image {i} of the batch.")
            raise
        return torch.from_numpy(found if self.labels else np.moveaxis(found, -1, 0))


def refine_segmentation(
    probabilities: Tensor,
    image: Tensor,
    *,
    confidence: str | Tensor = "boundary",
    labels: bool = False,
    logits: bool | None = None,
    ignore: Tensor | None = None,
    sigma_xy: float | None = USUAL.sigma_xy,
    sigma_luma: float = USUAL.sigma_luma,
    sigma_chroma: float = USUAL.sigma_chroma,
    smoothness: float | None = USUAL.smoothness,
    rank_tolerance: float | None = USUAL.rank_tolerance,
    reference_max: float | None = None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Move the outlines of a segmentation to the edges of the images that it belongs to.

    `bilateral.tasks.refine_segmentation` for tensors, which see for what it does. Probabilities on
    a CUDA device are refined there. It is meant for inference and gives no gradients: it chooses
    labels on its way. To train with a solver inside the network use `bilateral.torch.solve`.

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
    sigma_xy, sigma_luma, sigma_chroma, smoothness, rank_tolerance, reference_max
        As for arrays.
    dtype : torch.dtype, optional
        The result's, if not that of `probabilities` or, for labels, int64.

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
    settings = Settings(sigma_xy, sigma_luma, sigma_chroma, smoothness, rank_tolerance).checked()
    scores, images = shapes.scores(probabilities, image)
    count = len(scores)
    if not isinstance(confidence, str):
        confidence = shapes.per_pixel("confidence", confidence, count)
    if ignore is not None:
        ignore = shapes.per_pixel("ignore", ignore, count)
    task = Task(scores, images, confidence, ignore, logits, labels, settings, reference_max)
    found = _refine_on_device(task) if _is_on_device(scores) else _refine(task)
    if probabilities.ndim == 3:
        found = found.squeeze(0)
    usual = found.dtype if labels or not scores.is_floating_point() else probabilities.dtype
    return found.to(probabilities.device, usual if dtype is None else dtype)


def _refine(task: Task) -> Tensor:
    if task.logits is None:
        task = task._replace(logits=shapes.are_logits(task.scores, task.ignore))
    return torch.stack([task.on_cpu(i) for i in range(len(task.scores))])


def _is_on_device(scores: Tensor) -> bool:
    return scores.is_cuda


def _refine_on_device(task: Task) -> Tensor:
    spared = operators.load_cuda_operators().spared  # or an error that says what to install
    from bilateral.torch.cuda import segmentation as device_segmentation

    with operators.on_device_of(task.scores), torch.no_grad():
        found: Tensor = spared(device_segmentation.refine)(task)
        return found
