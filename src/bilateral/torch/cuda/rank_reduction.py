"""Solve many classes through few combinations: `numerics.lowrank` for tensors."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from bilateral.numerics import lowrank


class Reduced(NamedTuple):
    """Fewer channels (M, H, W), and how to restore the others."""

    p: Tensor
    mean: Tensor | None = None
    """Per channel of the full map; None: nothing was reduced."""
    basis: Tensor | None = None
    """Orthonormal rows, one per channel of the reduced map."""

    def expand(self, x: Tensor) -> Tensor:
        """Convert a solution of the reduced map to all channels."""
        if self.mean is None or self.basis is None:
            return x
        full = (self.basis.T @ x.flatten(1)).view(-1, *x.shape[1:])
        return full + self.mean[:, None, None]


def reduce(p: Tensor, c: Tensor | None, tolerance: float | None) -> Reduced:
    """Drop directions that hold less than `tolerance` of the variance of (K, H, W) maps.

    As `lowrank.reduce`, but with the variance over pixels instead of vertices.
    """
    if tolerance is None or not lowrank.reduction_pays(len(p), 1):
        return Reduced(p)
    values = p.flatten(1).double()
    weight = torch.ones_like(values[0]) if c is None else c.flatten().double()
    total = weight.sum()
    mean = (values @ weight) / total
    centred = values - mean[:, None]
    covariance = (centred * weight) @ centred.T / total
    basis = lowrank.leading_directions(covariance.cpu().numpy(), tolerance)
    if basis is None:
        return Reduced(p)
    rows = torch.from_numpy(basis).to(p.device)
    projected = (rows @ centred).float().view(-1, *p.shape[1:])
    return Reduced(projected, mean.float(), rows.float())
