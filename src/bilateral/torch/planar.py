"""Solve tensors with one plane per vertex, and clamp the result, differentiably."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from bilateral.numerics import policy
from bilateral.torch import autograd, inputs
from bilateral.torch.options import LayerOptions


def solve(batch: inputs.Batch, smoothness: Tensor, options: LayerOptions) -> Tensor:
    """Solve a batch on the device where its tensors are."""
    reference, target, confidence = inputs.zero_unknown(batch)
    if options.solve.slope_ridge is None:  # every image has a matrix of its own
        confidence = torch.ones_like(target[:, :1]) if confidence is None else confidence
        confidence = confidence.expand(target.shape[0], -1, -1, -1)
    y, _ = autograd.solve(reference, target, confidence, smoothness, None, options)
    if not options.solve.clamp:
        return y
    return clamp(y, target, None if confidence is None else confidence > 0)


def clamp(y: Tensor, target: Tensor, known: Tensor | None) -> Tensor:
    """Keep each channel within the range of its known values, a little wider."""
    lowest = target if known is None else torch.where(known, target, torch.inf)
    highest = target if known is None else torch.where(known, target, -torch.inf)
    low = lowest.amin((2, 3), keepdim=True).double()
    high = highest.amax((2, 3), keepdim=True).double()
    margin = policy.CLAMP_MARGIN * (high - low)
    # torch.clamp would drop gradients where both bounds are equal.
    y = torch.maximum(y, (low - margin).to(y.dtype))
    return torch.minimum(y, (high + margin).to(y.dtype))


def stages(options: LayerOptions, iterations: int) -> list[LayerOptions]:
    """Return the options of each robust round: constant rounds come before planar ones."""
    if not options.solve.planar:
        return [options] * iterations
    if options.solve.slope_ridge is None:
        raise ValueError(
            "slope_ridge: expected a number for solve_robust, got None. Its rounds have different "
            "weights, so that no estimate of the noise suits them all."
        )
    constant = replace(options, solve=replace(options.solve, model="constant"))
    planar_rounds = max(1, int(policy.PLANE_ROUNDS * iterations))
    return [constant] * (iterations - planar_rounds) + [options] * planar_rounds


def trusted(weights: Tensor | None) -> Tensor | None:
    """Return which pixels the weights (B, 1, H, W) of a robust round trust; None: all."""
    if weights is None:
        return None
    largest = weights.amax((2, 3), keepdim=True)
    return (weights > 0) & (weights >= policy.TRUSTED_WEIGHT * largest)
