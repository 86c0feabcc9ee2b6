"""Polish on a CUDA device."""

from __future__ import annotations

import torch
from torch import Tensor

from bilateral.backends.cuda.constants import constant
from bilateral.backends.cuda.filters import polish as kernels
from bilateral.torch import inputs
from bilateral.torch.cuda.tasks.photos import check, levels, white
from bilateral.torch.tasks.batches import PolishBatch


def polish(batch: PolishBatch) -> Tensor:
    """Polish on the device; an invalid batch goes to the CPU, which says what is wrong."""
    options = batch.options
    channels = batch.reference.shape[1]
    highest = white(batch.reference, options["reference_max"])
    if highest is None or channels > 8:
        return batch.on_cpu()
    dtype = torch.float64 if inputs.is_wide(batch.image.dtype) else torch.float32
    image, photos = batch.image.to(dtype), levels(batch.reference).to(dtype)
    mass, target = batch.weights, batch.target
    valid = [image.isfinite().all(), check(batch.reference, options["reference_max"])]
    if target is not None:
        known = target.isfinite().all(1, keepdim=True)
        target = torch.where(known, target, 0).to(dtype)
        if mass is None:
            mass = known.to(dtype)
        else:
            weights = mass[:, None].to(dtype)
            valid.append(((weights >= 0) & weights.isfinite()).all())
            mass = torch.where(known, weights, 0)
    elif mass is not None:
        return batch.on_cpu()
    if not bool(torch.stack(valid).all()):
        return batch.on_cpu()
    observation = None
    if batch.observation is not None:
        low, low_weights = (
            torch.from_numpy(values).to(image.device, dtype)
            for values in (batch.observation.low, batch.observation.weights)
        )
        observation = kernels.Observation(low, low_weights)
    scale = kernels.Scale(
        options["smoothness"],
        options["sigma_rgb"] * (highest / 255),
        options["anchor"],
        options["scale"],
    )
    numbers = constant(scale.numbers, dtype, image.device)
    return kernels.polish(
        image, photos, target, mass, observation, numbers, options["rounds"], options["steps"]
    )
