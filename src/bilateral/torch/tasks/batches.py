"""The checked tensors of filters and tasks, and their way through the calls for arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bilateral import tasks
from bilateral.filters.block_means import BlockMeans
from bilateral.filters.polish import polish as polish_array
from bilateral.torch.tasks import tensors


class ColorizeBatch(NamedTuple):
    """Gray photographs, strokes of colour and the options."""

    gray: Tensor
    """(B, 1 or 3, H, W)"""
    scribbles: Tensor
    """(B or 1, 3 or 4, H, W)"""
    mask: Tensor | None
    """(B or 1, H, W)"""
    options: dict[str, Any]
    """The other arguments of the task for arrays."""

    def on_cpu(self, i: int) -> Tensor:
        """Colorize one photograph by the task for arrays: (3, H, W)."""
        mask = tensors.at(self.mask, i)
        with tensors.naming_image(i, len(self.gray)):
            coloured = tasks.colorize(
                tensors.pixels(self.gray[i]),
                tensors.pixels(tensors.at(self.scribbles, i)),
                None if mask is None else tensors.array(mask),
                **self.options,
            )
        return tensors.tensor(coloured)


class DefocusBatch(NamedTuple):
    """Photographs, their depths and the options."""

    image: Tensor
    """(B, 1 or 3, H, W)"""
    depth: Tensor
    """(B or 1, H, W)"""
    options: dict[str, Any]
    """The other arguments of the task for arrays."""

    def on_cpu(self, i: int) -> Tensor:
        """Blur one photograph by the task for arrays: (C, H, W)."""
        with tensors.naming_image(i, len(self.image)):
            blurred = tasks.defocus(
                tensors.pixels(self.image[i]),
                tensors.array(tensors.at(self.depth, i)),
                **self.options,
            )
        return tensors.tensor(blurred)


class PolishBatch(NamedTuple):
    """The tensors of a polish, and its options."""

    image: Tensor
    """(B, K, H, W)"""
    reference: Tensor
    """(B or 1, C, H, W)"""
    target: Tensor | None
    """(B, K, H, W)"""
    weights: Tensor | None
    """(B or 1, H, W)"""
    observation: BlockMeans | None
    options: dict[str, Any]
    """The other arguments of `bilateral.polish`."""

    def on_cpu(self) -> Tensor:
        """Polish by the call for arrays."""
        return torch.stack([self._on_cpu(i) for i in range(len(self.image))])

    def _on_cpu(self, i: int) -> Tensor:
        target, weights = tensors.at(self.target, i), tensors.at(self.weights, i)
        with tensors.naming_image(i, len(self.image)):
            polished = polish_array(
                tensors.pixels(self.image[i]),
                tensors.pixels(tensors.at(self.reference, i)),
                None if target is None else tensors.pixels(target),
                None if weights is None else tensors.array(weights),
                observation=self.observation,
                **self.options,
            )
        return tensors.tensor(polished)


class SuperresBatch(NamedTuple):
    """Low-resolution maps, their photographs and the options."""

    depth: Tensor
    """(B, h, w)"""
    reference: Tensor
    """(B or 1, C, H, W)"""
    confidence: Tensor | None
    """(B or 1, h, w)"""
    dtype: torch.dtype
    """Of the result."""
    options: dict[str, Any]
    """The other arguments of the task for arrays."""

    def on_cpu(self, i: int) -> Tensor:
        """Enlarge one map by the task for arrays: (H, W)."""
        confidence = tensors.at(self.confidence, i)
        with tensors.naming_image(i, len(self.depth)):
            enlarged = tasks.superres_depth(
                tensors.array(self.depth[i]),
                tensors.pixels(tensors.at(self.reference, i)),
                confidence=None if confidence is None else tensors.array(confidence),
                dtype=tensors.array(torch.empty(0, dtype=self.dtype)).dtype,
                **self.options,
            )
        return torch.from_numpy(enlarged)
