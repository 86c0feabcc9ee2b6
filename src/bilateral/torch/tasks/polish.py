"""Polish for tensors: remove the blocks of grid cells from a solution."""

from __future__ import annotations

import torch
from torch import Tensor

from bilateral import validation
from bilateral.filters.block_means import BlockMeans
from bilateral.torch import inputs, operators
from bilateral.torch.tasks import tensors
from bilateral.torch.tasks.batches import PolishBatch
from bilateral.torch.untraced import untraced

_ARRAY = "bilateral.polish"


@validation.keywords(photo="reference", depth="image")
def polish(
    image: Tensor,
    reference: Tensor,
    target: Tensor | None = None,
    weights: Tensor | None = None,
    *,
    scale: float,
    smoothness: float = 4.0,
    sigma_rgb: float = 30.0,
    anchor: float = 0.05,
    observation: BlockMeans | None = None,
    rounds: int = 2,
    steps: int = 15,
    reference_max: float | None = None,
) -> Tensor:
    """Remove the blocks of grid cells from a solution by a few steps on the graph of pixels.

    This is `bilateral.polish` for tensors, and its documentation describes the method. Tensors on
    a CUDA device are polished there. The result has no gradient. For training, use
    `bilateral.torch.domain_transform`, which serves the same purpose and is differentiable.

    Parameters
    ----------
    image : (B, K, H, W) or (K, H, W) tensor
        The maps to polish; finite.
    reference : (B, C, H, W) or (C, H, W) tensor
        Guide images of at most 8 channels, whose edges the result keeps: uint8, uint16 or floating
        point, with white at 255, 65535 or 1. A reference without B, or with B = 1, serves the whole
        batch.
    target : tensor like image, optional
        Data that the result should stay close to. A pixel with a value that is not finite is
        unknown.
    weights : (B, 1, H, W), (B, H, W), (1, H, W) or (H, W) tensor, optional
        Weight of each pixel of the target. Default: 1 everywhere.
    scale : float
        Size of an edge, in the image's unit.
    smoothness, sigma_rgb, anchor, rounds, steps, reference_max
        As for `bilateral.polish`.
    observation : bilateral.BlockMeans, optional
        Low-resolution values that the block means of all maps should match.

    Returns
    -------
    tensor
        Of the image's shape, dtype and device. Integers are rounded.

    Examples
    --------
    >>> import torch
    >>> import bilateral.torch
    >>> photo = torch.tensor([[[20, 20, 20, 200, 200, 200]]], dtype=torch.uint8).tile(4, 1)
    >>> noisy = photo / 10 + torch.tensor([[0.2, -0.2], [-0.2, 0.2]]).tile(2, 3)
    >>> smooth = bilateral.torch.polish(noisy, photo, scale=1)
    >>> [round(value, 1) for value in smooth[0, 0].tolist()]
    [2.0, 2.0, 2.0, 20.0, 20.0, 20.0]
    """
    maps = tensors.maps("image", image, _ARRAY)
    photos = tensors.maps("reference", reference, _ARRAY)
    tensors.same_size("reference", photos, "image", maps)
    data = None if target is None else tensors.maps("target", target, _ARRAY)
    if data is not None:
        tensors.same_size("target", data, "image", maps)
        validation.same_shape("target", tuple(data.shape), "image", tuple(maps.shape))
    mass = None
    if weights is not None:
        mass = tensors.one_per_pixel("weights", weights, len(maps), _ARRAY)
        tensors.same_size("weights", mass, "image", maps)
    tensors.same_device("image", maps, reference=photos, target=data, weights=mass)
    options = {
        "scale": validation.positive("scale", scale),
        "smoothness": validation.not_negative("smoothness", smoothness),
        "sigma_rgb": validation.positive("sigma_rgb", sigma_rgb),
        "anchor": validation.not_negative("anchor", anchor),
        "rounds": validation.count("rounds", rounds, 0),
        "steps": validation.count("steps", steps, 0),
        "reference_max": reference_max,
    }
    if observation is not None:
        example = "bilateral.BlockMeans(low, shape)"
        validation.instance("observation", observation, BlockMeans, example)
        size = tuple(maps.shape[2:])
        validation.same_shape("observation", observation.shape, "image", size)
    batch = PolishBatch(maps, photos, data, mass, observation, options)
    return inputs.like_target(_polish(batch).to(maps.device), image)


def _apply(batch: PolishBatch) -> Tensor:
    if not tensors.on_cuda(batch.image):
        return batch.on_cpu()
    from bilateral.torch.cuda.tasks.polish import polish

    with operators.on_device_of(batch.image), torch.no_grad():
        polished: Tensor = polish(batch)
    return polished


_polish = untraced(_apply)
