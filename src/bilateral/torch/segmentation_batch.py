"""Check the tensors of a segmentation and hold them as one batch."""

from __future__ import annotations

from dataclasses import asdict
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bilateral import tasks, validation
from bilateral.tasks.segmentation.policy import SegmentationOptions
from bilateral.torch.inputs import as_array, check_content, check_layout


class SegmentationBatch(NamedTuple):
    """B segmentations to refine."""

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
    """Whether to return labels instead of probabilities."""
    options: SegmentationOptions
    reference_max: float | None

    def refine_on_cpu(self, i: int) -> Tensor:
        """Refine one image by the task for arrays: (K, H, W), or labels (H, W)."""
        confidence, ignore = self.confidence, self.ignore
        try:
            refined = tasks.refine_segmentation(
                np.moveaxis(as_array(self.scores[i]), 0, -1),
                np.moveaxis(as_array(self.images[i]), 0, -1),
                confidence=confidence if isinstance(confidence, str) else as_array(confidence[i]),
                labels=self.labels,
                logits=self.logits,
                ignore=None if ignore is None else as_array(ignore[i]),
                reference_max=self.reference_max,
                **asdict(self.options),
            )
        except ValueError as error:
            if len(self.scores) > 1:
                error.add_note(f"In image {i} of the batch.")
            raise
        return torch.from_numpy(refined if self.labels else np.moveaxis(refined, -1, 0))


def scores_and_images(probabilities: Tensor, image: Tensor) -> tuple[Tensor, Tensor]:
    """Return scores (B, K, h, w) and images (B, 1 or 3, H, W), of any sizes and devices."""
    for name, value in (("probabilities", probabilities), ("image", image)):
        if not isinstance(value, Tensor):
            raise TypeError(
                f"{name}: expected a tensor, since the other is one, got {type(value).__name__}. "
                f"Use torch.as_tensor, or NumPy arrays for both."
            )
        _check_values(name, value)
        if value.ndim not in (3, 4) or value.numel() == 0:
            raise ValueError(
                f"{name}: expected shape (C, H, W) or (B, C, H, W) with at least one value, got "
                f"{tuple(value.shape)}. Channels come before height and width."
            )
    scores = probabilities if probabilities.ndim == 4 else probabilities.unsqueeze(0)
    images = image if image.ndim == 4 else image.unsqueeze(0)
    if images.shape[1] not in (1, 3) or images.shape[0] not in (1, scores.shape[0]):
        hint = (
            " Channels come first: image.permute(2, 0, 1)."
            if image.shape[-1] in (1, 3)
            else " Gray has one channel, RGB three; an image without B serves the whole batch."
        )
        raise ValueError(
            f"image: expected shape (3 or 1, H, W) or ({scores.shape[0]}, 3 or 1, H, W) for "
            f"probabilities of shape {tuple(probabilities.shape)}, got {tuple(image.shape)}.{hint}"
        )
    return scores, images.expand(scores.shape[0], -1, -1, -1)


def _check_values(name: str, value: Tensor) -> None:
    """Raise if a tensor has no values, is sparse, or has integers that are too large."""
    if value.device.type == "meta":
        raise ValueError(f"{name}: expected a tensor with values, got one on the device meta.")
    check = check_layout if name == "ignore" else check_content  # a mask may have any integers
    check(name, value)


def one_per_pixel(name: str, value: Tensor, images: int) -> Tensor:
    """Return a map (B, H, W) from one of (H, W), (B, H, W) or (B, 1, H, W)."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name}: expected a tensor, got {type(value).__name__}.")
    _check_values(name, value)
    maps = value.squeeze(1) if value.ndim == 4 and value.shape[1] == 1 else value
    maps = maps.unsqueeze(0) if maps.ndim == 2 else maps
    if maps.ndim != 3 or maps.shape[0] not in (1, images):
        raise ValueError(
            f"{name}: expected one number per pixel, shape (H, W) or ({images}, H, W), got "
            f"{tuple(value.shape)}."
        )
    return maps.expand(images, -1, -1)


def are_logits(scores: Tensor, ignore: Tensor | None) -> bool | None:
    """Whether any image of a batch has logits; None for one image, whose own check decides."""
    if len(scores) == 1:
        return None
    masks = [None] * len(scores) if ignore is None else [as_array(mask != 0) for mask in ignore]
    return any(
        validation.scores(
            "probabilities", as_array(image_scores).transpose(1, 2, 0), None, (), None, mask
        ).logits
        for image_scores, mask in zip(scores, masks, strict=True)
    )
