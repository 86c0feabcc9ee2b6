"""Polish on a CUDA device."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.filters import polish as kernels
from bilateral.torch import inputs
from bilateral.torch.cuda.recorded import recorded
from bilateral.torch.cuda.tasks.photos import check, levels, white
from bilateral.torch.tasks.batches import PolishBatch


def polish(batch: PolishBatch) -> Tensor:
    """Polish on the device; an invalid batch goes to the CPU, which says what is wrong."""
    options = batch.options
    channels = batch.reference.shape[1]
    highest = white(batch.reference, options["reference_max"])
    if highest is None or channels > 8:
        return batch.on_cpu()
    maximum = options["reference_max"]
    data, valid = _read(batch.image, batch.reference, batch.target, batch.weights, maximum)
    if data is None or not bool(valid):
        return batch.on_cpu()
    dtype = data.image.dtype
    observation = None
    if batch.observation is not None:
        low, low_weights = (
            torch.from_numpy(values).to(data.image.device, dtype)
            for values in (batch.observation.low, batch.observation.weights)
        )
        observation = kernels.Observation(low, low_weights)
    scale = kernels.Scale(
        options["smoothness"],
        options["sigma_rgb"] * (highest / 255),
        options["anchor"],
        options["scale"],
    )
    numbers = constant(scale.numbers, dtype, data.image.device)
    return _polish(data, observation, numbers, options["rounds"], options["steps"])


class _Data(NamedTuple):
    """The tensors of a polish in its dtype."""

    image: Tensor
    photos: Tensor
    target: Tensor | None
    mass: Tensor | None


@recorded
def _read(
    image: Tensor,
    reference: Tensor,
    target: Tensor | None,
    weights: Tensor | None,
    reference_max: float | None,
) -> tuple[_Data | None, Tensor]:
    """Convert all tensors, and tell whether they are valid; None for weights of nothing."""
    dtype = torch.float64 if inputs.is_wide(image.dtype) else torch.float32
    real, photos = image.to(dtype), levels(reference).to(dtype)
    valid = real.isfinite().all() & check(reference, reference_max)
    mass: Tensor | None = None
    if target is not None:
        known = target.isfinite().all(1, keepdim=True)
        target = torch.where(known, target, 0).to(dtype)
        mass = known.to(dtype)
        if weights is not None:
            given = weights[:, None].to(dtype)
            valid = valid & ((given >= 0) & given.isfinite()).all()
            mass = torch.where(known, given, 0)
    elif weights is not None:
        return None, valid
    return _Data(real, photos, target, mass), valid


@recorded
def _polish(
    data: _Data,
    observation: kernels.Observation | None,
    numbers: Tensor,
    rounds: int,
    steps: int,
) -> Tensor:
    return kernels.polish(*data, observation, numbers, rounds, steps)
